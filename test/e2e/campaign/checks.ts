import { expect } from "vitest";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import type { Ended } from "../../support/cli.ts";
import { differences, type Figures, inLedger } from "../../support/tables.ts";
import type { World } from "./world.ts";

export const DIMENSIONS = ["workspace", "project", "user", "api_key"] as const;

interface RangeLine {
  readonly groupBy: string;
  readonly stride: string;
  readonly status: string;
  readonly buckets: number;
}

interface Requested {
  readonly from: string;
  readonly to: string;
  readonly stride: "day" | "hour";
  readonly dimensions: readonly string[];
  /** The hours from this day on were asked for too, but for those that the server does not respond. */
  readonly hoursFrom?: string;
}

const STOPPED = [1, 2, 5, 6];

/** A load's exit code is 0 only if the view shows every bucket as loaded, and its lines count what the view counts. */
export async function checkLoad(
  world: World,
  ended: Ended & { said: unknown },
  requested: Requested,
): Promise<void> {
  if (STOPPED.includes(ended.code ?? 1)) return;
  const shown = await statuses(world, requested);
  const hours =
    requested.hoursFrom === undefined ? new Map() : await hourStatuses(world, requested.hoursFrom);
  const open = [...shown, ...hours].filter(([status]) => !["final", "provisional"].includes(status));
  const explained = `${world.story.at(-1)}: ${JSON.stringify([...shown, ...hours])}`;
  const [{ range, unknown }] = ended.said as [{ range: RangeLine[]; unknown: unknown[] }];
  const isWhole = open.length === 0 && unknown.length === 0;
  expect([explained, ended.code]).toEqual([explained, isWhole ? 0 : 3]);
  if (requested.stride !== "day") return;
  const said = new Map<string, number>();
  for (const { stride, status, buckets } of range) {
    if (stride === "day") said.set(status, (said.get(status) ?? 0) + buckets);
  }
  expect([explained, sorted(said)]).toEqual([explained, sorted(shown)]);
}

async function statuses(
  { bench, env }: World,
  { from, to, stride, dimensions }: Requested,
): Promise<Map<string, number>> {
  const rows = await bench.sql<{ status: string; days: number }>(
    `SELECT CASE WHEN status IN ('ok', 'empty') THEN 'final' ELSE status END AS status, count(*)::integer AS days
     FROM reporting_detail.usage_coverage_daily
     WHERE stride = $1 AND usage_date >= $2::date AND usage_date < $3::date AND group_by = ANY ($4) AND workspace_id = ANY ($5)
     GROUP BY 1`,
    [stride, from, to, dimensions, configured(env)],
  );
  const days = ((Date.parse(to) - Date.parse(from)) / DAY_MS) * dimensions.length * configured(env).length;
  const unlisted = days - rows.reduce((sum, row) => sum + row.days, 0);
  const missing = unlisted === 0 ? [] : [{ status: "missing", days: unlisted }];
  const counts = new Map<string, number>();
  for (const row of [...rows, ...missing]) counts.set(row.status, (counts.get(row.status) ?? 0) + row.days);
  return counts;
}

async function hourStatuses({ bench, env }: World, from: string): Promise<Map<string, number>> {
  const rows = await bench.sql<{ status: string; days: number }>(
    `SELECT CASE WHEN status IN ('ok', 'empty') THEN 'final' ELSE status END AS status, count(*)::integer AS days
     FROM reporting_detail.usage_coverage_daily
     WHERE stride = 'hour' AND usage_date >= $1::date AND workspace_id = ANY ($2) AND status <> 'not_available' GROUP BY 1`,
    [from, configured(env)],
  );
  return new Map(rows.map(({ status, days }) => [status, days]));
}

const configured = (env: World["env"]) => env.USAGE_WORKSPACE_IDS?.split(",") ?? [];

const sorted = (counts: ReadonlyMap<string, number>) => [...counts].sort(([a], [b]) => a.localeCompare(b));

/**
 * Every final figure of a day that did not change upstream is the platform's: also a zero, whatever access the key lost
 * since. Provisional days are not looked at: they may be as old as their last fetch.
 */
export async function checkFinalFigures(world: World): Promise<void> {
  const { bench, restated } = world;
  const rows = await bench.sql<{ day: string; workspace: string; traces: number | null; status: string }>(
    `SELECT usage_date::text AS day, workspace_id AS workspace, traces::integer AS traces, coverage_status AS status
     FROM reporting.fct_usage_workspace_daily WHERE is_final`,
  );
  const truth = workspaceDays(world);
  const wrong = rows.filter(
    ({ day, workspace, traces }) =>
      !restated.has(`${workspace} ${day}`) && traces !== (truth.get(`${workspace} ${day}`) ?? 0),
  );
  expect([world.story.slice(-8), wrong]).toEqual([world.story.slice(-8), []]);
}

function workspaceDays({ bench }: World): Map<string, number> {
  const { standin, dataStart, today } = bench;
  const edges: number[] = [];
  for (let day = dataStart; day <= today + DAY_MS; day += DAY_MS) edges.push(day);
  const sums = new Map<string, number>();
  for (const stream of standin.organisation.streams) {
    standin.ledger.counts(stream, edges).forEach((traces, i) => {
      const key = `${stream.project.workspace.id} ${dayOf(edges[i] ?? 0)}`;
      sums.set(key, (sums.get(key) ?? 0) + traces);
    });
  }
  return sums;
}

export async function checkStatus(world: World, ended: Ended & { said: unknown }): Promise<void> {
  const [source] = ended.said as readonly {
    readonly failures: readonly { parts: number; nextRetry: string | null }[];
    readonly openDifferences: number;
  }[];
  const [stored] = await world.bench.sql<{ failures: number; differences: number; now: Date }>(
    `SELECT (SELECT count(*) FROM usage.failure)::integer AS failures, now(),
            (SELECT count(*) FROM usage.difference WHERE state = 'open')::integer AS differences`,
  );
  if (source === undefined) return;
  const parts = source.failures.reduce((sum, one) => sum + one.parts, 0);
  expect([parts, source.openDifferences]).toEqual([stored?.failures, stored?.differences]);
  for (const { nextRetry } of source.failures) {
    if (nextRetry !== null)
      expect(Date.parse(nextRetry)).toBeGreaterThan((stored?.now.getTime() ?? 0) - 20_000);
  }
  if (ended.code === 0) expect(parts).toBe(0);
}

export async function checkReconciled(
  world: World,
  ended: Ended & { said: unknown },
  { from, to }: Pick<Requested, "from" | "to">,
): Promise<void> {
  if (STOPPED.includes(ended.code ?? 1)) return;
  const { bench } = world;
  const [left] = await bench.sql<{ open: number; disagree: number }>(
    `SELECT count(*) FILTER (WHERE d.state = 'open')::integer AS open,
            count(*) FILTER (WHERE d.state = 'platform_disagrees')::integer AS disagree
     FROM usage.difference d JOIN usage.trace_scope c USING (scope_id)
     WHERE d.compared_with = 'export' AND c.stride IN ('day', 'hour') AND d.period_start >= $1 AND d.period_start < $2`,
    [`${from}T00:00Z`, `${to}T00:00Z`],
  );
  const [said] = ended.said as [{ open: number; platformDisagrees: number }];
  expect([said.open, said.platformDisagrees]).toEqual([left?.open, left?.disagree]);
  if (ended.code !== 0) return;
  expect(said.open + said.platformDisagrees).toBe(0);
  const range = { start: Date.parse(from), end: Date.parse(to) };
  const truth = inLedger(bench.standin, { stride: "day", range, workspaceIds: bench.workspaceIds });
  const { shown, finalCells } = await finalFigures(world, { from, to });
  const expected = new Map([...truth].filter(([line]) => finalCells.has(cellOf(line))));
  expect([world.story.slice(-8), differences(shown, expected)]).toEqual([world.story.slice(-8), []]);
}

async function finalFigures({ bench }: World, { from, to }: Pick<Requested, "from" | "to">) {
  const shown: Figures = new Map();
  for (const [dimension, id] of Object.entries(ID_COLUMNS)) {
    const rows = await bench.sql<{ day: string; workspace: string; id: string; traces: number }>(
      `SELECT usage_date::text AS day, workspace_id AS workspace, CASE ${id} WHEN '(none)' THEN '' ELSE ${id} END AS id,
              traces::integer AS traces
       FROM reporting.fct_usage_${dimension}_daily WHERE is_final AND traces > 0 AND usage_date >= $1::date AND usage_date < $2::date`,
      [from, to],
    );
    for (const { day, workspace, id, traces } of rows) {
      shown.set(`${dimension} day ${day}T00:00:00.000Z ${workspace} ${id}`, traces);
    }
  }
  const cells = await bench.sql<{ key: string }>(
    `SELECT concat_ws(' ', group_by, usage_date, workspace_id) AS key FROM reporting_detail.usage_coverage_daily
     WHERE stride = 'day' AND status IN ('ok', 'empty') AND usage_date >= $1::date AND usage_date < $2::date`,
    [from, to],
  );
  return { shown, finalCells: new Set(cells.map(({ key }) => key)) };
}

const ID_COLUMNS = {
  workspace: "workspace_id",
  project: "project_id",
  user: "user_id",
  api_key: "api_key_short_key",
} as const;

function cellOf(line: string): string {
  const [groupBy = "", , bucket = "", workspace = ""] = line.split(" ");
  return `${groupBy} ${bucket.slice(0, 10)} ${workspace}`;
}

export interface Closed {
  readonly state: string;
  readonly traces: number;
  readonly without?: readonly string[];
  readonly digest?: string | null;
}

export async function checkClosed(world: World, ended: Ended & { said: unknown }): Promise<void> {
  if (STOPPED.includes(ended.code ?? 1)) return;
  const { bench, monthStart } = world;
  const [{ state, traces, without = [] }] = ended.said as [Closed];
  expect([world.story.at(-1), ended.code]).toEqual([world.story.at(-1), state === "open" ? 4 : 0]);
  if (state !== "closed") return;
  const nextMonth = new Date(monthStart);
  nextMonth.setUTCMonth(nextMonth.getUTCMonth() + 1);
  const days = await bench.sql<{ status: string; traces: number }>(
    `SELECT d.coverage_status AS status, sum(d.traces)::integer AS traces FROM reporting.fct_usage_workspace_daily d
     WHERE usage_date >= $1::date AND usage_date < $2::date AND workspace_id <> ALL ($3) GROUP BY 1`,
    [dayOf(monthStart), dayOf(nextMonth.getTime()), without],
  );
  expect([world.story.slice(-8), days.filter(({ status }) => !["ok", "empty"].includes(status))]).toEqual([
    world.story.slice(-8),
    [],
  ]);
  expect(traces).toBe(days.reduce((sum, day) => sum + day.traces, 0));
}

export async function figures({ bench }: World): Promise<string> {
  const rows = await bench.sql<{ digest: string }>(
    `SELECT md5(string_agg(x, '|' ORDER BY x)) AS digest FROM (
       SELECT concat_ws(' ', group_by, usage_date, workspace_id, dimension_id, traces) AS x FROM (
         SELECT 'workspace' AS group_by, usage_date, workspace_id, workspace_id AS dimension_id, traces
         FROM reporting.fct_usage_workspace_daily
         UNION ALL SELECT 'project', usage_date, workspace_id, project_id, traces FROM reporting.fct_usage_project_daily
         UNION ALL SELECT 'user', usage_date, workspace_id, user_id, traces FROM reporting.fct_usage_user_daily
         UNION ALL SELECT 'api_key', usage_date, workspace_id, api_key_short_key, traces FROM reporting.fct_usage_api_key_daily
       ) d
     ) x`,
  );
  return rows[0]?.digest ?? "";
}
