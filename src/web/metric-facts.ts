import { sql } from "kysely";
import type { RestatementCount } from "../core/domain/proof/restatement.ts";
import { METER_OF_SCOPE } from "../core/store/catalog/scopes.ts";
import { listOf } from "../core/store/db/expressions.ts";
import { type Database, queryOne, type Row } from "../core/store/db/query.ts";
import { restatementCounts } from "../core/store/proof/restatement-counts.ts";

interface MetricFacts {
  readonly due: readonly (Row<"usage.fetch_task", "state"> & { source: string; tasks: number })[];
  readonly sources: readonly {
    source: string;
    oldestDueSeconds: number;
    openDifferences: number;
    refused: boolean;
    lostWorkspaces: number;
    invalidatedZeros: number;
  }[];
  readonly freshness: readonly {
    source: string;
    groupBy: string;
    stride: string;
    fetchedAt: number;
    finalUntil: number | null;
  }[];
  readonly failures: readonly (Row<"usage.failure", "state"> & { source: string; parts: number })[];
  readonly differences: readonly {
    source: string;
    meter: string;
    kind: string;
    state: string;
    differences: number;
  }[];
  readonly reconciled: readonly { source: string; at: number }[];
  readonly checked: readonly { source: string; at: number }[];
  readonly finalChanges: readonly ({ source: string } & Pick<
    RestatementCount,
    "meter" | "measure" | "restatements"
  >)[];
  readonly fetches: readonly (Row<"usage.fetch", "outcome"> & { source: string; fetches: number })[];
}

export async function metricFacts(db: Database): Promise<MetricFacts> {
  return queryOne<MetricFacts>(db)`
    select
      ${listOf(sql`
        select s.slug as source, w.state, count(*)::integer as tasks
        from usage.fetch_task w join usage.source s using (source_id)
        where w.state in ('waiting', 'queued') group by 1, 2
      `)} as due,
      ${listOf(sql`
        select s.slug as source, s.refused_at is not null as refused,
               coalesce((
                 select extract(epoch from now() - min(w.created_at))::integer
                 from usage.fetch_task w left join usage.backfill b using (backfill_id)
                 where w.source_id = s.source_id and w.state in ('waiting', 'queued') and b.state is distinct from 'paused'
               ), 0) as "oldestDueSeconds",
               (select count(*)::integer from usage.difference d join usage.scope c using (scope_id)
                where c.source_id = s.source_id and d.state = 'open') as "openDifferences",
               l.*
        from usage.source s
        cross join lateral (
          select count(*)::integer as "lostWorkspaces", coalesce(sum(zeros), 0)::integer as "invalidatedZeros"
          from usage.lost_workspace where source_id = s.source_id
        ) l
      `)} as sources,
      ${listOf(sql`
        select f.source_id as source, f.group_by as "groupBy", f.stride,
               extract(epoch from f.fetched_at)::bigint as "fetchedAt",
               extract(epoch from f.final_until)::bigint as "finalUntil"
        from reporting.data_freshness f
      `)} as freshness,
      ${listOf(sql`
        select s.slug as source, f.state, count(*)::integer as parts
        from usage.failure f join usage.scope c using (scope_id) join usage.source s using (source_id) group by 1, 2
      `)} as failures,
      ${listOf(sql`
        select s.slug as source, coalesce(${METER_OF_SCOPE}, c.kind) as meter, d.kind, d.state, count(*)::integer as differences
        from usage.difference d join usage.scope c using (scope_id) join usage.source s using (source_id)
        where d.state in ('open', 'platform_disagrees')
        group by 1, 2, 3, 4
      `)} as differences,
      ${listOf(sql`
        select s.slug as source, extract(epoch from max(k.checked_at))::bigint as at
        from usage.control_check k join usage.source s using (source_id)
        where k.failures = 0 group by 1
      `)} as checked,
      ${listOf(sql`
        select s.slug as source, n.*
        from usage.source s
        cross join json_to_recordset(
          ${restatementCounts(sql`c.source_id = s.source_id and t.restated_at > now() - interval '1 day'`)}
        ) n (meter text, measure text, restatements integer)
      `)} as "finalChanges",
      ${listOf(sql`
        select s.slug as source, extract(epoch from max(r.reconciled_at))::bigint as at
        from usage.reconciled r join usage.trace_scope c using (scope_id) join usage.source s using (source_id) group by 1
      `)} as reconciled,
      ${listOf(sql`
        select s.slug as source, f.outcome, count(*)::integer as fetches
        from usage.fetch f join usage.source s using (source_id)
        where f.fetched_at > now() - interval '1 hour' group by 1, 2
      `)} as fetches
  `;
}
