import { sql } from "kysely";
import type { UnpricedDay } from "../../domain/bill/price.ts";
import type { Days } from "../../domain/time/days.ts";
import type { Database } from "../db/database.ts";

/** By day. None: every day with usage in the range has a price. */
export async function unpricedIn(
  db: Database,
  { source, workspaceId, range }: { source: string; workspaceId: string | null; range: Days },
): Promise<UnpricedDay[]> {
  const { rows } = await sql<UnpricedDay>`
    select usage_date::text as day, workspace_id as "workspaceId", traces
    from reporting_detail.usage_unpriced_daily
    where source_id = ${source} and not has_other_price
      and usage_date >= ${range.from}::date and usage_date < ${range.to}::date
      and ${workspaceId === null ? sql`true` : sql`workspace_id = ${workspaceId}`}
    order by 1, 2
  `.execute(db);
  return rows;
}
