import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { rangeOf, withRange, withSelection } from "../../../src/terminal/options.ts";

function parse(...args: string[]) {
  const command = withSelection(withRange(new Command("x")))
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  return command
    .parse(args, { from: "user" })
    .opts<Parameters<typeof rangeOf>[0] & { workspace?: string[] }>();
}

describe("an instant", () => {
  test.each([
    ["2026-03-01", "2026-03-01T00:00:00Z"],
    ["2026-03-01T05:30+05:30", "2026-03-01T00:00:00Z"],
    ["2028-02-29", "2028-02-29T00:00:00Z"],
  ])("%s is %s in any time zone", (text, utc) => {
    expect(parse("--from", text).from).toBe(Date.parse(utc));
  });

  test.each(["2026-02-30", "2027-02-29", "today", "2026-03-01T25:00", "1969-12-31", "2100-01-02"])(
    "%j is refused",
    (text) => {
      expect(() => parse("--from", text)).toThrow(/is invalid|not a day|not between/);
    },
  );
});

describe("a range", () => {
  const [start, end] = [Date.UTC(2026, 2, 1), Date.UTC(2026, 2, 2)];
  test("needs both ends, or a default for the missing one", () => {
    expect(rangeOf({ from: start, to: end })).toEqual({ start, end });
    expect(rangeOf({ from: start }, { start: 0, end })).toEqual({ start, end });
    expect(() => rangeOf({ from: start })).toThrow(/--to is missing/);
    expect(() => rangeOf({ to: end })).toThrow(/--from is missing/);
  });
  test.each([
    [end, start],
    [start, start],
  ])("from %i to %i is reversed", (from, to) => {
    expect(() => rangeOf({ from, to })).toThrow(/is not before/);
  });
});
