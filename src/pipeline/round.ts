import type { Slice } from "../domain/slice.ts";
import { DAY_MS, floorToGrid, type Stride } from "../domain/stride.ts";
import { storeNow } from "../store/fetches.ts";
import { enterSlices, slicesInFlight } from "../store/slices.ts";
import { type PlanRequest, planSource, routineDemand } from "./plan.ts";
import type { OpenSource } from "./source.ts";

/** The strides that prove the days: their windows must hold what the days hold. */
const CONTROL_STRIDES = ["week", "month", "year"] as const;

export interface RoundResult {
  readonly planned: number;
  /** Those that were not in flight already. */
  readonly entered: number;
}

/** Enters the slices of a routine round: days for all time, hours for as long as they are kept. */
export async function planRound(source: OpenSource): Promise<RoundResult> {
  const now = await storeNow(source.store.db);
  return enter(source, await planInFlight(source, routineDemand(source, now)));
}

/**
 * Enters control totals over settled time, in whole windows of their own stride. A rest that does not fit its tier waits
 * until it does: the days in it are planned by the routine alone.
 */
export async function planControlTotals(source: OpenSource): Promise<RoundResult> {
  const now = await storeNow(source.store.db);
  const range = { start: source.dataStart, end: floorToGrid(now - source.settings.settleAfterMs, DAY_MS) };
  if (range.start >= range.end) return { planned: 0, entered: 0 };
  const strides: readonly Stride[] = CONTROL_STRIDES.filter((stride) => !source.facts.has(`no_${stride}`));
  const slices = await planInFlight(
    source,
    strides.map((stride) => ({ stride, range })),
  );
  return enter(
    source,
    slices.filter((slice) => strides.includes(slice.window.stride)),
  );
}

async function planInFlight(source: OpenSource, wanted: PlanRequest["wanted"]): Promise<Slice[]> {
  if (wanted.length === 0) return [];
  const inFlight = await slicesInFlight(source.store.db, source.sourceId);
  return planSource(source, { wanted, reprocess: "missing", inFlight });
}

async function enter(source: OpenSource, slices: readonly Slice[]): Promise<RoundResult> {
  const entered = await enterSlices(source.store.db, { sourceId: source.sourceId, slices });
  return { planned: slices.length, entered };
}
