import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { coverBuckets, coverTasks } from "../../../../../src/core/domain/planning/plan-tasks.ts";
import { batchesOf, scopeIdsOf, workspaceIdsOf } from "../../../../../src/core/domain/planning/request.ts";
import {
  DAY_MS,
  STRIDE_MS,
  STRIDES,
  type Stride,
  TIER_BUCKETS,
} from "../../../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../../../src/core/domain/time/window.ts";

const seed = 20_260_105;
const DAY0 = Date.UTC(2026, 0, 5);
const day = (n: number) => DAY0 + n * DAY_MS;
const days = (from: number, to: number): Interval => ({ start: day(from), end: day(to) });
const inDays = (windows: readonly Interval[]) =>
  windows.map(({ start, end }) => [(start - DAY0) / DAY_MS, (end - DAY0) / DAY_MS]);

describe("coverBuckets", () => {
  test(`is the fewest windows there are (seed ${seed})`, () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Stride>(...STRIDES.filter((stride) => stride !== "year")),
        fc.uniqueArray(fc.nat({ max: 60 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 61 }),
        (stride, indices, length) => {
          const size = STRIDE_MS[stride];
          const { min, max } = TIER_BUCKETS[stride];
          const first = Math.ceil(DAY0 / size) * size;
          const within = { start: first, end: first + length * size };
          const buckets = indices.map((i) => first + i * size);
          const inside = buckets.filter((bucket) => length >= min && bucket < within.end);
          const windows = coverBuckets(buckets, stride, [within]);
          for (const { start, end } of windows) {
            expect(start).toBeGreaterThanOrEqual(within.start);
            expect(end).toBeLessThanOrEqual(within.end);
            expect((end - start) / size).toBeGreaterThanOrEqual(min);
            expect((end - start) / size).toBeLessThanOrEqual(max);
          }
          for (const bucket of inside)
            expect(windows.some(({ start, end }) => bucket >= start && bucket < end)).toBe(true);
          let needed = 0;
          let reach = Number.NEGATIVE_INFINITY;
          for (const bucket of inside.sort((a, b) => a - b)) {
            if (bucket < reach) continue;
            needed++;
            reach = bucket + max * size;
          }
          expect(windows.length).toBe(needed);
        },
      ),
      { seed, numRuns: 2_000 },
    );
  });
});

describe("coverTasks", () => {
  const scope = (scopeId: number, buckets: number[], within = [days(0, 45)]) => ({
    scopeId,
    meter: "traces" as const,
    groupBy: "workspace" as const,
    workspaceId: `w${scopeId}`,
    buckets,
    within,
  });

  const shown = (scopes: Parameters<typeof coverTasks>[0]) =>
    coverTasks(scopes, "day").map((one) => `${inDays([one.window]).join()}: ${scopeIdsOf(one)}`);

  test("lets workspaces share a request where each has a bucket", () => {
    expect(shown([scope(1, [day(3), day(40)]), scope(2, [day(5)])])).toEqual(["3,6: 1,2", "40,41: 1"]);
  });

  test("leaves out of a request the workspace whose bucket begins where the window ends", () => {
    expect(shown([scope(1, [day(0), day(30)]), scope(2, [day(31)])])).toEqual(["0,31: 1", "31,32: 2"]);
  });

  test("asks for one workspace at a time by any other dimension", () => {
    const users = [1, 2].map((id) => ({ ...scope(id, [day(3)]), groupBy: "user" as const }));
    expect(coverTasks(users, "day").map(workspaceIdsOf)).toEqual([["w1"], ["w2"]]);
  });
});

test("requests by workspace hold 50 workspaces at most, and all others one", () => {
  const members = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ workspaceId: `w${i}`, scopeId: 100 + i }));
  const byWorkspace = batchesOf({ meter: "traces", groupBy: "workspace" }, members(120));
  expect(byWorkspace.map(({ length }) => length)).toEqual([50, 50, 20]);
  expect(byWorkspace.flat()).toEqual(members(120));
  const byUser = batchesOf({ meter: "traces", groupBy: "user" }, members(3));
  expect(byUser).toEqual(members(3).map((one) => [one]));
  expect(batchesOf({ meter: "sandboxes", groupBy: "workspace" }, members(3))).toHaveLength(3);
  expect(batchesOf({ meter: "traces", groupBy: "workspace" }, [])).toEqual([]);
});
