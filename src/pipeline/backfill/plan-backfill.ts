import { createHash } from "node:crypto";
import type { SourceConfig } from "../../config/config.ts";
import type { RangeLine } from "../../domain/coverage/range-status.ts";
import { type PlannedScope, planTasks } from "../../domain/planning/plan-tasks.ts";
import { type LeftOut, leftOutOf, outsideOf } from "../../domain/planning/planned-windows.ts";
import { scopeIdsOf, type UsageRequest, workspaceIdsOf } from "../../domain/planning/request.ts";
import { alignRange } from "../../domain/planning/windows.ts";
import { ALL_TIME, normalize, subtract } from "../../domain/time/intervals.ts";
import { DAY_MS, HOUR_MS, STRIDES } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import {
  type PlanFacts,
  type PlannableSource,
  planFacts,
  plannableSource,
} from "../../store/activity/plan-facts.ts";
import { learnedMeters } from "../../store/catalog/source-meters.ts";
import type { Database } from "../../store/db/database.ts";
import { timeWithoutTraces } from "../../store/load/by-workspace.ts";
import { SHARE_OF_OLDEST, tasksInFlight } from "../../store/work/tasks.ts";
import { sharesOf } from "../source/limit-shares.ts";
import { type OpenSource, startOf } from "../source/source.ts";
import { statusOfAsked } from "../sync/asked-range.ts";
import { clipToFuture, planSource } from "../sync/plan.ts";
import { type Syncing, syncBudget } from "../sync/sync-budget.ts";
import type { Wish } from "./wish.ts";

/** The requests of a backfill, and how its range is loaded now. */
interface BackfillPlan {
  /** The part of the range that can have usage; undefined if there is none. */
  readonly range: Interval | undefined;
  readonly loaded: readonly RangeLine[];
  readonly tasks: readonly UsageRequest[];
}

export interface BackfillPreview extends BackfillPlan {
  readonly leftOut: readonly LeftOut[];
  /** Requests that are created and dropped unsent, because the server does not respond in their stride. */
  readonly notSent: number;
  readonly withoutTraces: number;
  /** Requests whose whole time is being loaded by a sync or another backfill too. */
  readonly inFlight: number;
  /** Undefined before the first contact, and without a database. */
  readonly facts: PlanFacts | undefined;
  /** SHA-256 of the source, the wanted range and the requests. */
  readonly digest: string;
}

/**
 * What a backfill that starts now would request; the platform is not asked. Retry times are ignored, since a
 * person waits. Time that others are loading is planned too, since a backfill ends only when all of its range
 * is loaded.
 */
export async function planBackfill(
  { dataStart: sourceStart, stored, workspaceIds }: PreviewedSource,
  { meter, range: wished, stride, groupings, reprocess }: Wish,
  now: number,
): Promise<BackfillPlan> {
  const range = clipToFuture(stored?.source ?? { capabilities: new Set<never>() }, wished, stride, now);
  if (range === undefined) return { range, loaded: [], tasks: [] };
  const wanted = [{ meter, stride, range }];
  if (stored === undefined) {
    const wish = { meter, stride, groupings };
    return {
      range,
      loaded: missingLines(wish, alignRange(range, stride, sourceStart), workspaceIds.length),
      tasks: planTasks({ meter, scopes: emptyScopes(wish, workspaceIds), wanted, dataStart: sourceStart }),
    };
  }
  const { db, source } = stored;
  const asked = { wanted, groupings, workspaceIds };
  // Nothing is requested for a meter that the server does not count.
  const tasks = await planSource(
    { ...source, store: { db }, workspaceIds },
    { ...asked, reprocess, retry: "all" },
  );
  return { range, loaded: await statusOfAsked(db, source, asked), tasks };
}

/** The plan with what a person should know before starting it. */
export async function previewBackfill(
  source: PreviewedSource,
  wish: Wish,
  { now, mostRecords }: { now: number; mostRecords?: number },
): Promise<BackfillPreview> {
  const plan = await planBackfill(source, wish, now);
  const { tasks } = plan;
  const { stored } = source;
  const isSent = (task: UsageRequest) => {
    const capability = `no_${task.window.stride}` as const;
    if (stored === undefined || !stored.source.capabilities.has(capability)) return true;
    return stored.source.strideRetries.has(capability);
  };
  const refused = tasks.filter((task) => !isSent(task));
  const scopes = source.workspaceIds.length * wish.groupings.length;
  const dataStart = startOf(stored?.source ?? { ...source, meters: new Map() }, wish.meter);
  const given = { range: plan.range, dataStart, stride: wish.stride, scopes };
  const isCounted = stored === undefined || stored.source.meters.has(wish.meter);
  return {
    ...plan,
    leftOut: [
      ...outsideOf(wish.range, given),
      ...leftOutOf(
        isCounted ? "final" : "not_available",
        wish.stride,
        finalParts({ ...source, dataStart }, wish, plan),
      ),
      ...leftOutOf(
        "not_available",
        wish.stride,
        refused.flatMap(({ window, members }) => members.map(() => window)),
      ),
    ],
    notSent: refused.length,
    withoutTraces: stored === undefined ? 0 : await countWithoutTraces(stored, wish, tasks.filter(isSent)),
    inFlight: stored === undefined ? 0 : await countInFlight(stored, tasks),
    facts:
      stored &&
      (await planFacts(stored.db, {
        sourceId: stored.source.sourceId,
        most: mostRecords,
        windows: windowsByScope(tasks.filter(isSent)),
      })),
    digest: digestOf(source, wish, tasks),
  };
}

/** Wanted parts that are final in this stride or a finer one, so not planned. */
function finalParts(
  { dataStart, workspaceIds }: PreviewedSource,
  { stride, groupings }: Wish,
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
  { meter, reprocess }: Wish,
  tasks: readonly UsageRequest[],
): Promise<number> {
  if (meter !== "traces" || reprocess === "all") return 0;
  const quiet = await timeWithoutTraces(db, source.sourceId);
  const { byWorkspace = [], others = [] } = Object.groupBy(tasks, ({ groupBy }) =>
    groupBy === "workspace" ? "byWorkspace" : "others",
  );
  const keysOf = (task: UsageRequest) => workspaceIdsOf(task).map((id) => `${id} ${task.window.stride}`);
  // Only workspace responses of the same plan count.
  const asked = windowsBy(byWorkspace, keysOf);
  return others.filter((task) =>
    keysOf(task).every((key) => [asked, quiet].every((known) => isWithin(task.window, known.get(key) ?? []))),
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
  wish: Wish,
  tasks: readonly UsageRequest[],
): string {
  const { meter, range, stride, groupings, reprocess } = wish;
  const asked = {
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
    JSON.stringify({ ...asked, workspaceIds: [...workspaceIds].sort() }),
  );
  for (const request of requests) hash.update(`\n${request}`);
  return hash.digest("hex");
}

/** Of a source without contact everything is missing. One workspace stands for those not known yet. */
function missingLines(
  { meter, stride, groupings }: Pick<Wish, "meter" | "stride" | "groupings">,
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
  { stride, groupings }: Pick<Wish, "stride" | "groupings">,
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

/** A source with its workspaces, read without a request to the platform. */
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

/** What the tables know of a configured source. Without a database: its configuration. */
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

/** The same as if a meter that was never requested were counted: a load requests it first. */
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

/** The same for a source after contact. */
export function previewedOpen(source: OpenSource): PreviewedSource {
  const { config, dataStart, workspaceIds, store } = source;
  return { slug: config.slug, dataStart, workspaceIds, stored: { db: store.db, source } };
}

/** Requests a minute of a source: for fetch tasks by the rate limit, for routine syncs, and the rest. */
export interface BackfillBudget {
  readonly perMinute: number;
  readonly routinePerMinute: number;
  /** For backfills. Even if routine syncs need more, the tasks that waited longest get a share. */
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

/** Whole minutes that these requests take beside routine syncs. */
export function minutesOf(requests: number, { leftPerMinute }: BackfillBudget): number {
  return Math.ceil(requests / leftPerMinute);
}
