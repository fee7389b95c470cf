import type { UnstoredRequest } from "../../core/domain/planning/request.ts";
import { DAY_MS, HOUR_MS, type Stride } from "../../core/domain/time/stride.ts";
import type { Interval, Window } from "../../core/domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../core/domain/usage/record.ts";

/** A window of a plan. `requests` has a number for each dimension, in the order of `GROUPINGS`. */
export interface PlannedWindow extends Window {
  readonly requests: readonly number[];
}

export function windowsOf(tasks: readonly UnstoredRequest[]): PlannedWindow[] {
  const byWindow = Map.groupBy(tasks, ({ window: { stride, start, end } }) => `${stride} ${start} ${end}`);
  return [...byWindow.values()]
    .map((group) => {
      const { stride, start, end } = (group[0] as UnstoredRequest).window;
      const requests = GROUPINGS.map((by) => group.filter(({ groupBy }) => groupBy === by).length);
      return { stride, start, end, requests };
    })
    .sort((a, b) => a.start - b.start || a.end - b.end);
}

export function requestsOfWindow({ requests }: PlannedWindow): number {
  return requests.reduce((sum, count) => sum + count, 0);
}

export type LeftOutReason = "before_data_start" | "future" | "final" | "not_available";

export interface LeftOut {
  readonly reason: LeftOutReason;
  readonly first: number;
  readonly end: number;
  readonly buckets: number;
}

export function outsideOf(
  requested: Interval,
  given: { range: Interval | undefined; dataStart: number; stride: Stride; scopes: number },
): LeftOut[] {
  const { range, dataStart, stride, scopes } = given;
  const unit = stride === "hour" ? HOUR_MS : DAY_MS;
  const part = (reason: LeftOutReason, first: number, end: number): LeftOut[] =>
    first < end ? [{ reason, first, end, buckets: Math.ceil((end - first) / unit) * scopes }] : [];
  return [
    ...part("before_data_start", requested.start, Math.min(dataStart, requested.end)),
    ...part(
      "future",
      Math.max(requested.start, range?.end ?? requested.start, Math.min(dataStart, requested.end)),
      requested.end,
    ),
  ];
}

export function leftOutOf(reason: LeftOutReason, stride: Stride, parts: readonly Interval[]): LeftOut[] {
  if (parts.length === 0) return [];
  const unit = stride === "hour" ? HOUR_MS : DAY_MS;
  return [
    {
      reason,
      first: parts.reduce((least, { start }) => Math.min(least, start), Infinity),
      end: parts.reduce((most, { end }) => Math.max(most, end), -Infinity),
      buckets: parts.reduce((sum, { start, end }) => sum + Math.ceil((end - start) / unit), 0),
    },
  ];
}

export function requestsByDimension(
  tasks: readonly UnstoredRequest[],
  groupings: readonly GroupBy[],
): { readonly groupBy: GroupBy; readonly requests: number }[] {
  return GROUPINGS.filter((groupBy) => groupings.includes(groupBy)).map((groupBy) => ({
    groupBy,
    requests: tasks.filter((one) => one.groupBy === groupBy).length,
  }));
}

export const LEFT_OUT: Readonly<Record<LeftOutReason, string>> = {
  before_data_start: "before the data start, so nothing is requested",
  future: "in the future, so nothing is requested",
  final: "final already, so not fetched again",
  not_available: "not available in that stride, so the requests are dropped",
};
