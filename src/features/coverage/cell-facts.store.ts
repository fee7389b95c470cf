import { sql } from "kysely";
import type { Interval } from "../../core/domain/time/window.ts";
import { iso, listOf } from "../../core/store/db/expressions.ts";
import { type Database, queryOne, type Row } from "../../core/store/db/query.ts";

/** Most entries of a list. Instants are ISO texts in UTC. */

export const MOST = 50;

interface Part extends Row<"usage.scope", "groupBy" | "stride"> {
  readonly from: string;
  readonly to: string;
}

export interface CurrentResponse extends Part, Row<"usage.coverage", "fetchNumber"> {
  readonly isFinal: boolean;
  readonly fetchedAt: string;
  /** When a response by workspace last confirmed each day's sum, if later. Null: hours and final days. */
  readonly sumConfirmedAt: string | null;
  /** Null: the ledger no longer has the request. */
  readonly request: (Part & Row<"usage.fetch", "workspaces" | "records" | "traces" | "runId">) | null;
}

export interface CellFailure
  extends Part,
    Row<"usage.failure", "state" | "code" | "message" | "attempts" | "fetchNumber"> {
  readonly failedAt: string;
  readonly retryAt: string;
}

export interface CellProof extends Part {
  readonly how: "export" | "total";
  readonly provedAt: string;
  readonly fetchNumber: number;
}

type CellTask = Part & Row<"usage.fetch_task", "state" | "backfillId">;

export interface CellFacts {
  readonly responses: readonly CurrentResponse[];
  readonly failures: readonly CellFailure[];
  readonly proofs: readonly CellProof[];
  readonly tasks: readonly CellTask[];
  readonly withdrawn: readonly (Part & { readonly invalidatedAt: string })[];
  readonly traces: readonly (Row<"usage.scope", "groupBy" | "stride"> & { readonly traces: number })[];
}

interface Requested {
  readonly source: string;
  readonly workspaceId: string;
  readonly scopeIds: readonly number[];
  readonly range: Interval;
}

export async function cellFacts(
  db: Database,
  { source, workspaceId, scopeIds, range }: Requested,
): Promise<CellFacts> {
  const [start, end] = [sql`${new Date(range.start)}::timestamptz`, sql`${new Date(range.end)}::timestamptz`];
  const overlaps = (row: string) => sql`
    ${sql.raw(`${row}.scope_id`)} = any (${scopeIds}::integer[])
    and ${sql.raw(`${row}.period_start`)} < ${end} and ${sql.raw(`${row}.period_end`)} > ${start}
  `;
  const part = (row: string) => sql`
    c.group_by as "groupBy", c.stride, ${iso(`${row}.period_start`)} as "from", ${iso(`${row}.period_end`)} as "to"
  `;
  return queryOne<CellFacts>(db)`
    select
      ${listOf(sql`
        select ${part("v")}, v.final as "isFinal", v.fetch_number as "fetchNumber", ${iso("v.fetched_at")} as "fetchedAt",
               ${iso("confirmed.at")} as "sumConfirmedAt",
               case when f.fetch_number is not null then json_build_object(
                 'groupBy', f.group_by, 'stride', f.stride, 'from', ${iso("f.period_start")}, 'to', ${iso("f.period_end")},
                 'workspaces', f.workspaces, 'records', f.records, 'traces', f.traces, 'runId', f.run_id
               ) end as request
        from usage.coverage v join usage.trace_scope c using (scope_id) left join usage.fetch f using (fetch_number)
        left join lateral (
          select min(d.at) as at
          from (
            select usage.sum_confirmed_at(v.scope_id, day::date) as at
            from generate_series(
              greatest(v.period_start, ${start}) at time zone 'UTC', least(v.period_end, ${end}) at time zone 'UTC' - interval '1 second', interval '1 day'
            ) day
          ) d
          where c.stride = 'day' and c.group_by <> 'workspace' and not v.final
          having bool_and(d.at > v.fetched_at and d.at is not null)
        ) confirmed on true
        where ${overlaps("v")}
        order by usage.dimension_position(c.group_by), v.period_start limit ${MOST}
      `)} as responses,
      ${listOf(sql`
        select ${part("f")}, f.state, f.code, f.message, f.attempts, ${iso("f.failed_at")} as "failedAt",
               ${iso("f.retry_at")} as "retryAt", f.fetch_number as "fetchNumber"
        from usage.failure f join usage.trace_scope c using (scope_id)
        where ${overlaps("f")}
        order by f.period_start, usage.dimension_position(c.group_by) limit ${MOST}
      `)} as failures,
      ${listOf(sql`
        select ${part("r")}, 'export' as how, ${iso("r.reconciled_at")} as "provedAt", r.fetch_number as "fetchNumber"
        from usage.reconciled r join usage.trace_scope c using (scope_id) where ${overlaps("r")}
        union all
        select c.group_by, c.stride, ${iso("m.total_start")}, ${iso("m.total_end")}, 'total', ${iso("m.matched_at")}, m.fetch_number
        from usage.matched_total m join usage.trace_scope c using (scope_id) where ${overlaps("m")}
        order by "from", "groupBy", how limit ${MOST}
      `)} as proofs,
      ${listOf(sql`
        select w.group_by as "groupBy", w.stride, ${iso("w.period_start")} as "from", ${iso("w.period_end")} as "to", w.state,
               w.backfill_id as "backfillId"
        from usage.fetch_task w join usage.source s using (source_id)
        where s.slug = ${source} and w.state in ('waiting', 'queued') and w.period_start < ${end} and w.period_end > ${start}
          and ${workspaceId} = any (w.workspace_ids)
          and w.scope_ids && ${scopeIds}::integer[]
        order by w.task_id limit ${MOST}
      `)} as tasks,
      ${listOf(sql`
        select ${part("w")}, ${iso("w.invalidated_at")} as "invalidatedAt"
        from usage.withdrawal w join usage.trace_scope c using (scope_id) where ${overlaps("w")}
        order by w.invalidated_at desc, w.period_start limit ${MOST}
      `)} as withdrawn,
      ${listOf(sql`
        select c.group_by as "groupBy", c.stride, coalesce(sum(r.traces), 0)::bigint as traces
        from usage.trace_scope c
        join usage.series s using (scope_id)
        cross join lateral (
          select sum(traces) as traces from usage.dated_record d
          where c.stride = 'day' and d.series_id = s.series_id and d.bucket_start >= (${start} at time zone 'UTC')::date
            and d.bucket_start < (${end} at time zone 'UTC')::date
          union all
          select sum(traces) from usage.hourly_record h
          where c.stride = 'hour' and h.series_id = s.series_id and h.bucket_start >= ${start} and h.bucket_start < ${end}
        ) r
        where c.scope_id = any (${scopeIds}::integer[])
        group by c.group_by, c.stride
      `)} as traces
  `;
}
