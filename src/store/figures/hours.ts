import { sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import type { Database } from "../db/database.ts";
import { type BucketSum, totalsIn } from "./buckets.ts";
import { type LoadedWorkspace, loadedHoursIn } from "./loaded.ts";
import type { UsageOf } from "./records.ts";

/** What all ids together have in each hour of some days, and which hours are loaded: in one statement, since a page has few. */
export async function hourlyUsage(
  db: Database,
  of: UsageOf,
  days: Days,
): Promise<{ readonly totals: readonly BucketSum[]; readonly loaded: readonly LoadedWorkspace[] }> {
  const { rows } = await sql<{ totals: BucketSum[]; loaded: LoadedWorkspace[] }>`
    select (select coalesce(json_agg(t), '[]') from (${totalsIn(of, { ...days, per: "hour" })}) t) as totals,
           (select coalesce(json_agg(l), '[]') from (${loadedHoursIn(of, days)}) l) as loaded
  `.execute(db);
  return rows[0] as { totals: BucketSum[]; loaded: LoadedWorkspace[] };
}
