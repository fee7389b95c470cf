import { sql } from "kysely";
import type { ProviderMonth } from "../../domain/bill/provider.ts";
import type { Interval } from "../../domain/time/window.ts";
import { lacksPriceIn } from "../bill/prices.ts";
import { providerMonthIn } from "../bill/provider-month.ts";
import { type Database, query } from "../db/query.ts";
import { inOrder, type OtherUsage, otherUsageIn } from "./other-usage.ts";

export interface BesideTraces {
  readonly provider: ProviderMonth;
  readonly others: readonly OtherUsage[];
  /** Whether it has traces and no valid price on any of its days: then it has no costs to close. */
  readonly lacksPrice: boolean;
}

/** One statement, since a page has few. */
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
