import { type CoveredScope, coverTasks, planTasks } from "../../domain/planning/plan-tasks.ts";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { alignRange } from "../../domain/planning/windows.ts";
import { intersect, normalize, spanOf } from "../../domain/time/intervals.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  bucketsOf,
  type Difference,
  endedSince,
  storedStrides,
  unresolvedDifferences,
} from "../../store/proof/differences.ts";
import { type RunResult, runInline } from "../extract/run-inline.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import type { OpenSource } from "../source/source.ts";
import { statesOf } from "../source/source.ts";
import { type ComparedTasks, compareTasks } from "./compare-tasks.ts";
import { type NotCompared, notCompared } from "./not-compared.ts";

export interface ReconcileRequest {
  readonly range: Interval;
  /** Undefined: days, and hours where they are kept. */
  readonly stride?: Stride | undefined;
  readonly groupings?: readonly GroupBy[] | undefined;
  /** Undefined: traces of all tiers, and whatever else is loaded. */
  readonly meter?: Meter | undefined;
  readonly repair: boolean;
}

/** What a reconciliation says about one meter and stride. They are never added together, but for counts of requests. */
export interface StrideResult extends ComparedTasks {
  readonly meter: Meter;
  readonly stride: Stride;
  /** Differences left at the end in the range that was asked for, whoever found them: the first thousand of them. */
  readonly differences: readonly Difference[];
  /** How many are left: to be fetched again, and those in which the platform contradicts itself. */
  readonly open: number;
  readonly platformDisagrees: number;
  /** What a repair fetched again; undefined where nothing was to repair. */
  readonly repaired?: Repaired;
  /** What was not compared, since it is not final. */
  readonly notCompared: NotCompared;
}

interface Repaired {
  /** Differences that were asked about again. */
  readonly differences: number;
  /** Differences that have ended since: what is stored was replaced, or the export was wrong. */
  readonly mended: number;
  readonly withdrawn: number;
  readonly run: RunResult;
}

export interface ReconcileResult extends Omit<StrideResult, "meter" | "stride" | "notCompared"> {
  readonly strides: readonly StrideResult[];
  /** What is stored in that range and was not compared, with the differences that are left in it. */
  readonly otherStrides: readonly {
    readonly meter: Meter;
    readonly stride: Stride;
    readonly differences: number;
  }[];
}

/** Differences that a result names. View reporting.usage_reconciliation has all of them. */
const MOST_NAMED = 1000;

/**
 * Reconciles what is stored with the platform's CSV export: final buckets only. With `repair`, the JSON and then the
 * export of what differs are asked for again, in the fewest windows that cover it. A stale count is replaced. Where the
 * platform's two answers differ still, the count of the JSON stays and the difference is kept.
 */
export async function reconcile(
  source: OpenSource,
  { stride: only, meter: onlyMeter, repair, groupings = GROUPINGS, range: asked }: ReconcileRequest,
  onProgress?: OnProgress,
): Promise<ReconcileResult> {
  const { sourceId, store, workspaces } = source;
  const findStored = () =>
    storedStrides(store.db, {
      ...{ sourceId, groupings, range: asked },
      workspaceIds: workspaces.map((one) => one.workspaceId),
    });
  const before = await findStored();
  const isLoaded = (meter: Meter, stride: Stride) =>
    before.some((one) => one.meter === meter && one.stride === stride);
  // Days that agree say nothing about their hours: a count may move within a day.
  const wanted: readonly Stride[] = only === undefined ? ["day", "hour"] : [only];
  const compared = METERS.filter((meter) => onlyMeter === undefined || meter === onlyMeter).flatMap((meter) =>
    wanted
      // Of traces it is said what is missing. Of other usage too if it is asked for, but not of hours, which nobody keeps.
      .filter(
        (stride) => meter === "traces" || isLoaded(meter, stride) || (onlyMeter && stride === wanted[0]),
      )
      .map((stride) => ({ meter, stride })),
  );
  const strides: StrideResult[] = [];
  for (const { meter, stride } of compared) {
    const range = alignRange(asked, stride, startOf(source, meter));
    const partsOf = () => (range === undefined ? [] : [range]);
    strides.push(await reconcileParts(source, { meter, groupings, stride, repair, partsOf }, onProgress));
  }
  const isCompared = (one: { meter: Meter; stride: Stride }) =>
    compared.some(({ meter, stride }) => meter === one.meter && stride === one.stride);
  const otherStrides = (await findStored()).filter((one) => !isCompared(one));
  const { meter: _, stride: __, notCompared: ___, ...all } = strides.reduce(added);
  return { ...all, strides, otherStrides };
}

/** Where a meter begins; a meter that the server does not count: where traces do. */
function startOf(source: OpenSource, meter: Meter): number {
  return source.meters.get(meter) ?? source.dataStart;
}

/** Two strides in one result. */
function added(a: StrideResult, b: StrideResult): StrideResult {
  const both = a.repaired !== undefined && b.repaired !== undefined;
  const repaired = both ? addedRepairs(a.repaired, b.repaired) : (a.repaired ?? b.repaired);
  return {
    ...a,
    windows: a.windows + b.windows,
    requests: a.requests + b.requests,
    compared: a.compared + b.compared,
    unverified: a.unverified + b.unverified,
    moved: a.moved + b.moved,
    open: a.open + b.open,
    platformDisagrees: a.platformDisagrees + b.platformDisagrees,
    failures: [...a.failures, ...b.failures],
    differences: [...a.differences, ...b.differences].slice(0, MOST_NAMED),
    ...(repaired === undefined ? {} : { repaired }),
  };
}

function addedRepairs(a: Repaired, b: Repaired): Repaired {
  return {
    differences: a.differences + b.differences,
    mended: a.mended + b.mended,
    withdrawn: a.withdrawn + b.withdrawn,
    run: {
      counts: [...a.run.counts, ...b.run.counts],
      failures: [...a.run.failures, ...b.run.failures],
    },
  };
}

interface Parts {
  readonly meter: Meter;
  readonly groupings: readonly GroupBy[];
  readonly stride: Stride;
  readonly repair: boolean;
  /** The time to compare with the export. What of it is not final is left out. */
  readonly partsOf: (state: ScopeState) => readonly Interval[];
}

/** The one way in which anything is reconciled, by hand or by schedule. */
export async function reconcileParts(
  source: OpenSource,
  { meter, groupings, stride, repair, partsOf }: Parts,
  onProgress?: OnProgress,
): Promise<StrideResult> {
  const { store } = source;
  const isAvailable = source.meters.has(meter) && !source.capabilities.has(`no_${stride}`);
  const states = await statesOf(source, stride, groupings, meter);
  const scopes = states.map((state) => ({
    ...state,
    final: intersect(
      state.coverage.filter((loaded) => loaded.final && isAvailable),
      partsOf(state),
    ),
  }));
  const range = spanOf(states.flatMap((state) => [...partsOf(state)]));
  const tasks = planTasks({
    meter,
    scopes: scopes.map((scope) => ({ ...scope, missing: scope.final })),
    wanted: [{ stride, range }],
    dataStart: startOf(source, meter),
  });
  const first = await compareTasks(source, tasks, onProgress);
  const again = repair ? await repairOpen(source, { scopes, stride, range }) : undefined;
  // From here on, what the tables say after the work.
  const scopeIds = scopes.map((scope) => scope.scopeId);
  const left = await unresolvedDifferences(store.db, { scopeIds, range, most: MOST_NAMED });
  const { first: differences, open, platformDisagrees } = left;
  const now = await storeNow(store.db);
  const after = await statesOf(source, stride, groupings, meter);
  return {
    meter,
    stride,
    ...first,
    requests: first.requests + (again?.compared.requests ?? 0),
    failures: [...first.failures, ...(again?.compared.failures ?? [])],
    unverified: first.unverified + (again?.compared.unverified ?? 0),
    moved: first.moved + (again?.compared.moved ?? 0),
    ...{ differences, open, platformDisagrees },
    ...(again === undefined ? {} : { repaired: again.repaired }),
    notCompared: notCompared({ ...source, dataStart: startOf(source, meter) }, after, {
      ...{ stride, partsOf, now, isAvailable },
      isKept: isKept(source, { meter, stride }),
    }),
  };
}

/** Whether a sync loads it. */
function isKept({ settings }: OpenSource, { meter, stride }: { meter: Meter; stride: Stride }): boolean {
  if (meter === "traces") return stride === "day" || stride === "hour";
  return stride === "day" && settings.meters.includes(meter);
}

/** Asks again about every open difference of this time: the JSON, then the export. Undefined where there is none. */
async function repairOpen(
  source: OpenSource,
  {
    scopes,
    stride,
    range,
  }: { scopes: readonly (ScopeState & { final: Interval[] })[]; stride: Stride; range: Interval },
): Promise<{ repaired: Repaired; compared: ComparedTasks } | undefined> {
  const { db } = source.store;
  const scopeIds = scopes.map((scope) => scope.scopeId);
  const all = await bucketsOf(db, { scopeIds, range, states: ["open"] });
  const open = Map.groupBy(all, (one) => one.scopeId);
  const tasks: UsageRequest[] = coverTasks(
    scopes.flatMap((scope): CoveredScope[] => {
      const buckets = open.get(scope.scopeId)?.map(({ bucketStart }) => bucketStart);
      return buckets === undefined ? [] : [{ ...scope, buckets, within: normalize(scope.final) }];
    }),
    stride,
  );
  if (tasks.length === 0) return undefined;
  const since = await storeNow(db);
  const run = await runInline(source, tasks, { isRepair: true });
  const compared = await compareTasks(source, tasks);
  const { repaired: mended = 0, withdrawn = 0 } = await endedSince(db, { scopeIds, range, since });
  const isAsked = (one: { scopeId: number; bucketStart: number }) =>
    tasks.some(
      ({ window, members }) =>
        one.bucketStart >= window.start &&
        one.bucketStart < window.end &&
        members.some(({ scopeId }) => scopeId === one.scopeId),
    );
  const differences = all.filter(isAsked).reduce((sum, one) => sum + one.differences, 0);
  return { repaired: { differences, mended, withdrawn, run }, compared };
}
