import type { UsageRequest } from "../../domain/planning/request.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { retryAfterOutage } from "../../store/load/outage.ts";
import { enterSlices, slicesInFlight } from "../../store/work/slices.ts";
import type { OpenSource } from "../source/source.ts";
import { planSource, routineDemand } from "./plan.ts";
import { syncBudget } from "./sync-budget.ts";

/**
 * Enters the slices of a sync: days for all time, hours for as long as they are kept. The platform has just answered
 * first contact, so failures of an outage are due at once. `entered`: slices that were not in flight already. `askedAgain`:
 * parts of time that failed in an outage and are due again.
 */
export async function planSync(source: OpenSource) {
  const { sourceId, store, log } = source;
  const askedAgain = await retryAfterOutage(store.db, sourceId);
  const now = await storeNow(store.db);
  const { needed, allowed, problem } = syncBudget(source, now);
  if (problem !== undefined) log.warn({ ...problem, needed, allowed }, "rate budget");
  const slices = await planMissing(source, now);
  const entered = await enterSlices(store.db, { sourceId, slices });
  return { planned: slices.length, entered, askedAgain };
}

async function planMissing(source: OpenSource, now: number): Promise<UsageRequest[]> {
  const wanted = routineDemand(source, now);
  if (wanted.length === 0) return [];
  const inFlight = await slicesInFlight(source.store.db, source.sourceId);
  return planSource(source, { wanted, reprocess: "missing", inFlight });
}
