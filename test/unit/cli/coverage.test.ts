import { expect, test } from "vitest";
import { describeCoverage } from "../../../src/cli/commands/load/coverage.ts";

const line = (groupBy: string, status: string, days: number, firstDay: string, lastDay = firstDay) => ({
  ...{ source: "default", stride: "day", endedDays: days },
  ...{ groupBy, status, days, firstDay, lastDay },
});
/** A table has spaces up to the width of its column. */
const trimmed = (text: string) => text.split("\n").map((row) => row.trimEnd());

test("coverage is summed up: a row a dimension, a column a status that occurs, and where the gaps are", () => {
  const lines = [
    line("workspace", "provisional", 2, "2026-03-08"),
    line("workspace", "ok", 1204, "2026-03-01", "2026-03-07"),
    line("user", "failed", 3, "2026-03-02", "2026-03-05"),
    line("user", "ok", 1201, "2026-03-01", "2026-03-07"),
    { ...line("user", "missing", 1, "2026-03-08"), stride: "hour" },
  ];
  expect(trimmed(describeCoverage(lines, false))).toEqual([
    "default, by day, 2026-03-01 to 2026-03-08: days x workspaces",
    "dimension     ok  provisional  failed",
    "workspace  1,204            2       0",
    "user       1,201            0       3",
    "failed: user, between 2026-03-02 and 2026-03-05; --days shows each",
    "",
    "default, by hour, 2026-03-08 to 2026-03-08: days x workspaces",
    "dimension  missing",
    "user             1",
    "missing: user, on 2026-03-08",
  ]);
});

test("with --days each day has a row for each dimension", () => {
  const lines = [
    line("workspace", "ok", 1, "2026-03-01"),
    line("workspace", "not_available", 1, "2026-03-01"),
    line("workspace", "failed", 2, "2026-03-02"),
  ];
  expect(trimmed(describeCoverage(lines, true))).toEqual([
    "default, by day, 2026-03-01 to 2026-03-02: days x workspaces",
    "day         dimension  ok  failed  not available",
    "2026-03-01  workspace   1       0              1",
    "2026-03-02  workspace   0       2              0",
  ]);
});
