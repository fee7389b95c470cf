import type { Days } from "../../core/domain/time/days.ts";
import { type Database, query } from "../../core/store/db/query.ts";

export interface OwnedUsage extends Days {
  readonly workspaceId: string;
  readonly sku: string;
  readonly owner: string;
  readonly costCenter: string;
  /** Whole hundred-trillionths of the currency, and millionths of a unit. */
  readonly cost: string;
  readonly quantity: string;
}

/** What owners used in some periods, by workspace and SKU. */
export async function ownedUsage(
  db: Database,
  { source, periods }: { source: string; periods: readonly Days[] },
): Promise<OwnedUsage[]> {
  return query<OwnedUsage>(db)`
    select d."from"::text as "from", d."to"::text as "to", c.workspace_id as "workspaceId", c.sku, c.owner, c.cost_center as "costCenter",
           trunc(sum(greatest(c.cost, 0)) * 1e14)::text as cost, trunc(sum(greatest(c.quantity, 0)) * 1e6)::text as quantity
    from json_to_recordset(${JSON.stringify(periods)}::json) d ("from" date, "to" date)
    join usage.owned_cost c on c.usage_date >= d."from" and c.usage_date < d."to"
    where c.slug = ${source}
    group by 1, 2, 3, 4, 5, 6
  `;
}
