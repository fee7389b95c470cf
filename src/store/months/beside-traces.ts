import { sql } from "kysely";
import type { ProviderMonth } from "../../domain/bill/provider.ts";
import type { Interval } from "../../domain/time/window.ts";
import { providerMonthIn } from "../bill/bill-month.ts";
import { hasPriceIn } from "../bill/prices.ts";
import type { Database } from "../db/database.ts";
import { inOrder, type OtherUsage, otherUsageIn } from "./other-usage.ts";

export interface BesideTraces {
  /** What the billing provider's totals say of the month. */
  readonly provider: ProviderMonth;
  /** What is known of other usage than traces of all tiers, as far as it is wanted or loaded. */
  readonly others: readonly OtherUsage[];
  /** Whether a price is valid on a day of the month, or it has no traces: else it has no costs to close. */
  readonly hasPrice: boolean;
}

/** What is known of a month beside its traces: in one statement, since a page has few. */
export async function besideTraces(
  db: Database,
  asked: { sourceId: number; monthStart: string; range: Interval },
): Promise<BesideTraces> {
  const { rows } = await sql<{ provider: ProviderMonth; others: OtherUsage[]; hasPrice: boolean }>`
    select (select to_json(p) from (${providerMonthIn(asked)}) p) as provider,
           (select coalesce(json_agg(o), '[]') from (${otherUsageIn(asked)}) o) as others,
           ${hasPriceIn(sql`${asked.sourceId}::integer`, sql`${asked.monthStart}`)} as "hasPrice"
  `.execute(db);
  const [{ provider, others, hasPrice }] = rows as [(typeof rows)[number]];
  return { provider, others: inOrder(others), hasPrice };
}
