import { type Reach, rangeOfReach } from "../../domain/planning/windows.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  type CheckCounts,
  knownFindings,
  type NamedFinding,
  noteCheck,
} from "../../store/proof/control-findings.ts";
import { endUnread } from "../../store/proof/ended.ts";
import { loadedMeters } from "../../store/proof/loaded-meters.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import type { OpenSource } from "../source/source.ts";
import { statesOf } from "../source/source.ts";
import type { CheckContext, TotalsFailure } from "./check-context.ts";
import { countDays } from "./count-days.ts";
import { checkGroupings } from "./grouping-totals.ts";
import { checkStrides } from "./stride-totals.ts";
import { checkTiers } from "./tier-totals.ts";

export { REACHES } from "../../domain/planning/windows.ts";

/** What a check says about one meter. */
interface MeterTotals extends CheckCounts {
  readonly meter: Meter;
  /** The final days that the check is about. */
  readonly range: Interval;
  /** Days x scopes in which a difference is left: from a total, or from the export. */
  readonly daysDisproved: number;
  /** Days x scopes that are not loaded and final. They are among those that wait. */
  readonly daysNotFinal: number;
  /** Windows that were not checked: access to the workspace is not proven. */
  readonly unverified: number;
}

/** Days are those of traces of all tiers, and requests, restatements, differences and failures those of the whole check. */
export interface TotalsResult extends Omit<MeterTotals, "meter"> {
  /** The same of other meters, each by itself. What differs between tiers counts with the long-lived traces. */
  readonly others: readonly MeterTotals[];
  /** Their `daysNotFinal`, added up. */
  readonly othersNotFinal: number;
  /** Days x workspaces on which long-lived and short-lived traces were added up and compared with all. Undefined: tiers are not loaded. */
  readonly tierDays?: number;
  /** What differs in the range after the check, whoever found it. */
  readonly findings: readonly NamedFinding[];
  readonly failed: readonly TotalsFailure[];
}

/**
 * Checks final days against totals: their sums against windows of whole weeks, months and years, one request for up to
 * a year of days, and the sums of each dimension against the workspace's; of tiers also that they add up to all. Where a total
 * differs, the days are fetched again. If they are equal then, it was a restatement; else the window is kept as a difference
 * with both numbers. Whatever is loaded is checked, each meter by itself.
 */
export async function checkTotals(
  source: OpenSource,
  reach: Reach,
  onProgress?: OnProgress,
): Promise<TotalsResult> {
  const { sourceId, store, workspaces } = source;
  const now = await storeNow(store.db);
  const end = floorToGrid(now - source.settings.settleAfterMs, DAY_MS);
  await endUnread(store.db, { sourceId, workspaceIds: workspaces.map((one) => one.workspaceId) });
  const loaded = await loadedMeters(store.db, sourceId);
  const asked = METERS.filter((meter) => meter === "traces" || loaded.includes(meter));
  const done: { context: CheckContext; parts: Parts[] }[] = [];
  for (const meter of asked) {
    const context = await contextOf(source, { meter, reach, end });
    if (context === undefined) continue;
    const strides = await checkStrides(context, onProgress);
    done.push({ context, parts: [strides, await checkGroupings(context)] });
  }
  const of = (meter: Meter) => done.find(({ context }) => context.meter === meter);
  const [traces, longlived] = [of("traces"), of("longlived")];
  const tiers =
    traces === undefined || longlived === undefined
      ? undefined
      : await checkTiers(traces.context, longlived.context);
  if (tiers !== undefined) longlived?.parts.push(tiers);

  const final = { start: Math.min(source.dataStart, ...source.meters.values()), end };
  const findings = final.start < end ? await knownFindings(store.db, { sourceId, range: final }) : [];
  const inRange = findings.filter(({ meter, start, end: to }) => {
    const range = of(meter)?.context.range;
    return range !== undefined && start < range.end && to > range.start;
  });
  const counted: MeterTotals[] = [];
  for (const { context, parts } of done) counted.push(await countsOf(context, parts, inRange));
  const ofTraces = counted.find(({ meter }) => meter === "traces");
  if (ofTraces !== undefined) {
    await noteCheck(store.db, { sourceId, range: ofTraces.range, counts: ofTraces });
  }
  const sum = (count: (one: MeterTotals) => number) => counted.reduce((all, one) => all + count(one), 0);
  const start = { start: source.dataStart, end };
  return {
    ...(ofTraces === undefined
      ? { ...NO_DAYS, range: rangeOfReach(reach, start) }
      : (({ meter: _, ...counts }) => counts)(ofTraces)),
    requests: sum(({ requests }) => requests),
    restated: sum(({ restated }) => restated),
    differences: sum(({ differences }) => differences),
    failures: sum(({ failures }) => failures),
    unverified: sum(({ unverified }) => unverified),
    others: counted.filter(({ meter }) => meter !== "traces"),
    othersNotFinal: sum(({ meter, daysNotFinal }) => (meter === "traces" ? 0 : daysNotFinal)),
    ...(tiers === undefined ? {} : { tierDays: tiers.days }),
    findings: inRange,
    failed: done.flatMap(({ parts }) => parts.flatMap(({ failed = [] }) => failed)),
  };
}

/** Undefined: nothing of the meter is final, or the server does not count it. */
async function contextOf(
  source: OpenSource,
  { meter, reach, end }: { meter: Meter; reach: Reach; end: number },
): Promise<CheckContext | undefined> {
  const dataStart = source.meters.get(meter);
  if (dataStart === undefined) return undefined;
  const final = { start: dataStart, end };
  const range = rangeOfReach(reach, final);
  if (range.start >= range.end) return undefined;
  const { sourceId, store } = source;
  const states = await statesOf(source, "day", GROUPINGS, meter);
  // Which side is wrong is not known, so known differences are not fetched again. The widest check does, to end healed ones.
  const found = reach === "all" ? [] : await knownFindings(store.db, { sourceId, range: final });
  const known = found.filter((one) => one.meter === meter);
  return { source, meter, states, final, range, known };
}

/** What a part of a check did. */
interface Parts {
  readonly requests: number;
  readonly restated: number;
  readonly refetchFailures: number;
  readonly proved?: ReadonlyMap<number, readonly Interval[]>;
  readonly unverified?: number;
  readonly failed?: readonly TotalsFailure[];
}

async function countsOf(
  context: CheckContext,
  parts: readonly Parts[],
  findings: readonly NamedFinding[],
): Promise<MeterTotals> {
  const { meter, range } = context;
  const contradictions = findings.filter((one) => one.meter === meter && one.state === "platform_disagrees");
  const proved = parts.find((part) => part.proved !== undefined)?.proved ?? new Map();
  const sum = (count: (part: Parts) => number) => parts.reduce((all, part) => all + count(part), 0);
  return {
    meter,
    range,
    requests: sum(({ requests }) => requests),
    ...(await countDays(context, { proved, contradictions })),
    restated: sum(({ restated }) => restated),
    differences: contradictions.length,
    failures: sum(({ failed = [], refetchFailures }) => failed.length + refetchFailures),
    unverified: sum(({ unverified = 0 }) => unverified),
  };
}

const NO_DAYS = { daysProved: 0, daysWaiting: 0, daysDisproved: 0, daysNotFinal: 0 };
