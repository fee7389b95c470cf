import { type Reach, rangeOfReach } from "../../domain/planning/windows.ts";
import { intersect, subtract, totalMs } from "../../domain/time/intervals.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { inUnits } from "../../domain/usage/amount.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { loadedMeters } from "../../store/catalog/scopes.ts";
import { invalidateChanged } from "../../store/proof/changed-records.ts";
import { knownFindings, type NamedFinding, noteCheck } from "../../store/proof/control-findings.ts";
import { bucketsOf } from "../../store/proof/differences.ts";
import { endUnread } from "../../store/proof/end-differences.ts";
import { storeNow } from "../../store/work/fetch-ledger.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import { type OpenSource, settleAfterIn, statesOf } from "../source/source.ts";
import type { CheckContext, CheckedPart, ComparedTime, TotalsFailure } from "./control.ts";
import { checkGroupings, checkStrides, checkTiers } from "./control-totals.ts";

export { REACHES } from "../../domain/planning/windows.ts";

interface MeterTotals {
  readonly meter: Meter;
  readonly requests: number;
  /** `daysProved`: scope days that equal a total. `daysWaiting`: scope days that no window compared yet. */
  readonly daysProved: number;
  readonly daysWaiting: number;
  readonly restated: number;
  readonly differences: number;
  readonly failures: number;
  readonly range: Interval;
  readonly daysDisproved: number;
  readonly daysNotFinal: number;
  readonly unverified: number;
}

/** Day counts are those of the meter `traces`; the other counts are sums over all meters. */
export interface TotalsResult extends Omit<MeterTotals, "meter"> {
  readonly others: readonly MeterTotals[];
  readonly othersNotFinal: number;
  /** Workspace days whose tiers were compared with all traces. Undefined: tiers are not loaded. */
  readonly tierDays?: number;
  /** Months x scopes whose records something other than a load changed, of all time. They are provisional again. */
  readonly miscounted: number;
  readonly findings: readonly NamedFinding[];
  readonly failed: readonly TotalsFailure[];
}

/**
 * Compares final days with the platform's totals, each dimension with the workspace, and the tiers with all traces. Days that
 * differ are fetched again. If they are equal then, this was a restatement; else the window is kept as a difference. Finally
 * finds records that something other than a load changed.
 */
export async function checkTotals(
  source: OpenSource,
  reach: Reach,
  onProgress?: OnProgress,
): Promise<TotalsResult> {
  const { sourceId, store, workspaceIds } = source;
  const now = await storeNow(store.db);
  await endUnread(store.db, { sourceId, workspaceIds });
  const { checks, tierDays } = await checkMeters(source, { reach, now }, onProgress);
  const miscounted = await invalidateChanged(store, sourceId);
  if (miscounted > 0) source.log.warn({ code: "records_changed", months: miscounted }, "records");

  const end = floorToGrid(now - source.settings.settleAfterMs, DAY_MS);
  const final = { start: Math.min(source.dataStart, ...source.meters.values()), end };
  const all = final.start < end ? await knownFindings(store.db, { sourceId, range: final }) : [];
  const findings = all.filter((one) => {
    const range = checks.find(({ context }) => context.meter === one.meter)?.context.range;
    return range !== undefined && one.start < range.end && one.end > range.start;
  });
  const counted: MeterTotals[] = [];
  for (const check of checks) counted.push(await countsOf(check, findings));
  const ofTraces = counted.find(({ meter }) => meter === "traces");
  if (ofTraces !== undefined) {
    await noteCheck(store.db, { sourceId, failures: ofTraces.failures });
  }
  const others = counted.filter(({ meter }) => meter !== "traces");
  const days = ofTraces ?? { ...NO_DAYS, range: rangeOfReach(reach, { start: source.dataStart, end }) };
  return {
    range: days.range,
    requests: sumOf(counted, "requests"),
    daysProved: days.daysProved,
    daysDisproved: days.daysDisproved,
    daysWaiting: days.daysWaiting,
    daysNotFinal: days.daysNotFinal,
    restated: sumOf(counted, "restated"),
    differences: sumOf(counted, "differences"),
    failures: sumOf(counted, "failures"),
    unverified: sumOf(counted, "unverified"),
    others,
    othersNotFinal: sumOf(others, "daysNotFinal"),
    ...(tierDays === undefined ? {} : { tierDays }),
    miscounted,
    findings: findings.map((one) => ({
      ...one,
      storedTraces: inUnits(one.measure, one.storedTraces),
      controlTraces: inUnits(one.measure, one.controlTraces),
    })),
    failed: checks.flatMap(({ parts }) => parts.flatMap(({ failed }) => failed)),
  };
}

const NO_DAYS = { daysProved: 0, daysWaiting: 0, daysDisproved: 0, daysNotFinal: 0 };

function sumOf<Key extends string>(all: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return all.reduce((sum, one) => sum + one[key], 0);
}

interface MeterCheck {
  readonly context: CheckContext;
  readonly parts: CheckedPart[];
  readonly compared: readonly ComparedTime[];
}

async function checkMeters(
  source: OpenSource,
  { reach, now }: { reach: Reach; now: number },
  onProgress?: OnProgress,
): Promise<{ checks: MeterCheck[]; tierDays: number | undefined }> {
  const loaded = await loadedMeters(source.store.db, source.sourceId);
  const checks: MeterCheck[] = [];
  for (const meter of METERS) {
    if (meter !== "traces" && !loaded.includes(meter)) continue;
    const context = await contextOf(source, { meter, reach, now });
    if (context === undefined) continue;
    const { compared, ...strides } = await checkStrides(context, onProgress);
    checks.push({ context, parts: [strides, await checkGroupings(context)], compared });
  }
  const [traces, longlived] = (["traces", "longlived"] as const).map((meter) =>
    checks.find(({ context }) => context.meter === meter),
  );
  if (traces === undefined || longlived === undefined) return { checks, tierDays: undefined };
  const { days, ...tiers } = await checkTiers(traces.context, longlived.context);
  longlived.parts.push(tiers);
  return { checks, tierDays: days };
}

/** Undefined: nothing of the meter is final, or the server does not count it. */
async function contextOf(
  source: OpenSource,
  { meter, reach, now }: { meter: Meter; reach: Reach; now: number },
): Promise<CheckContext | undefined> {
  const dataStart = source.meters.get(meter);
  if (dataStart === undefined) return undefined;
  const end = floorToGrid(now - (await settleAfterIn(source, meter)), DAY_MS);
  const final = { start: dataStart, end };
  const range = rangeOfReach(reach, final);
  if (range.start >= range.end) return undefined;
  const { sourceId, store } = source;
  const states = await statesOf(source, "day", GROUPINGS, meter);
  // Known differences are not fetched again. Only the check of all time does so, to end those that no longer exist.
  const found = reach === "all" ? [] : await knownFindings(store.db, { sourceId, range: final });
  const known = found.filter((one) => one.meter === meter);
  return { source, meter, states, final, range, known };
}

async function countsOf(
  { context, parts, compared }: MeterCheck,
  findings: readonly NamedFinding[],
): Promise<MeterTotals> {
  const { meter, range } = context;
  const contradictions = findings.filter((one) => one.meter === meter && one.state === "platform_disagrees");
  return {
    meter,
    range,
    requests: sumOf(parts, "requests"),
    ...(await countDays(context, { compared, contradictions })),
    restated: sumOf(parts, "restated"),
    differences: contradictions.length,
    failures: parts.reduce((sum, { failed, refetchFailures }) => sum + failed.length + refetchFailures, 0),
    unverified: sumOf(parts, "unverified"),
  };
}

async function countDays(
  { source, meter, range }: CheckContext,
  given: {
    compared: readonly ComparedTime[];
    contradictions: readonly (Interval & { readonly scopeId: number })[];
  },
) {
  const states = await statesOf(source, "day", GROUPINGS, meter);
  const scopeIds = states.map(({ scopeId }) => scopeId);
  const buckets = await bucketsOf(source.store.db, {
    scopeIds,
    range,
    states: ["open", "platform_disagrees"],
  });
  const differing = buckets.map(({ scopeId, bucketStart: start }) => {
    return { scopeId, start, end: start + DAY_MS };
  });
  const wrong = Map.groupBy([...given.contradictions, ...differing], (one) => one.scopeId);
  const compared = Map.groupBy(given.compared, (one) => one.scopeId);
  const days = { ...NO_DAYS };
  for (const { scopeId, coverage } of states) {
    const periods = compared.get(scopeId)?.map(({ period }) => period) ?? [];
    const disproved = intersect(wrong.get(scopeId) ?? [], [range]);
    const proved = subtract(intersect(periods, [range]), disproved);
    const final = coverage.filter((loaded) => loaded.final);
    days.daysProved += totalMs(proved) / DAY_MS;
    days.daysDisproved += totalMs(disproved) / DAY_MS;
    days.daysNotFinal += totalMs(subtract([range], final)) / DAY_MS;
    days.daysWaiting += totalMs(subtract([range], [...disproved, ...proved])) / DAY_MS;
  }
  return days;
}
