import { describe, expect, test } from "vitest";
import { type PlannedScope, planTasks } from "../../../../../src/core/domain/planning/plan-tasks.ts";
import { scopeIdsOf, workspaceIdsOf } from "../../../../../src/core/domain/planning/request.ts";
import { ALL_TIME } from "../../../../../src/core/domain/time/intervals.ts";
import { DAY_MS, STRIDE_MS, STRIDES, type Stride } from "../../../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../../../src/core/domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../../../../src/core/domain/usage/record.ts";

const WEEK0 = Math.ceil(Date.UTC(2026, 0, 5) / STRIDE_MS.week) * STRIDE_MS.week;
const days = (start: number, end: number) => ({ start: WEEK0 + start * DAY_MS, end: WEEK0 + end * DAY_MS });

function scopes(
  groupBy: GroupBy,
  workspaceId: string,
  missing: Partial<Record<Stride, Interval[]>> = {},
): PlannedScope[] {
  const nth = GROUPINGS.indexOf(groupBy) * 100 + Number(workspaceId.slice(1)) * 10;
  return STRIDES.map((stride, i) => ({
    groupBy,
    workspaceId,
    stride,
    scopeId: nth + i,
    missing: missing[stride] ?? [ALL_TIME],
  }));
}

const planned = (all: PlannedScope[], stride: Stride, range: Interval, dataStart = WEEK0 - 400 * DAY_MS) =>
  planTasks({ meter: "traces", scopes: all, wanted: [{ stride, range }], dataStart }).map((task) => [
    `${task.groupBy} ${task.window.stride}`,
    (task.window.start - WEEK0) / DAY_MS,
    (task.window.end - WEEK0) / DAY_MS,
    workspaceIdsOf(task).join(),
    scopeIdsOf(task).join(),
  ]);

describe("tasks", () => {
  test("come by workspace first, then the newest first", () => {
    const all = [...scopes("user", "w1"), ...scopes("workspace", "w1")];
    expect(planned(all, "day", days(0, 40))).toEqual(
      [
        ["workspace day", 9, 40, "w1", "11"],
        ["workspace day", 0, 9, "w1", "11"],
        ["user day", 9, 40, "w1", "211"],
        ["user day", 0, 9, "w1", "211"],
      ].map((task) => expect.arrayContaining([task[0], task[3], task[4]])),
    );
    const starts = planned(scopes("user", "w1"), "day", days(0, 80)).map(([, start]) => Number(start));
    expect(starts).toEqual(starts.toSorted((a, b) => b - a));
    expect(starts.length).toBe(3);
  });

  test("come by day before those by hour, which their days may spare", () => {
    const wanted = (["hour", "day"] as const).map((stride) => ({ stride, range: days(0, 2) }));
    const all = [...scopes("user", "w1"), ...scopes("project", "w1"), ...scopes("workspace", "w1")];
    const tasks = planTasks({ meter: "traces", scopes: all, wanted, dataStart: WEEK0 });
    const hours = (groupBy: string) => new Array(3).fill(`${groupBy} hour`);
    expect(tasks.map(({ groupBy, window }) => `${groupBy} ${window.stride}`)).toEqual([
      "workspace day",
      ...hours("workspace"),
      "project day",
      "user day",
      ...hours("project"),
      ...hours("user"),
    ]);
  });

  test("are shared by workspaces that miss the same time, and by no others", () => {
    const all = [
      ...scopes("workspace", "w1"),
      ...scopes("workspace", "w2"),
      ...scopes("workspace", "w3", { day: [days(2, 3)] }),
      ...scopes("workspace", "w4", { day: [days(0, 3)] }),
      ...scopes("user", "w1"),
      ...scopes("user", "w2"),
    ];
    expect(planned(all, "day", days(0, 5))).toEqual([
      ["workspace day", 2, 3, "w3", "31"],
      ["workspace day", 0, 5, "w1,w2", "11,21"],
      ["workspace day", 0, 3, "w4", "41"],
      ["user day", 0, 5, "w1", "211"],
      ["user day", 0, 5, "w2", "221"],
    ]);
  });

  test("ask only for what is missing, widened to whole days, and for nothing before the data start", () => {
    const half = DAY_MS / 2;
    const missing = { start: WEEK0 + 2 * DAY_MS + half, end: WEEK0 + 3 * DAY_MS + half };
    const all = scopes("user", "w1", { day: [missing, days(20, 30)] });
    expect(planned(all, "day", days(0, 10))).toEqual([["user day", 2, 4, "w1", "211"]]);
    expect(planned(all, "day", days(0, 10), WEEK0 + 3 * DAY_MS)).toEqual([["user day", 3, 4, "w1", "211"]]);
    expect(planned(all, "day", days(0, 10), WEEK0 + 10 * DAY_MS)).toEqual([]);
    expect(planned(scopes("user", "w1", { day: [] }), "day", days(0, 10))).toEqual([]);
  });
});
