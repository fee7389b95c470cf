import type { UsageRequest } from "../../domain/planning/request.ts";
import type { Interval } from "../../domain/time/window.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { retryAfterOutage } from "../../store/load/outage.ts";
import { enterSlices, slicesInFlight } from "../../store/work/slices.ts";
import { learnMeters } from "../source/learn-meters.ts";
import type { OpenSource } from "../source/source.ts";
import { planRetries, planSource, routineDemand, type Want } from "./plan.ts";
import { syncBudget } from "./sync-budget.ts";

/**
 * Enters the slices of a sync: days for all time, hours for as long as they are kept. The platform has just answered
 * first contact, so failures of an outage are due at once. `entered`: slices that were not in flight already. `askedAgain`:
 * parts of time that failed in an outage and are due again.
 */
export async function planSync(source: OpenSource) {
  const { sourceId, store, log, runId } = source;
  await learnMeters(source);
  const askedAgain = await retryAfterOutage(store.db, sourceId);
  const now = await storeNow(store.db);
  const { needed, allowed, problem } = syncBudget(source, now);
  if (problem !== undefined) log.warn({ ...problem, needed, allowed }, "rate budget");
  const inFlight = await slicesInFlight(store.db, sourceId);
  const slices = await planRoutine(source, { wanted: routineDemand(source, now), inFlight });
  const entered = await enterSlices(store.db, { sourceId, runId, slices });
  return { planned: slices.length, entered, askedAgain };
}

/** What one sync fetches: the wanted time that is not settled, and failures that are due, wherever they are. */
export async function planRoutine(
  source: OpenSource,
  given: { wanted: readonly Want[]; inFlight?: ReadonlyMap<number, readonly Interval[]> },
): Promise<UsageRequest[]> {
  const missing =
    given.wanted.length === 0 ? [] : await planSource(source, { ...given, reprocess: "missing" });
  return [...missing, ...(await planRetries(source, given))];
}
