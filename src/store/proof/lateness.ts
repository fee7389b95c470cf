import { sql } from "kysely";
import type { LatenessClass } from "../../domain/proof/lateness.ts";
import type { Database } from "../db/database.ts";

/** Late changes of a source's days by age, found in the last `days` days. Reads the workspaces: each trace once. */
export async function latenessOf(
  db: Database,
  { sourceId, days }: { sourceId: number; days: number },
): Promise<LatenessClass[]> {
  const { rows } = await sql<LatenessClass>`
    select age_hours as "ageHours", was_final as "wasFinal", sum(changes)::bigint as changes,
           sum(traces_moved)::bigint as "tracesMoved"
    from usage.late_change
    where source_id = ${sourceId} and group_by = 'workspace' and stride = 'day'
      and observed_on > (now() at time zone 'UTC')::date - ${days}::integer
    group by 1, 2
    order by 1, 2
  `.execute(db);
  return rows;
}
