import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import type { FaultStep } from "../../src/features/standin/engine/faults.ts";
import type { SandboxHour } from "../../src/features/standin/engine/sandboxes.ts";
import { now } from "./clock.ts";
import { type Bench, setup } from "./source.ts";
import { SANDBOX_FAULTS } from "./wrong-bodies.ts";

export const ALL = { settings: { meters: ["traces", "sandboxes"] } } as const;

export async function setupSandboxes(options: Parameters<typeof setup>[0] = {}): Promise<Bench> {
  const start = new Date(now() - (options.days ?? 6) * DAY_MS).toISOString().slice(0, 10);
  return setup({
    workspaces: [0, 1],
    hourlyForMs: HOUR_MS,
    ...options,
    standin: { sandboxes: "on", deploymentStart: start, ...options.standin },
  });
}

export function hoursOf({ standin, workspaceIds, dataStart, now }: Bench): SandboxHour[] {
  return workspaceIds.flatMap((workspaceId) =>
    standin.sandboxLedger.hours({ workspaceId, start: dataStart, end: now }),
  );
}

export function inLedger(bench: Bench, by: "workspace" | "sandbox"): string[] {
  const sums = new Map<string, [number, number]>();
  for (const { resourceId, workspaceId, hour, lcu, lsu } of hoursOf(bench)) {
    const day = new Date(hour).toISOString().slice(0, 10);
    const id = by === "workspace" ? workspaceId : resourceId;
    const key = `${day} ${workspaceId} ${id}`;
    const [ofLcu, ofLsu] = sums.get(key) ?? [0, 0];
    sums.set(key, [ofLcu + lcu, ofLsu + lsu]);
  }
  return [...sums].map(([key, [lcu, lsu]]) => `${key} ${lcu} ${lsu}`).sort();
}

const millionths = (measure: string) =>
  `trim_scale(coalesce(sum(quantity) FILTER (WHERE measure = '${measure}'), 0) * 1000000)`;

export async function inViews({ sql }: Bench, by: "workspace" | "sandbox"): Promise<string[]> {
  const rows = await sql<{ line: string }>(
    `SELECT concat_ws(' ', usage_date, workspace_id, dimension_id, ${millionths("lcu")}, ${millionths("lsu")}) AS line
     FROM reporting_detail.fct_other_usage_daily WHERE group_by = '${by}' AND meter = 'sandboxes'
     GROUP BY usage_date, workspace_id, dimension_id HAVING sum(quantity) > 0`,
  );
  return rows.map(({ line }) => line).sort();
}

export const PATH = "/sandboxes/usage/";
export const fault = (wrong: keyof typeof SANDBOX_FAULTS, times = 1): FaultStep => ({
  fault: SANDBOX_FAULTS[wrong],
  match: { path: PATH, query: { granularity: "HOUR" } },
  times,
  // The first request has no cursor.
  skip: wrong === "cursor-expired" ? 1 : 0,
});
