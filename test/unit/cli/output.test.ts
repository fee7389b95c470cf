import { expect, test } from "vitest";
import { instant, table } from "../../../src/cli/report/output.ts";

test("an instant is shown in its shortest form", () => {
  expect(instant(Date.UTC(2026, 2, 1))).toBe("2026-03-01");
  expect(instant(Date.UTC(2026, 2, 1, 5))).toBe("2026-03-01T05:00Z");
});

test("a table aligns numbers right, groups their digits and shows null as a dash", () => {
  const lines = table(
    ["name", "traces"],
    [
      ["a", 1234567],
      ["long name", null],
    ],
  ).split("\n");
  expect(lines.map((line) => line.trimEnd())).toEqual([
    "name          traces",
    "a          1,234,567",
    "long name          -",
  ]);
});
