import { expect, test } from "vitest";
import { unevenStrides } from "../../../src/cli/report/demo-report.ts";
import type { LoadStatus, RangeLine } from "../../../src/domain/coverage/range-status.ts";

const line = (stride: RangeLine["stride"], status: LoadStatus): RangeLine => ({
  meter: "traces",
  ...{ groupBy: "user", stride, status, code: null, buckets: 2, first: 0, end: 1, retryAt: null },
});
const sums = (...traces: number[]) =>
  traces.map((sum) => ({ meter: "traces" as const, stride: "day" as const, traces: sum }));

test("dimensions with different totals are explained only where all of that stride is loaded and some may still change", () => {
  const provisional = [line("day", "final"), line("day", "provisional")];
  expect(unevenStrides(sums(3_977_942, 3_977_944, 3_977_944), provisional)).toEqual([
    "The dimensions differ by up to 2 traces (stride day). Each was asked at another moment, and provisional buckets may have counted more in between.",
  ]);
  expect(unevenStrides(sums(7, 7), provisional)).toEqual([]);
  expect(unevenStrides(sums(7, 8), [line("day", "final"), line("hour", "provisional")])).toEqual([]);
  expect(unevenStrides(sums(7, 8), [...provisional, line("day", "failed")])).toEqual([]);
  const agents = [{ meter: "deployments" as const, stride: "day" as const, traces: 0 }];
  expect(unevenStrides([...sums(7, 7), ...agents], provisional)).toEqual([]);
});
