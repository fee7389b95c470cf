import { expect, test } from "vitest";
import { type CalendarMonth, monthBefore, monthNamed } from "../../../src/domain/months/month.ts";
import { fitting } from "../../../src/service/web/months/months.ts";

const newest = monthNamed("2026-11") as CalendarMonth;
const YEAR = Array.from({ length: 11 }).reduce<CalendarMonth[]>(
  (months) => [...months, monthBefore(months.at(-1) as CalendarMonth)],
  [newest],
);

/** `2026-11` is under way. */
function shown(workspaces: number, closed: readonly string[] = []): string[] {
  const isOpen = ({ name }: CalendarMonth) => name !== "2026-11" && !closed.includes(name);
  return fitting(YEAR, isOpen, workspaces).map(({ name }) => name);
}

test("a page checks fewer open months of more workspaces, but one at least", () => {
  expect(shown(0)).toHaveLength(12);
  expect(shown(20)).toHaveLength(12);
  expect(shown(30)).toHaveLength(12);
  expect(shown(31)).toHaveLength(11);
  expect(shown(100)).toEqual(["2026-11", "2026-10", "2026-09", "2026-08"]);
  expect(shown(166)).toEqual(["2026-11", "2026-10", "2026-09"]);
  expect(shown(5_000)).toEqual(["2026-11", "2026-10"]);
});

test("closed months need no check, so they are listed up to the first open one that does not fit", () => {
  expect(
    shown(
      5_000,
      YEAR.map(({ name }) => name),
    ),
  ).toHaveLength(12);
  expect(shown(5_000, ["2026-10", "2026-08"])).toEqual(["2026-11", "2026-10", "2026-09", "2026-08"]);
});
