import { type RawBuilder, sql } from "kysely";
import type { RestatementCount } from "../../domain/proof/restatement.ts";
import { MEASURES, METERS } from "../../domain/usage/meter.ts";
import { METER_OF_SCOPE } from "../catalog/scopes.ts";
import { isIfGiven } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";

/**
 * SQL: a JSON list of `RestatementCount`, ordered by meter and measure. `which`: a condition on restatement `t`, series `x` and
 * scope `c`.
 */
export function restatementCounts(which: RawBuilder<unknown>): RawBuilder<unknown> {
  const isOfDays = sql`c.group_by = 'workspace' and c.stride = 'day'`;
  return sql`(
    select coalesce(json_agg(json_build_object('meter', n.meter, 'measure', n.measure, 'restatements', n.restatements,
               'ofDays', n.of_days, 'net', usage.amount_of(n.measure, n.net), 'newest', n.newest)
             order by array_position(${METERS}::text[], n.meter), array_position(${MEASURES}::text[], n.measure)), '[]')
    from (
      select coalesce(${METER_OF_SCOPE}, c.kind) as meter, x.measure, count(*) as restatements,
             count(*) filter (where ${isOfDays}) as of_days,
             coalesce(sum(coalesce(t.new_traces, 0) - coalesce(t.old_traces, 0)) filter (where ${isOfDays}), 0) as net,
             max(t.restatement_id) as newest
      from usage.restatement t join usage.series x using (series_id) join usage.scope c using (scope_id)
      where ${which}
      group by 1, 2
    ) n
  )`;
}

export async function countRestatements(
  db: Database,
  requested: { sourceId: number; from: string; to: string; workspace?: number | undefined },
): Promise<RestatementCount[]> {
  const { sourceId, from, to, workspace } = requested;
  const rows = await query<{ counts: RestatementCount[] }>(db)`
    select ${restatementCounts(sql`c.source_id = ${sourceId}
      and t.bucket_start >= ${from}::date::timestamp at time zone 'UTC' and t.bucket_start < ${to}::date::timestamp at time zone 'UTC'
      and ${isIfGiven("c.workspace_id", workspace)}`)} as counts
  `;
  return rows[0]?.counts ?? [];
}
