import { type RawBuilder, sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Adds new records to the totals of their months. `stored` selects series_id, bucket_start and traces of these records. */
export async function addToMonths(db: Database, stored: RawBuilder<unknown>): Promise<void> {
  await sql`
    merge into usage.monthly_total t
    using (
      select series_id, usage.month_of(bucket_start) as month_start, sum(traces) as traces, count(*) as records
      from (${stored}) r group by 1, 2
    ) n on t.series_id = n.series_id and t.month_start = n.month_start
    when matched then update set traces = t.traces + n.traces, records = t.records + n.records
    when not matched then insert (series_id, month_start, traces, records)
      values (n.series_id, n.month_start, n.traces, n.records)
  `.execute(db);
}

/**
 * Recounts the months of changed records. Adding the changes would keep a wrong total wrong, or fail the load that repairs its
 * records.
 */
export function keepMonthsOf(change: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    merge into usage.monthly_total t
    using (
      select m.series_id, m.month_start, sum(r.traces) as traces, count(r.series_id) as records
      from (select distinct series_id, usage.month_of(bucket_start) as month_start from ${change}) m
      left join usage.dated_record r
        on r.series_id = m.series_id and r.bucket_start >= m.month_start
       and r.bucket_start < (m.month_start + interval '1 month')::date
      group by 1, 2
    ) c on t.series_id = c.series_id and t.month_start = c.month_start
    when matched and c.records = 0 then delete
    when matched then update set traces = c.traces, records = c.records
    when not matched and c.records > 0 then insert (series_id, month_start, traces, records)
      values (c.series_id, c.month_start, c.traces, c.records)`;
}
