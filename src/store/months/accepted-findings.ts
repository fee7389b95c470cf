import { type RawBuilder, sql } from "kysely";

/**
 * Digest (text) of the findings, of every meter, on which the platform contradicts itself, with both numbers of each: what a close of the month
 * accepts. `workspaces`: entity ids.
 */
export function findingsDigest(close: {
  monthStart: string;
  workspaces: readonly number[];
}): RawBuilder<string> {
  const start = sql`${close.monthStart}::timestamp at time zone 'UTC'`;
  const end = sql`(${close.monthStart}::timestamp + interval '1 month') at time zone 'UTC'`;
  return sql<string>`(
    with own as materialized (
      select scope_id from usage.every_scope
      where workspace_id = any (${[...close.workspaces]}::integer[]) and stride = 'day'
    )
    select md5(coalesce(string_agg(f.finding, ',' order by f.finding collate "C"), ''))
    from (
      select json_build_array('export', scope_id, extract(epoch from bucket_start), external_id, measure, kind, stored_traces,
                              export_traces, export_says)::text as finding
      from usage.reconciliation_difference d join own using (scope_id)
      where d.state = 'platform_disagrees' and bucket_start >= ${start} and bucket_start < ${end}
      union all
      select json_build_array('total', scope_id, extract(epoch from period_start), extract(epoch from period_end), external_id,
                              measure, kind, stored_traces, control_traces)::text
      from usage.control_difference d join own using (scope_id)
      where d.state = 'platform_disagrees' and period_start < ${end} and period_end > ${start}
    ) f
  )`;
}
