import { expect, test } from "vitest";
import { notesOf } from "../../../src/cli/checks/check.ts";
import { checkWorkspaces } from "../../../src/cli/checks/platform.ts";
import { unevenStrides } from "../../../src/cli/commands/demo/sync.ts";
import { describeCoverage } from "../../../src/cli/commands/load/coverage.ts";
import { describeProbe, exitOfProbe } from "../../../src/cli/commands/proof/probe.ts";
import { describeRange, exitOfRange } from "../../../src/cli/report/load-report.ts";
import {
  describeListedOnly,
  describeLost,
  describeProved,
  firstLines,
  freshnessOf,
} from "../../../src/cli/report/status-report.ts";
import type { SourceConfig } from "../../../src/config/config.ts";
import type { LoadStatus, RangeLine } from "../../../src/domain/coverage/range-status.ts";
import { GROUPINGS } from "../../../src/domain/usage/grouping.ts";
import type { ProbeResult } from "../../../src/pipeline/proof/probe.ts";

/** What reports of commands say. */

const DAY = Date.UTC(2026, 0, 5);
const line = (status: LoadStatus, stride: RangeLine["stride"] = "day"): RangeLine => ({
  ...{ meter: "traces", groupBy: "user", stride, status, code: null, buckets: 2, retryAt: null },
  ...{ first: DAY, end: DAY + 2 * 86_400_000 },
});

test("the statement says what is loaded, what the server does not answer, and what is left to load", () => {
  expect(describeRange([line("final"), line("provisional")])).toBe(
    "All of it is loaded: by day 2 final and 2 provisional (figures by workspace and dimension).",
  );
  expect(describeRange([line("final"), line("not_available", "hour")])).toMatch(
    /^All that the server answers is loaded: by day 2 final [\s\S]*does not answer in hours, as Cloud does not:\n[\s\S]*hour/,
  );
  // One fact, one line.
  const noHours = GROUPINGS.map((groupBy) => ({ ...line("not_available", "hour"), groupBy }));
  const [, , only, ...more] = describeRange([line("final"), ...noHours]).split("\n");
  expect([only, more]).toEqual([expect.stringMatching(/^all +hour +not_available +8 /), []]);
  expect(describeRange([line("final"), ...noHours.slice(1)]).split("\n")).toHaveLength(5);
  expect(describeRange([line("final"), line("not_available")])).toContain(". Not available:\n");
  expect(describeRange([line("final"), line("not_available", "hour"), line("missing")])).toMatch(
    /^Not all of it is loaded, only by day 2 final/,
  );
  expect(describeRange([line("missing")])).toMatch(/^Not all of it is loaded:\n/);
  expect([[line("final")], [line("final"), line("not_available")]].map(exitOfRange)).toEqual([0, 3]);
});

const sums = (...traces: number[]) => traces.map((sum) => ({ stride: "day" as const, traces: sum }));

test("dimensions with different totals are explained only where all of that stride is loaded and some may still change", () => {
  const provisional = [line("final"), line("provisional")];
  expect(unevenStrides(sums(3_977_942, 3_977_944, 3_977_944), provisional)).toEqual([
    "The dimensions differ by up to 2 traces (stride day). Each was asked at another moment, and provisional buckets may have counted more in between.",
  ]);
  expect(unevenStrides(sums(7, 7), provisional)).toEqual([]);
  expect(unevenStrides(sums(7, 8), [line("final"), line("provisional", "hour")])).toEqual([]);
  expect(unevenStrides(sums(7, 8), [...provisional, line("failed")])).toEqual([]);
});

const covered = (groupBy: string, status: string, days: number, firstDay: string, lastDay = firstDay) => ({
  ...{ source: "default", stride: "day", endedDays: days },
  ...{ groupBy, status, days, firstDay, lastDay },
});
/** A table has spaces up to the width of its column. */
const trimmed = (text: string) => text.split("\n").map((row) => row.trimEnd());

test("coverage is summed up: a row a dimension, a column a status that occurs, and where the gaps are", () => {
  const lines = [
    covered("workspace", "provisional", 2, "2026-03-08"),
    covered("workspace", "ok", 1204, "2026-03-01", "2026-03-07"),
    covered("user", "failed", 3, "2026-03-02", "2026-03-05"),
    covered("user", "ok", 1201, "2026-03-01", "2026-03-07"),
    { ...covered("user", "missing", 1, "2026-03-08"), stride: "hour" },
  ];
  expect(trimmed(describeCoverage(lines, false))).toEqual([
    "default, by day, 2026-03-01 to 2026-03-08: workspace days",
    "dimension     ok  provisional  failed",
    "workspace  1,204            2       0",
    "user       1,201            0       3",
    "failed: user, between 2026-03-02 and 2026-03-05; --days shows each",
    "",
    "default, by hour, 2026-03-08 to 2026-03-08: workspace days",
    "dimension  missing",
    "user             1",
    "missing: user, on 2026-03-08",
  ]);
});

test("with --days each day has a row for each dimension", () => {
  const lines = [
    covered("workspace", "ok", 1, "2026-03-01"),
    covered("workspace", "not_available", 1, "2026-03-01"),
    covered("workspace", "failed", 2, "2026-03-02"),
  ];
  expect(trimmed(describeCoverage(lines, true))).toEqual([
    "default, by day, 2026-03-01 to 2026-03-02: workspace days",
    "day         dimension  ok  failed  not available",
    "2026-03-01  workspace   1       0              1",
    "2026-03-02  workspace   0       2              0",
  ]);
});

test("status names the last day that is final or proved, as pages do, or the first that is not proved", () => {
  const fresh = (stride: string, finalUntil: string | null, loadedUntil: string) => ({
    ...{ groupBy: "workspace", stride, loadedUntil, finalUntil },
  });
  const freshness = [
    fresh("day", "2026-11-25T00:00:00Z", "2026-11-28T00:00:00Z"),
    fresh("hour", "2026-11-24T17:00:00Z", "2026-11-27T09:30:00Z"),
  ];
  expect(freshnessOf({ freshness })).toEqual([
    "by day until 2026-11-27, final until 2026-11-24 (all dimensions)",
    "by hour until 2026-11-27T09:30Z, final until 2026-11-24T17:00Z (all dimensions)",
  ]);
  expect(describeProved({ dataStart: "2026-09-01", provedUntil: "2026-11-25", proveWith: null })).toBe(
    "by day until 2026-11-24, by the export or by totals (all dimensions)",
  );
  expect(describeProved({ dataStart: "2026-09-01", provedUntil: "2026-09-01", proveWith: "COMMAND" })).toBe(
    "not from the start: 2026-09-01 is the first day that is not proved. To prove more: `COMMAND`",
  );
});

test("doctor says of the workspaces that they are to be loaded until the first sync of their source", () => {
  const said: string[] = [];
  const notes = notesOf([], "default");
  const pass = (_: string, finding: string) => void said.push(finding);
  const source = {
    workspaceIds: [],
    slug: "default",
    baseUrl: "http://127.0.0.1",
  } as unknown as SourceConfig;
  const view = { isKeyAccepted: true, organizationId: undefined, listed: [{ id: "w", isDeleted: false }] };
  for (const isOpened of [false, true]) checkWorkspaces(view, { source, isOpened }, { ...notes, pass });
  expect(said).toEqual(["the listing has 1; all are to be loaded", "the listing has 1; all are loaded"]);
});

const listed = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ workspaceId: `w${i}`, name: null, zeros: i + 1 }));

test("zeros that rest on the listing alone name ten workspaces, and add up the others", () => {
  expect(describeListedOnly([])).toEqual([]);
  expect(describeListedOnly([{ workspaceId: "w1", name: "Idle", zeros: 3 }])[0]).toMatch(
    /: 3 of Idle \(w1\)$/,
  );
  const [ten = ""] = describeListedOnly(listed(10));
  expect(ten).toContain("10 of w9");
  expect(ten).not.toContain("more");
  const [more = "", ...others] = describeListedOnly(listed(1000));
  expect(others).toEqual([]);
  // 1 to 1000, without 1 to 10.
  expect(more).toContain("10 of w9, and 500445 of 990 more workspaces, which status --json shows");
  expect(more).not.toContain("w10");
});

test("lines by workspace are ten at most, and one that counts the others", () => {
  expect(firstLines(["a", "b"], "lines")).toEqual(["a", "b"]);
  const all = listed(12).map((one) => ({
    ...{ ...one, source: "default", isUnread: true, isUnlisted: false },
    ...{ firstDay: "2026-01-05", lastDay: "2026-01-06", closedMonths: [] },
  }));
  const lines = describeLost(all);
  expect(lines).toHaveLength(11);
  expect(lines[9]).toMatch(
    /^Workspace w9: the key reads no usage of it any more\..* zero values are no longer trusted/,
  );
  expect(lines[10]).toBe("And 2 more workspaces that the key lost, which --json shows.");
  const [first] = all;
  if (first === undefined) throw new Error("none");
  expect(describeLost([{ ...first, isUnread: false, isUnlisted: true, zeros: 0 }])).toEqual([
    "Workspace w0: the platform no longer lists it, though it is not deleted.",
  ]);
});

const result: ProbeResult = {
  ...{ probeId: 7, state: "matched", resumed: false, expected: 6 },
  figures: [
    {
      ...{
        groupBy: "workspace",
        expectedId: "own",
        billed: 6,
        othersAdded: 0,
        othersRemoved: 0,
        difference: 0,
      },
      rises: [
        { id: "another", traces: 14 },
        { id: "own", traces: 6 },
        { id: "a third", traces: -1 },
      ],
    },
  ],
  ...{ firstDelayMs: 1_200, delayMs: 61_000, lateAfterMs: 60_000 },
};

test("a probe's first line has its verdict and how late it was billed, and the last one what was not checked", () => {
  const lines = describeProbe(result).split("\n");
  expect(lines[0]).toBe(
    "Probe 7: matched, 6 traces sent; first billed 1.2 s and all billed 61.0 s after the last one (limit 60.0 s)",
  );
  expect(lines.at(-1)).toBe(
    "Not checked: whether other workspaces changed by traffic of their own only (another +14, a third -1).",
  );
  const part = { ...result, figures: [], delayMs: null };
  expect(describeProbe(part)).toContain("first billed 1.2 s after the last one, never all of them");
  expect(describeProbe({ ...part, firstDelayMs: null })).toContain("6 traces sent; none billed");
});

test("only a probe that matched ends with 0", () => {
  const exits = (["matched", "late", "differs", "inconclusive"] as const).map((state) =>
    exitOfProbe({ ...result, state }),
  );
  expect(exits).toEqual([0, 4, 4, 3]);
});
