import { sql } from "kysely";
import type { ProviderMonth } from "../../core/domain/months/provider.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import { inOrder, type OtherUsage, otherUsageIn } from "./other-usage.store.ts";
import { lacksPriceIn } from "./prices.store.ts";
import { providerMonthIn } from "./provider-month.store.ts";

export interface BesideTraces {
  readonly provider: ProviderMonth;
  readonly others: readonly OtherUsage[];
  /** True if the month has traces and no valid price: then it has no costs to close. */
  readonly lacksPrice: boolean;
}

/** One statement, since pages share few connections. */
export async function besideTraces(
  db: Database,
  asked: { sourceId: number; monthStart: string; range: Interval },
): Promise<BesideTraces> {
  const rows = await query<{ provider: ProviderMonth; others: OtherUsage[]; lacksPrice: boolean }>(db)`
    select (select to_json(p) from (${providerMonthIn(asked)}) p) as provider,
           (select coalesce(json_agg(o), '[]') from (${otherUsageIn(asked)}) o) as others,
           ${lacksPriceIn(sql`${asked.sourceId}::integer`, sql`${asked.monthStart}`)} as "lacksPrice"
  `;
  const [{ provider, others, lacksPrice }] = rows as [(typeof rows)[number]];
  return { provider, others: inOrder(others), lacksPrice };
}
