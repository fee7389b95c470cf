import { sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import type { Database } from "../db/database.ts";

/** Usage on days for which no price is valid: costs leave it out. */
export interface UnpricedIn {
  readonly days: number;
  readonly traces: number;
  readonly firstDay: string;
  readonly lastDay: string;
}

/** Undefined: every day with usage in the range has a price. */
export async function unpricedIn(
  db: Database,
  { source, workspaceId, range }: { source: string; workspaceId: string | null; range: Days },
): Promise<UnpricedIn | undefined> {
  const { rows } = await sql<UnpricedIn>`
    select count(distinct usage_date)::integer as days, sum(traces)::bigint as traces,
           min(usage_date)::text as "firstDay", max(usage_date)::text as "lastDay"
    from reporting.usage_unpriced_daily
    where source_id = ${source} and not has_other_price
      and usage_date >= ${range.from}::date and usage_date < ${range.to}::date
      and ${workspaceId === null ? sql`true` : sql`workspace_id = ${workspaceId}`}
    having count(*) > 0
  `.execute(db);
  return rows[0];
}
