import { dayOf, WINDOW_DAYS } from "./shapes.ts";

/** The shape of `bench:backfill`: daily usage by all dimensions. */

/** Each id has a record on each day. Those of a workspace's dimensions have the same sum. */
export interface Company {
  readonly workspaces: number;
  readonly windows: number;
  readonly users: number;
  readonly projects: number;
  readonly keys: number;
}

/** Traces of a workspace on a day, a multiple of most numbers of ids. */
export const TRACES_A_DAY = 720_720;

export function recordsOf({ workspaces, windows, users, projects, keys }: Company): number {
  return workspaces * windows * WINDOW_DAYS * (1 + users + projects + keys);
}

export function tracesOf({ workspaces, windows }: Company): number {
  return workspaces * windows * WINDOW_DAYS * TRACES_A_DAY;
}

/** The range that `--from` and `--to` name. */
export function daysOf({ windows }: Company): { from: string; to: string } {
  const day = (n: number) => new Date(dayOf(n)).toISOString().slice(0, 10);
  return { from: day(0), to: day(windows * WINDOW_DAYS) };
}
