import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { isConfigured } from "../access/workspaces.ts";
import type { ServerCapability } from "../catalog/server-capabilities.ts";
import { METER_STARTS, type MeterStarts } from "../catalog/source-meters.ts";
import { type Database, query, queryOne, type Row } from "../db/query.ts";

export interface PlanFacts {
  readonly records: number;
  readonly hasMoreRecords: boolean;
  /** Closed months, such as `2026-03`, with a day in the windows. Their later changes are adjustments. */
  readonly closedMonths: readonly string[];
  readonly routineTasks: number;
  readonly backfillTasks: number;
}

export async function planFacts(
  db: Database,
  wanted: { sourceId: number; windows: ReadonlyMap<number, readonly Interval[]>; most?: number | undefined },
): Promise<PlanFacts> {
  const { sourceId, windows, most } = wanted;
  const limit = most === undefined ? 2 ** 31 : most + 1;
  const parts = [...windows].flatMap(([scopeId, some]) =>
    some.map(({ start, end }) => ({
      scope_id: scopeId,
      period_start: new Date(start).toISOString(),
      period_end: new Date(end).toISOString(),
    })),
  );
  const facts = await queryOne<Omit<PlanFacts, "hasMoreRecords">>(db)`
    with part as materialized (
      select p.*, c.stride
      from json_to_recordset(${JSON.stringify(parts)}::json) p (scope_id integer, period_start timestamptz, period_end timestamptz)
      join usage.trace_scope c using (scope_id)
    )
    select (
      select count(*)::integer from (
        -- By series, each by its key: a limit inside keeps Postgres from reading whole tables of records.
        select 1 from part p join usage.series s using (scope_id)
        cross join lateral (
          select 1 from usage.hourly_record r
          where r.series_id = s.series_id and r.bucket_start >= p.period_start and r.bucket_start < p.period_end
          limit ${limit}::bigint
        ) r
        where p.stride = 'hour'
        union all
        select 1 from part p join usage.series s using (scope_id)
        cross join lateral (
          select 1 from usage.dated_record r
          where r.series_id = s.series_id and r.bucket_start >= (p.period_start at time zone 'UTC')::date
            and r.bucket_start < (p.period_end at time zone 'UTC')::date
          limit ${limit}::bigint
        ) r
        where p.stride <> 'hour'
        limit ${limit}::bigint
      ) r
    ) as records, array(
      select to_char(m.month_start, 'YYYY-MM') from usage.close m
      where m.source_id = ${sourceId} and m.month_start is not null and exists (
        select from part p
        where p.period_start < m.period_end::timestamp at time zone 'UTC'
          and p.period_end > m.month_start::timestamp at time zone 'UTC'
      ) order by 1
    ) as "closedMonths", w.*
    from (
      select count(*) filter (where x.backfill_id is null)::integer as "routineTasks",
             count(*) filter (where x.backfill_id is not null)::integer as "backfillTasks"
      from usage.fetch_task x left join usage.backfill b using (backfill_id)
      where x.source_id = ${sourceId} and x.state in ('waiting', 'queued') and b.state is distinct from 'paused'
    ) w
  `;
  const hasMoreRecords = most !== undefined && facts.records > most;
  return { ...facts, records: hasMoreRecords ? (most as number) : facts.records, hasMoreRecords };
}

export interface PlannableSource {
  readonly sourceId: number;
  /** Start of a UTC day, epoch ms. */
  readonly dataStart: number;
  readonly meters: ReadonlyMap<Meter, number>;
  readonly capabilities: ReadonlySet<ServerCapability>;
  readonly strideRetries: ReadonlySet<ServerCapability>;
  readonly workspaces: readonly { readonly id: string; readonly name: string | null }[];
}

interface PlannableRow
  extends Row<"usage.source", "sourceId" | "dataStart">,
    Pick<PlannableSource, "workspaces"> {
  readonly meters: MeterStarts;
  readonly capabilities: readonly { readonly capability: ServerCapability; readonly retryDue: boolean }[];
}

/** Undefined before the first contact. */
export async function plannableSource(db: Database, slug: string): Promise<PlannableSource | undefined> {
  const [row] = await query<PlannableRow>(db)`
    select s.source_id as "sourceId", s.data_start::text as "dataStart",
           (
             select coalesce(json_agg(json_build_object(
               'capability', f.fact, 'retryDue', coalesce(f.probe_after <= now(), false)) order by f.fact), '[]')
             from usage.source_fact f where f.source_id = s.source_id
           ) as capabilities,
           ${METER_STARTS} as meters,
           (
             select coalesce(json_agg(json_build_object('id', e.external_id, 'name', l.dimension_name) order by e.external_id), '[]')
             from usage.workspace w join usage.entity e using (entity_id) join usage.labelled_entity l using (entity_id)
             where e.source_id = s.source_id and ${isConfigured}
           ) as workspaces
    from usage.source s where s.slug = ${slug}
  `;
  return (
    row && {
      sourceId: row.sourceId,
      dataStart: Date.parse(row.dataStart),
      meters: new Map(row.meters),
      capabilities: new Set(row.capabilities.map(({ capability }) => capability)),
      strideRetries: new Set(
        row.capabilities.filter((one) => one.retryDue).map(({ capability }) => capability),
      ),
      workspaces: row.workspaces,
    }
  );
}
