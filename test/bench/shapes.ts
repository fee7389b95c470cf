import { createHash } from "node:crypto";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";

export interface Shape {
  readonly name: string;
  readonly about: string;
  readonly workspaces: number;
  readonly usersPerWorkspace: number;
  readonly days: number;
  readonly everyDays: number;
  readonly differingDays?: number;
}

const FIRST_DAY = Date.parse("2026-01-05T00:00:00Z");
export const WINDOW_DAYS = 31;
const TEN_WINDOWS = 10 * WINDOW_DAYS;

export function shapes(records: number, tasks: number): Shape[] {
  return [
    {
      name: "windows",
      about: "ten responses, one workspace, 31-day windows",
      workspaces: 1,
      usersPerWorkspace: Math.ceil(records / TEN_WINDOWS),
      days: TEN_WINDOWS,
      everyDays: 1,
    },
    {
      name: "one",
      about: "all in a single response, one 31-day window",
      workspaces: 1,
      usersPerWorkspace: Math.ceil(records / WINDOW_DAYS),
      days: WINDOW_DAYS,
      everyDays: 1,
    },
    {
      name: "small",
      about: "about 20 records a response, ten windows a workspace",
      workspaces: Math.ceil(tasks / 10),
      usersPerWorkspace: 4,
      days: TEN_WINDOWS,
      everyDays: 6,
    },
  ];
}

export function recordsOf(shape: Shape): number {
  const { workspaces, usersPerWorkspace, days, everyDays } = shape;
  return workspaces * usersPerWorkspace * Math.ceil(days / everyDays);
}

export function sumOfTraces(shape: Shape): number {
  const days = activeDays(shape, 0, shape.days);
  let sum = 0;
  for (let user = 0; user < shape.workspaces * shape.usersPerWorkspace; user++) {
    for (const day of days) sum += tracesOf(user, day);
  }
  return sum;
}

export function activeDays(shape: Shape, from: number, to: number): number[] {
  const all = Array.from({ length: to - from }, (_, i) => from + i);
  return all.filter((day) => day % shape.everyDays === 0);
}

export function tracesOf(user: number, day: number): number {
  return ((user * 7919 + day * 104_729) % 4999) + 1;
}

export function workspaceId(workspace: number): string {
  return uuidOf(`workspace ${workspace}`);
}

export function userId(user: number): string {
  return uuidOf(`user ${user}`);
}

function uuidOf(name: string): string {
  const hex = createHash("md5").update(name).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

export function dayOf(day: number): number {
  return FIRST_DAY + day * DAY_MS;
}

export function dimensionsOf(groupBy: string, n: number, workspace: { id: string; place: number }): object {
  const last = n.toString(16).padStart(12, "0");
  if (groupBy === "workspace")
    return { workspace_id: workspace.id, workspace_name: `Workspace ${workspace.place}` };
  if (groupBy === "project")
    return { project_id: `00000000-0000-4000-9000-${last}`, project_name: `Project ${n}` };
  if (groupBy === "user")
    return { user_id: `00000000-0000-4000-8000-${last}`, user_email: `user.${n}@example.com` };
  return { api_key_short_key: `lsv2_${n}` };
}
