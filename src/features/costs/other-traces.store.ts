import { sql } from "kysely";
import type { ProviderMonth } from "../../core/domain/months/provider.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import { inOrder, type OtherUsage, otherUsageIn } from "./other-usage.store.ts";
import { lacksPriceIn } from "./prices.store.ts";
import { providerMonthIn } from "./provider-month.store.ts";

export interface OtherTraces {
  readonly provider: ProviderMonth;
  readonly others: readonly OtherUsage[];
  /** True if the month has traces and no valid price. Then the month has no costs to close. */
  readonly lacksPrice: boolean;
}

/** Uses one statement, because pages share few connections. */
export async function otherTraces(
  db: Database,
  requested: { sourceId: number; monthStart: string; range: Interval },
): Promise<OtherTraces> {
  const rows = await query<{ provider: ProviderMonth; others: OtherUsage[]; lacksPrice: boolean }>(db)`
    select (select to_json(p) from (${providerMonthIn(requested)}) p) as provider,
           (select coalesce(json_agg(o), '[]') from (${otherUsageIn(requested)}) o) as others,
           ${lacksPriceIn(sql`${requested.sourceId}::integer`, sql`${requested.monthStart}`)} as "lacksPrice"
  `;
  const [{ provider, others, lacksPrice }] = rows as [(typeof rows)[number]];
  return { provider, others: inOrder(others), lacksPrice };
}
