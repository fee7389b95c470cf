import { expect, test } from "vitest";
import { describeRange, exitOfRange } from "../../../src/cli/report/load-report.ts";
import type { LoadStatus, RangeLine } from "../../../src/domain/coverage/range-status.ts";
import { GROUPINGS } from "../../../src/domain/usage/grouping.ts";

/** What reports of commands say. */

const DAY = Date.UTC(2026, 0, 5);
const line = (status: LoadStatus, stride: RangeLine["stride"] = "day"): RangeLine => ({
  meter: "traces",
  groupBy: "user",
  stride,
  status,
  code: null,
  buckets: 2,
  retryAt: null,
  first: DAY,
  end: DAY + 2 * 86_400_000,
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
