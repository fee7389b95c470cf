import { createHash } from "node:crypto";
import type { SourceConfig } from "../../core/base/config.ts";
import type { RangeLine } from "../../core/domain/coverage/range-status.ts";
import { type PlannedScope, planTasks } from "../../core/domain/planning/plan-tasks.ts";
import { scopeIdsOf, type UsageRequest, workspaceIdsOf } from "../../core/domain/planning/request.ts";
import { alignRange } from "../../core/domain/planning/windows.ts";
import { ALL_TIME, normalize, subtract } from "../../core/domain/time/intervals.ts";
import { DAY_MS, HOUR_MS, STRIDES } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import type { Meter } from "../../core/domain/usage/meter.ts";
import { sharesOf } from "../../core/pipeline/source/limit-shares.ts";
import { type OpenSource, startOf } from "../../core/pipeline/source/source.ts";
import { clipToFuture, planSource } from "../../core/pipeline/sync/plan.ts";
import { statusOfRequested } from "../../core/pipeline/sync/requested-range.ts";
import { type Syncing, syncBudget } from "../../core/pipeline/sync/sync-budget.ts";
import {
  type PlanFacts,
  type PlannableSource,
  planFacts,
  plannableSource,
} from "../../core/store/activity/plan-facts.ts";
import { learnedMeters } from "../../core/store/catalog/source-meters.ts";
import type { Database } from "../../core/store/db/database.ts";
import { timeWithoutTraces } from "../../core/store/load/by-workspace.ts";
import { SHARE_OF_OLDEST, tasksInFlight } from "../../core/store/work/tasks.ts";
import type { BackfillRequest } from "./backfill-request.ts";
import { type LeftOut, leftOutOf, outsideOf } from "./planned-windows.ts";

interface BackfillPlan {
  /** The part of the range that can have usage. Undefined: no part can. */
  readonly range: Interval | undefined;
  readonly loaded: readonly RangeLine[];
  readonly tasks: readonly UsageRequest[];
}

export interface BackfillPreview extends BackfillPlan {
  readonly leftOut: readonly LeftOut[];
  /** Requests that are created and dropped unsent, because the server does not support their stride. */
  readonly notSent: number;
  readonly withoutTraces: number;
  /** Requests whose whole window a sync or another backfill is loading too. */
  readonly inFlight: number;
  /** Undefined before the first contact and without a database. */
  readonly facts: PlanFacts | undefined;
  /** SHA-256 of the source, the requested range and the requests. */
  readonly digest: string;
}

/**
 * Plans the requests of a backfill that starts now, without a request to the platform. Retry times are ignored, because a
 * person waits. Time that others are loading is planned too, because a backfill ends when its whole range is loaded.
 */
export async function planBackfill(
  { dataStart: sourceStart, stored, workspaceIds }: PreviewedSource,
  { meter, range: requestedRange, stride, groupings, reprocess }: BackfillRequest,
  now: number,
): Promise<BackfillPlan> {
  const range = clipToFuture(
    stored?.source ?? { capabilities: new Set<never>() },
    requestedRange,
    stride,
    now,
  );
  if (range === undefined) return { range, loaded: [], tasks: [] };
  const wanted = [{ meter, stride, range }];
  if (stored === undefined) {
    const backfillRequest = { meter, stride, groupings };
    return {
      range,
      loaded: missingLines(backfillRequest, alignRange(range, stride, sourceStart), workspaceIds.length),
      tasks: planTasks({
        meter,
        scopes: emptyScopes(backfillRequest, workspaceIds),
        wanted,
        dataStart: sourceStart,
      }),
    };
  }
  const { db, source } = stored;
  const requested = { wanted, groupings, workspaceIds };
  // No task requests a meter that the server does not count.
  const tasks = await planSource(
    { ...source, store: { db }, workspaceIds },
    { ...requested, reprocess, retry: "all" },
  );
  return { range, loaded: await statusOfRequested(db, source, requested), tasks };
}

export async function previewBackfill(
  source: PreviewedSource,
  backfillRequest: BackfillRequest,
  { now, mostRecords }: { now: number; mostRecords?: number },
): Promise<BackfillPreview> {
  const plan = await planBackfill(source, backfillRequest, now);
  const { tasks } = plan;
  const { stored } = source;
  const isSent = (task: UsageRequest) => {
    const capability = `no_${task.window.stride}` as const;
    if (stored === undefined || !stored.source.capabilities.has(capability)) return true;
    return stored.source.strideRetries.has(capability);
  };
  const refused = tasks.filter((task) => !isSent(task));
  const scopes = source.workspaceIds.length * backfillRequest.groupings.length;
  const dataStart = startOf(stored?.source ?? { ...source, meters: new Map() }, backfillRequest.meter);
  const given = { range: plan.range, dataStart, stride: backfillRequest.stride, scopes };
  const isCounted = stored === undefined || stored.source.meters.has(backfillRequest.meter);
  return {
    ...plan,
    leftOut: [
      ...outsideOf(backfillRequest.range, given),
      ...leftOutOf(
        isCounted ? "final" : "not_available",
        backfillRequest.stride,
        finalParts({ ...source, dataStart }, backfillRequest, plan),
      ),
      ...leftOutOf(
        "not_available",
        backfillRequest.stride,
        refused.flatMap(({ window, members }) => members.map(() => window)),
      ),
    ],
    notSent: refused.length,
    withoutTraces:
      stored === undefined ? 0 : await countWithoutTraces(stored, backfillRequest, tasks.filter(isSent)),
    inFlight: stored === undefined ? 0 : await countInFlight(stored, tasks),
    facts:
      stored &&
      (await planFacts(stored.db, {
        sourceId: stored.source.sourceId,
        most: mostRecords,
        windows: windowsByScope(tasks.filter(isSent)),
      })),
    digest: digestOf(source, backfillRequest, tasks),
  };
}

function finalParts(
  { dataStart, workspaceIds }: PreviewedSource,
  { stride, groupings }: BackfillRequest,
  { range, tasks }: BackfillPlan,
): Interval[] {
  const required = range && alignRange(range, stride, dataStart);
  if (required === undefined) return [];
  const planned = windowsBy(tasks, (task) => workspaceIdsOf(task).map((id) => `${task.groupBy} ${id}`));
  return groupings.flatMap((groupBy) =>
    workspaceIds.flatMap((id) => subtract([required], planned.get(`${groupBy} ${id}`) ?? [])),
  );
}

/** A backfill that fetches everything again does not rely on stored zeros. */
async function countWithoutTraces(
  { db, source }: NonNullable<PreviewedSource["stored"]>,
  { meter, reprocess }: BackfillRequest,
  tasks: readonly UsageRequest[],
): Promise<number> {
  if (meter !== "traces" || reprocess === "all") return 0;
  const quiet = await timeWithoutTraces(db, source.sourceId);
  const { byWorkspace = [], others = [] } = Object.groupBy(tasks, ({ groupBy }) =>
    groupBy === "workspace" ? "byWorkspace" : "others",
  );
  const keysOf = (task: UsageRequest) => workspaceIdsOf(task).map((id) => `${id} ${task.window.stride}`);
  // Counts only if the plan also requests the workspaces' totals.
  const requested = windowsBy(byWorkspace, keysOf);
  return others.filter((task) =>
    keysOf(task).every((key) =>
      [requested, quiet].every((known) => isWithin(task.window, known.get(key) ?? [])),
    ),
  ).length;
}

function isWithin({ start, end }: Interval, parts: readonly Interval[]): boolean {
  return parts.some((part) => part.start <= start && end <= part.end);
}

async function countInFlight(
  { db, source }: NonNullable<PreviewedSource["stored"]>,
  tasks: readonly UsageRequest[],
): Promise<number> {
  const parts = await tasksInFlight(db, source.sourceId);
  if (parts.size === 0) return 0;
  const covered = new Map([...parts].map(([scopeId, some]) => [scopeId, normalize(some)]));
  return tasks.filter((task) =>
    scopeIdsOf(task).every((scopeId) => isWithin(task.window, covered.get(scopeId) ?? [])),
  ).length;
}

function windowsByScope(tasks: readonly UsageRequest[]): ReadonlyMap<number, readonly Interval[]> {
  return new Map([...windowsBy(tasks, scopeIdsOf)].map(([scopeId, some]) => [scopeId, normalize(some)]));
}

function windowsBy<K>(tasks: readonly UsageRequest[], keysOf: (task: UsageRequest) => readonly K[]) {
  const windows = new Map<K, Interval[]>();
  for (const task of tasks) {
    for (const key of keysOf(task)) {
      const some = windows.get(key) ?? [];
      windows.set(key, some);
      some.push(task.window);
    }
  }
  return windows;
}

export function digestOf(
  { slug, workspaceIds }: PreviewedSource,
  backfillRequest: BackfillRequest,
  tasks: readonly UsageRequest[],
): string {
  const { meter, range, stride, groupings, reprocess } = backfillRequest;
  const requested = {
    ...(meter === "traces" ? {} : { meter }),
    slug,
    range: [range.start, range.end],
    stride,
    groupings: [...groupings].sort(),
    reprocess,
  };
  const requests = tasks
    .map((task) => {
      const { stride: of, start, end } = task.window;
      return `${task.groupBy} ${of} ${start} ${end} ${[...workspaceIdsOf(task)].sort().join()}`;
    })
    .sort();
  const hash = createHash("sha256").update(
    JSON.stringify({ ...requested, workspaceIds: [...workspaceIds].sort() }),
  );
  for (const request of requests) hash.update(`\n${request}`);
  return hash.digest("hex");
}

/** Before the first contact everything is missing, in one workspace if none is known. */
function missingLines(
  { meter, stride, groupings }: Pick<BackfillRequest, "meter" | "stride" | "groupings">,
  required: Interval | undefined,
  workspaces: number,
): RangeLine[] {
  if (required === undefined) return [];
  const { start: first, end } = required;
  const buckets = Math.max(1, workspaces) * Math.ceil((end - first) / (stride === "hour" ? HOUR_MS : DAY_MS));
  return groupings.map((groupBy) => {
    return { meter, groupBy, stride, status: "missing", code: null, buckets, first, end, retryAt: null };
  });
}

function emptyScopes(
  { stride, groupings }: Pick<BackfillRequest, "stride" | "groupings">,
  workspaceIds: readonly string[],
): PlannedScope[] {
  const ids = workspaceIds.length === 0 ? ["each workspace"] : workspaceIds;
  const strides = STRIDES.slice(0, STRIDES.indexOf(stride) + 1);
  return ids.flatMap((workspaceId) =>
    groupings.flatMap((groupBy) =>
      strides.map((one) => ({ scopeId: 0, workspaceId, groupBy, stride: one, missing: [ALL_TIME] })),
    ),
  );
}

export interface PreviewedSource {
  readonly slug: string;
  readonly dataStart: number;
  readonly workspaceIds: readonly string[];
  readonly stored: StoredSource | undefined;
}

type PlannedSource = Omit<PlannableSource, "workspaces">;

interface StoredSource {
  readonly db: Database;
  readonly source: PlannedSource;
}

/** A configured source as stored. Without a database: as configured. */
export async function previewedSource(
  { slug, dataStart, workspaceIds }: Pick<SourceConfig, "slug" | "dataStart" | "workspaceIds">,
  db: Database | undefined,
): Promise<PreviewedSource & { readonly names: PlannableSource["workspaces"] }> {
  const source = db && (await plannableSource(db, slug));
  if (db === undefined || source === undefined) {
    return { slug, dataStart: Date.parse(dataStart), workspaceIds, names: [], stored: undefined };
  }
  const { workspaces: names } = source;
  const ids = names.map(({ id }) => id);
  return { slug, dataStart: source.dataStart, workspaceIds: ids, names, stored: { db, source } };
}

/** The source as if it had a meter that was never requested, because a load requests the meter first. */
export async function asIfCounted(
  known: PreviewedSource,
  meter: Meter,
): Promise<{ known: PreviewedSource; isAssumed: boolean }> {
  const { stored } = known;
  if (stored === undefined) return { known, isAssumed: meter !== "traces" };
  const { db, source } = stored;
  if (source.meters.has(meter)) return { known, isAssumed: false };
  const learned = (await learnedMeters(db, source.sourceId)).find((one) => one.meter === meter);
  if (learned?.isDue === false) return { known, isAssumed: false };
  const meters = new Map([...source.meters, [meter, source.dataStart]]);
  return { known: { ...known, stored: { db, source: { ...source, meters } } }, isAssumed: true };
}

export function previewedOpen(source: OpenSource): PreviewedSource {
  const { config, dataStart, workspaceIds, store } = source;
  return { slug: config.slug, dataStart, workspaceIds, stored: { db: store.db, source } };
}

/** Requests of a source per minute: allowed for fetch tasks, needed by routine syncs, and left for backfills. */
export interface BackfillBudget {
  readonly perMinute: number;
  readonly routinePerMinute: number;
  /** Even if routine syncs need more, the tasks that waited longest get a share. */
  readonly leftPerMinute: number;
}

const MINUTE_MS = 60_000;

export function backfillBudget(
  { workspaceIds, dataStart, stored }: PreviewedSource,
  given: { config: Pick<SourceConfig, "slug" | "rateLimit">; settings: Syncing["settings"]; now: number },
): BackfillBudget {
  const { config, settings, now } = given;
  const { fetch } = sharesOf(config.rateLimit);
  const perMinute = (fetch.max * MINUTE_MS) / fetch.duration;
  const source = {
    config,
    settings,
    dataStart,
    meters: stored?.source.meters ?? new Map([["traces" as const, dataStart]]),
    workspaceIds,
    capabilities: stored?.source.capabilities ?? new Set<never>(),
    strideRetries: new Set<never>(),
  };
  const routinePerMinute = (syncBudget(source, now).needed * MINUTE_MS) / settings.syncEveryMs;
  return {
    perMinute,
    routinePerMinute,
    leftPerMinute: Math.max(perMinute * SHARE_OF_OLDEST, perMinute - routinePerMinute),
  };
}

export function minutesOf(requests: number, { leftPerMinute }: BackfillBudget): number {
  return Math.ceil(requests / leftPerMinute);
}
