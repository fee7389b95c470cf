import type { Slice } from "../../domain/planning/slice.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { retryAfterOutage } from "../../store/load/outage.ts";
import { enterSlices, slicesInFlight } from "../../store/work/slices.ts";
import type { OpenSource } from "../source/source.ts";
import { type PlanRequest, planSource, routineDemand } from "./plan.ts";
import { syncBudget } from "./sync-budget.ts";

interface SyncResult {
  readonly planned: number;
  /** Those that were not in flight already. */
  readonly entered: number;
}

interface RoutineResult extends SyncResult {
  /** Parts of time that failed in an outage and were let be asked again. */
  readonly askedAgain: number;
}

/**
 * Enters the slices of a routine round: days for all time, hours for as long as they are kept. The source has just
 * answered at its contact, so what failed in an outage need not wait any longer.
 */
export async function planSync(source: OpenSource): Promise<RoutineResult> {
  const askedAgain = await retryAfterOutage(source.store.db, source.sourceId);
  const now = await storeNow(source.store.db);
  const { needed, allowed, problem } = syncBudget(source, now);
  if (problem !== undefined) source.log.warn({ ...problem, needed, allowed }, "rate budget");
  return { ...(await enter(source, await planInFlight(source, routineDemand(source, now)))), askedAgain };
}

async function planInFlight(source: OpenSource, wanted: PlanRequest["wanted"]): Promise<Slice[]> {
  if (wanted.length === 0) return [];
  const inFlight = await slicesInFlight(source.store.db, source.sourceId);
  return planSource(source, { wanted, reprocess: "missing", inFlight });
}

async function enter(source: OpenSource, slices: readonly Slice[]): Promise<SyncResult> {
  const entered = await enterSlices(source.store.db, { sourceId: source.sourceId, slices });
  return { planned: slices.length, entered };
}
