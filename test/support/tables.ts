import { DAY_MS, STRIDE_MS, type Stride } from "../../src/core/domain/time/stride.ts";
import type { Interval } from "../../src/core/domain/time/window.ts";
import type { Meter } from "../../src/core/domain/usage/meter.ts";
import type { GroupBy } from "../../src/core/domain/usage/record.ts";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import type { Standin } from "../../src/features/standin/server.ts";
import type { Bench } from "./source.ts";

export type Figures = Map<string, number>;

interface Requested {
  readonly stride: Stride;
  readonly range: Interval;
  readonly groupings?: readonly GroupBy[];
  readonly workspaceIds?: readonly string[];
}

export function inLedger(standin: Standin, requested: Requested): Figures {
  const { ledger, organisation, access } = standin;
  const size = STRIDE_MS[requested.stride];
  const count = (requested.range.end - requested.range.start) / size;
  const edges = Array.from({ length: count + 1 }, (_, i) => requested.range.start + i * size);
  const requests = (id: string) =>
    requested.workspaceIds === undefined || requested.workspaceIds.includes(id);
  /** By key without its bucket: added up as numbers, since a line for each stream and hour takes seconds. */
  const sums = new Map<string, { groupBy: GroupBy; workspace: string; id: string; traces: Float64Array }>();
  for (const stream of organisation.streams) {
    const { project, user, key } = stream;
    const { workspace } = project;
    if (!requests(workspace.id) || !access.canRead(workspace)) continue;
    const counts = ledger.counts(stream, edges);
    const ids: Record<GroupBy, string> = {
      workspace: workspace.id,
      project: project.id,
      user: user?.id ?? "",
      api_key: key?.shortKey ?? "",
    };
    for (const groupBy of requested.groupings ?? GROUPINGS) {
      const id = ids[groupBy];
      const name = `${groupBy} ${workspace.id} ${id}`;
      const sum = sums.get(name) ?? { groupBy, workspace: workspace.id, id, traces: new Float64Array(count) };
      sums.set(name, sum);
      for (const [i, traces] of counts.entries()) sum.traces[i] = (sum.traces[i] ?? 0) + traces;
    }
  }
  const figures: Figures = new Map();
  const instants = edges.map((edge) => new Date(edge).toISOString());
  for (const { groupBy, workspace, id, traces } of sums.values()) {
    for (const [i, sum] of traces.entries()) {
      if (sum !== 0) figures.set(line(groupBy, requested.stride, instants[i] ?? "", workspace, id), sum);
    }
  }
  return figures;
}

export async function inStore(
  { sql }: Pick<Bench, "sql">,
  strides: readonly Stride[] = ["hour", "day"],
): Promise<Figures> {
  const rows = await sql<Stored>(
    `SELECT c.group_by, c.stride, r.bucket_start, w.external_id AS workspace, e.external_id AS dimension, r.traces
     FROM (
       SELECT series_id, bucket_start, traces FROM usage.hourly_record
       UNION ALL
       SELECT series_id, bucket_start::timestamp AT TIME ZONE 'UTC', traces FROM usage.dated_record
     ) r
     JOIN usage.series s USING (series_id)
     JOIN usage.trace_scope c USING (scope_id)
     JOIN usage.entity w ON w.entity_id = c.workspace_id
     JOIN usage.entity e ON e.entity_id = s.entity_id
     WHERE c.stride = ANY ($1) AND r.traces > 0`,
    [strides],
  );
  return new Map(
    rows.map((row) => [
      line(row.group_by, row.stride, row.bucket_start.toISOString(), row.workspace, row.dimension),
      row.traces,
    ]),
  );
}

interface Stored {
  group_by: string;
  stride: string;
  bucket_start: Date;
  workspace: string;
  dimension: string;
  traces: number;
}

function line(groupBy: string, stride: string, at: string, workspace: string, dimension: string): string {
  return `${groupBy} ${stride} ${at} ${workspace} ${dimension}`;
}

export function differences(stored: Figures, expected: Figures): string[] {
  return [...new Set([...stored.keys(), ...expected.keys()])]
    .filter((key) => stored.get(key) !== expected.get(key))
    .sort()
    .slice(0, 20)
    .map((key) => `${key}: stored ${stored.get(key) ?? "nothing"}, ledger ${expected.get(key) ?? "nothing"}`);
}

export function together(...all: readonly Figures[]): Figures {
  return new Map(all.flatMap((figures) => [...figures]));
}

type Kept = Pick<Bench, "sql" | "standin" | "dataStart" | "today" | "workspaceIds">;

/** What the ledger has of a bench's workspaces: days since the data start, and hours of so many whole days and of today. */
export function booked(
  bench: Omit<Kept, "sql">,
  {
    hourDays = 0,
    workspaceIds = bench.workspaceIds,
  }: { hourDays?: number; workspaceIds?: readonly string[] } = {},
): Figures {
  const { standin, dataStart, today } = bench;
  const requested = workspaceIds.length === 0 ? {} : { workspaceIds };
  const within = (start: number) => ({ ...requested, range: { start, end: today + DAY_MS } });
  const days = inLedger(standin, { stride: "day", ...within(dataStart) });
  if (hourDays === 0) return days;
  const since = Math.max(dataStart, today - hourDays * DAY_MS);
  return together(days, inLedger(standin, { stride: "hour", ...within(since) }));
}

/** Where days, and hours if they are booked too, are not stored as the ledger has them. */
export async function wrongFigures(bench: Kept, of: Parameters<typeof booked>[1] = {}): Promise<string[]> {
  const strides = (of.hourDays ?? 0) === 0 ? (["day"] as const) : (["day", "hour"] as const);
  return differences(await inStore(bench, strides), booked(bench, of));
}

export function totals(figures: Figures): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const [key, traces] of figures) {
    const [groupBy, stride] = key.split(" ");
    sums[`${groupBy} ${stride}`] = (sums[`${groupBy} ${stride}`] ?? 0) + traces;
  }
  return sums;
}

export async function dump(bench: Pick<Bench, "sql">) {
  const lines = async (text: string) =>
    (await bench.sql<{ line: string }>(text)).map((row) => row.line).sort();
  return {
    records: await lines(`
      SELECT concat_ws(' ', src.slug, c.group_by, c.stride, r.bucket_start, w.external_id, e.external_id, r.traces) AS line
      FROM (
        SELECT series_id, bucket_start::text, traces FROM usage.hourly_record
        UNION ALL SELECT series_id, bucket_start::text, traces FROM usage.dated_record
      ) r
      JOIN usage.series s USING (series_id) JOIN usage.trace_scope c USING (scope_id)
      JOIN usage.source src USING (source_id)
      JOIN usage.entity w ON w.entity_id = c.workspace_id JOIN usage.entity e ON e.entity_id = s.entity_id`),
    coverage: await lines(`
      SELECT concat_ws(' ', c.group_by, c.stride, w.external_id, v.final, range_agg(tstzrange(period_start, period_end))) AS line
      FROM usage.coverage v JOIN usage.trace_scope c USING (scope_id) JOIN usage.entity w ON w.entity_id = c.workspace_id
      GROUP BY c.group_by, c.stride, w.external_id, v.final`),
    failures: await lines(`
      SELECT concat_ws(' ', c.group_by, c.stride, w.external_id, f.state, f.code, f.period_start, f.period_end) AS line
      FROM usage.failure f JOIN usage.trace_scope c USING (scope_id) JOIN usage.entity w ON w.entity_id = c.workspace_id`),
    names: await lines(`
      SELECT concat_ws(' ', e.dimension, e.external_id, quote_literal(n.name), e.first_seen_at, e.last_seen_at) AS line
      FROM usage.entity e LEFT JOIN usage.entity_name n USING (entity_id)`),
    restatements: await lines(`
      SELECT concat_ws(' ', c.group_by, c.stride, t.bucket_start, e.external_id, t.old_traces, '>', t.new_traces) AS line
      FROM usage.restatement t JOIN usage.series s USING (series_id) JOIN usage.trace_scope c USING (scope_id)
      JOIN usage.entity e ON e.entity_id = s.entity_id`),
  };
}

export async function unreconciledDays(
  { sql }: Pick<Bench, "sql">,
  { meter = "traces", range }: { meter?: Meter; range: Interval },
): Promise<{ day: number; groupBy: GroupBy; workspaceId: string; reason: string }[]> {
  const rows = await sql<{ day: string; groupBy: GroupBy; workspaceId: string; reason: string }>(
    `SELECT day::text, o.group_by AS "groupBy", e.external_id AS "workspaceId", r.reason
     FROM usage.open_days o
     JOIN usage.entity e ON e.entity_id = o.workspace_id
     JOIN usage.day_state s USING (scope_id)
     LEFT JOIN usage.day_proof p USING (scope_id)
     CROSS JOIN LATERAL (
       VALUES ('open', o.open), ('platform_disagrees', o.platform_disagrees - o.open),
              ('not_reconciled', s.final - coalesce(p.compared, '{}') - o.open - o.platform_disagrees)
     ) r (reason, days)
     CROSS JOIN LATERAL usage.days_of(r.days * s.final * datemultirange(daterange($2::date, $3::date))) day
     WHERE o.meter = $1
     ORDER BY day, usage.dimension_position(o.group_by), e.external_id COLLATE "C"`,
    [meter, new Date(range.start), new Date(range.end)],
  );
  return rows.map(({ day, ...row }) => ({ day: Date.parse(day), ...row }));
}
