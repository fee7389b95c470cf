import type { Store } from "../store/db/database.ts";
import { analyzeStale } from "../store/db/statistics.ts";

/** Analyzes tables that loads have filled since: after an installation, the first reports come before autovacuum does. */
export async function keepStatistics({ db }: Store): Promise<number> {
  return (await analyzeStale(db)).length;
}
