import { PlatformError } from "../../base/errors.ts";
import { type CoveredScope, coverTasks, planTasks } from "../../domain/planning/plan-tasks.ts";
import {
  halvesByMember,
  scopeIdsOf,
  type UsageRequest,
  workspaceIdsOf,
} from "../../domain/planning/request.ts";
import { intersect, normalize, spanOf, subtract, totalMs } from "../../domain/time/intervals.ts";
import { DAY_MS, floorToGrid, HOUR_MS, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { type Comparison, compareExport } from "../../store/proof/compare-export.ts";
import {
  bucketsOf,
  type Difference,
  endedSince,
  unresolvedDifferences,
} from "../../store/proof/differences.ts";
import { storeNow } from "../../store/work/fetch-ledger.ts";
import { type RunResult, runInline } from "../extract/run-inline.ts";
import { type OnProgress, sequentially } from "../extract/sequentially.ts";
import { fetchUsage, queryOf } from "../source/fetch-usage.ts";
import { type OpenSource, settleAfterIn, startOf, statesOf } from "../source/source.ts";

export interface StrideResult extends ComparedTasks {
  readonly meter: Meter;
  readonly stride: Stride;
  readonly differences: readonly Difference[];
  /** Remaining differences. `open`: still to be fetched again. `platformDisagrees`: the platform contradicts itself. */
  readonly open: number;
  readonly platformDisagrees: number;
  readonly repaired?: Repaired;
  readonly notCompared: NotCompared;
}

export interface Repaired {
  readonly differences: number;
  readonly mended: number;
  readonly withdrawn: number;
  readonly run: RunResult;
}

/** Most differences in a result. View reporting_detail.usage_reconciliation has all. */
export const MOST_NAMED = 1000;

interface Reconciled {
  readonly meter: Meter;
  readonly groupings: readonly GroupBy[];
  readonly stride: Stride;
  readonly repair: boolean;
  readonly partsOf: (state: ScopeState) => readonly Interval[];
}

export async function reconcileParts(
  source: OpenSource,
  { meter, groupings, stride, repair, partsOf }: Reconciled,
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
  const scopeIds = scopes.map((scope) => scope.scopeId);
  const left = await unresolvedDifferences(store.db, { scopeIds, range, most: MOST_NAMED });
  const { first: differences, open, platformDisagrees } = left;
  const now = await storeNow(store.db);
  const after = await statesOf(source, stride, groupings, meter);
  const settleAfterMs = await settleAfterIn(source, meter);
  return {
    meter,
    stride,
    ...first,
    requests: first.requests + (again?.compared.requests ?? 0),
    failures: [...first.failures, ...(again?.compared.failures ?? [])],
    unverified: first.unverified + (again?.compared.unverified ?? 0),
    moved: first.moved + (again?.compared.moved ?? 0),
    differences,
    open,
    platformDisagrees,
    ...(again === undefined ? {} : { repaired: again.repaired }),
    notCompared: notCompared(
      { settings: { ...source.settings, settleAfterMs }, dataStart: startOf(source, meter) },
      after,
      {
        stride,
        partsOf,
        now,
        isAvailable,
        isKept: isKept(source, { meter, stride }),
      },
    ),
  };
}

function isKept({ settings }: OpenSource, { meter, stride }: { meter: Meter; stride: Stride }): boolean {
  if (meter === "traces") return stride === "day" || stride === "hour";
  return stride === "day" && settings.meters.includes(meter);
}

/** Fetches every open difference again and compares it with a new export. Undefined if nothing is open. */
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
  const isRequested = (one: { scopeId: number; bucketStart: number }) =>
    tasks.some(
      ({ window, members }) =>
        one.bucketStart >= window.start &&
        one.bucketStart < window.end &&
        members.some(({ scopeId }) => scopeId === one.scopeId),
    );
  const differences = all.filter(isRequested).reduce((sum, one) => sum + one.differences, 0);
  return { repaired: { differences, mended, withdrawn, run }, compared };
}

interface ComparedTasks {
  readonly windows: number;
  readonly requests: number;
  readonly compared: number;
  readonly failures: readonly { task: UsageRequest; code: string; message: string }[];
  /** Scopes x windows that were not compared. `unverified`: access is not proven. `moved`: they changed meanwhile. */
  readonly unverified: number;
  readonly moved: number;
}

/** Compares tasks one after another, so that only one export is kept at a time. */
async function compareTasks(
  source: OpenSource,
  tasks: readonly UsageRequest[],
  onProgress?: OnProgress,
): Promise<ComparedTasks> {
  let [requests, compared, unverified, moved] = [0, 0, 0, 0];
  const work = async (task: UsageRequest): Promise<void> => {
    const compare = () => compareTask(source, task, () => requests++);
    let comparison: Comparison;
    try {
      comparison = await compare();
    } catch (error) {
      const halves = error instanceof PlatformError && error.isUrlTooLong ? halvesByMember(task) : [];
      if (halves.length === 0) throw error;
      for (const half of halves) await work(half);
      return;
    }
    // A load between the export and the comparison stored something newer, so the export is requested again.
    if (comparison.outcome === "outdated") comparison = await compare();
    compared += comparison.compared;
    unverified += comparison.unverified.length;
    moved += comparison.outcome === "outdated" ? task.members.length : comparison.notFinal.length;
  };
  const failed = await sequentially(source, tasks, { work, onProgress });
  const failures = failed.map(({ one, ...reason }) => ({ task: one, ...reason }));
  return { windows: tasks.length, requests, compared, failures, unverified, moved };
}

async function compareTask(
  source: OpenSource,
  task: UsageRequest,
  onAttempt: () => void,
): Promise<Comparison> {
  const { store, sourceId, billing, signal, settings } = source;
  const { meter, groupBy, window } = task;
  return fetchUsage(source, { purpose: "reconcile", request: task, onAttempt }, async ({ fetchToken }) => {
    const exported = await billing.exportCsv(queryOf(task), { signal });
    const requested = {
      sourceId,
      meter,
      groupBy,
      window,
      fetchToken,
      whole: exported.whole,
      workspaceIds: workspaceIdsOf(task),
      scopeIds: scopeIdsOf(task),
      // An address that is not stored cannot be compared.
      withNames: groupBy !== "user" || settings.userEmail === "keep",
    };
    const comparison = await exported
      .read((rows) => compareExport(store, { ...requested, rows }))
      .finally(() => exported.close());
    const { rows: records, traces } = comparison;
    return { outcome: "compared", records, traces, result: comparison };
  });
}

export interface NotCompared {
  readonly provisional: number;
  readonly failed: number;
  readonly missing: number;
  /** Not loaded, and no sync keeps it: old hours, weeks and longer buckets. */
  readonly notKept: number;
  readonly notAvailable: number;
}

export function notCompared(
  {
    settings,
    dataStart,
  }: {
    readonly settings: Pick<OpenSource["settings"], "hourlyForMs" | "settleAfterMs">;
    readonly dataStart: number;
  },
  states: readonly ScopeState[],
  requested: {
    stride: Stride;
    partsOf: (state: ScopeState) => readonly Interval[];
    now: number;
    isAvailable: boolean;
    isKept: boolean;
  },
): NotCompared {
  const { stride, now, isAvailable, isKept } = requested;
  const unit = stride === "hour" ? HOUR_MS : DAY_MS;
  const ended = { start: dataStart, end: floorToGrid(now, unit) };
  const young = { start: floorToGrid(now - settings.settleAfterMs, DAY_MS), end: Infinity };
  const keptFrom = stride === "hour" ? floorToGrid(now - settings.hourlyForMs, DAY_MS) : dataStart;
  const kept = isKept ? [{ start: keptFrom, end: Infinity }] : [];
  const count = { provisional: 0, failed: 0, missing: 0, notKept: 0, notAvailable: 0 };
  for (const state of states) {
    const { coverage, failures } = state;
    const final = coverage.filter((loaded) => loaded.final);
    const open = subtract(intersect(requested.partsOf(state), [ended]), final);
    const failed = intersect(subtract(open, coverage), failures);
    const unloaded = subtract(subtract(open, coverage), failures);
    const missing = intersect(unloaded, kept);
    const due = subtract(missing, [young]);
    count.failed += totalMs(failed) / unit;
    count.notKept += totalMs(subtract(unloaded, missing)) / unit;
    count[isAvailable ? "missing" : "notAvailable"] += totalMs(isAvailable ? due : missing) / unit;
    count.provisional +=
      totalMs(intersect(open, isAvailable ? [...coverage, ...intersect(missing, [young])] : coverage)) / unit;
  }
  return count;
}
