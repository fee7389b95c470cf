import { sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import { type ProviderMonth, providerMonthIn } from "../bill/bill-month.ts";
import type { Database } from "../db/database.ts";
import { inOrder, type OtherUsage, otherUsageIn } from "./other-usage.ts";

/** What is known of a month beside its traces, as `providerMonth` and `otherUsage` give it: in one statement, since a page has few. */
export async function besideTraces(
  db: Database,
  asked: { sourceId: number; monthStart: string; range: Interval },
): Promise<{ readonly provider: ProviderMonth; readonly others: OtherUsage[] }> {
  const { rows } = await sql<{ provider: ProviderMonth; others: OtherUsage[] }>`
    select (select to_json(p) from (${providerMonthIn(asked)}) p) as provider,
           (select coalesce(json_agg(o), '[]') from (${otherUsageIn(asked)}) o) as others
  `.execute(db);
  const [{ provider, others }] = rows as [(typeof rows)[number]];
  return { provider, others: inOrder(others) };
}
