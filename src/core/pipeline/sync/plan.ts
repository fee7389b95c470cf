import { type PlannedScope, planTasks } from "../../domain/planning/plan-tasks.ts";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { ALL_TIME, intersect, spanOf, subtract } from "../../domain/time/intervals.ts";
import {
  ceilToGrid,
  DAY_MS,
  floorToGrid,
  HOUR_MS,
  STRIDE_MS,
  STRIDES,
  type Stride,
  TIER_BUCKETS,
} from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { dueFailures, ensureScopes, missingTime } from "../../store/catalog/scopes.ts";
import type { ServerCapability } from "../../store/catalog/server-capabilities.ts";
import type { ServerFacts } from "../source/learned-server.ts";
import type { OpenSource } from "../source/source.ts";

export interface Want {
  /** Default: traces of all tiers. */
  readonly meter?: Meter;
  readonly stride: Stride;
  readonly range: Interval;
}

export interface PlanRequest {
  readonly wanted: readonly Want[];
  readonly groupings?: readonly GroupBy[];
  readonly workspaceIds?: readonly string[];
  readonly reprocess: "missing" | "all";
  /** `all` also retries failures that are not due yet, because a person does not wait for a retry time. Default: `due`. */
  readonly retry?: "due" | "all";
  readonly inFlight?: ReadonlyMap<number, readonly Interval[]>;
}

export async function planSource(
  source: {
    readonly sourceId: number;
    readonly store: Pick<OpenSource["store"], "db">;
    readonly meters: ReadonlyMap<Meter, number>;
    readonly workspaceIds: readonly string[];
  },
  request: PlanRequest,
): Promise<UsageRequest[]> {
  const { sourceId, store, meters } = source;
  const { groupings = GROUPINGS, reprocess, retry = "due", inFlight } = request;
  const workspaceIds = request.workspaceIds ?? source.workspaceIds;
  const planned: UsageRequest[][] = [];
  for (const [meter, wanted] of byMeter(request.wanted)) {
    const dataStart = meters.get(meter);
    if (dataStart === undefined) continue;
    const strides = stridesOf(wanted);
    await ensureScopes(store.db, { sourceId, meter, groupings, strides: ensuredStrides(meter, strides) });
    const scopes = await missingTime(store.db, {
      sourceId,
      meter,
      groupings,
      strides,
      workspaceIds,
      reprocess,
      retry,
      within: wholeDaysOf(wanted),
    });
    const free = inFlight === undefined ? scopes : withoutInFlight(scopes, inFlight);
    planned.push(planTasks({ meter, scopes: free, wanted, dataStart }));
  }
  // A large first plan has more tasks than a call takes arguments.
  return planned.flat();
}

/** Spans all wanted time in whole UTC days. No planned window reaches beyond. */
function wholeDaysOf(wanted: readonly Want[]): Interval {
  const { start, end } = spanOf(wanted.map(({ range }) => range));
  return { start: floorToGrid(start, DAY_MS), end: ceilToGrid(end, DAY_MS) };
}

/** Scopes that share both lists share one subtraction. */
function withoutInFlight(
  scopes: readonly PlannedScope[],
  inFlight: ReadonlyMap<number, readonly Interval[]>,
): PlannedScope[] {
  const known = new Map<readonly Interval[], Map<readonly Interval[], Interval[]>>();
  return scopes.map((scope) => {
    const parts = inFlight.get(scope.scopeId);
    if (parts === undefined) return scope;
    const ofMissing = known.get(scope.missing) ?? new Map<readonly Interval[], Interval[]>();
    known.set(scope.missing, ofMissing);
    const missing = ofMissing.get(parts) ?? subtract(scope.missing, parts);
    ofMissing.set(parts, missing);
    return { ...scope, missing };
  });
}

export function byMeter(wanted: readonly Want[]): [Meter, readonly Want[]][] {
  const grouped = Map.groupBy(wanted, ({ meter = "traces" }) => meter);
  return METERS.flatMap((meter) => {
    const some = grouped.get(meter);
    return some === undefined ? [] : [[meter, some]];
  });
}

/** Adds days and hours of traces, because the views show both side by side. */
function ensuredStrides(meter: Meter, strides: readonly Stride[]): Stride[] {
  return meter === "traces" ? [...new Set<Stride>([...strides, "day", "hour"])] : [...strides];
}

function stridesOf(wanted: readonly Want[]): Stride[] {
  const strides = wanted.map((want) => want.stride);
  const coarsest = Math.max(...strides.map((stride) => STRIDES.indexOf(stride)));
  return STRIDES.slice(0, coarsest + 1).filter((stride) => strides.includes(stride) || stride !== "hour");
}

/**
 * Plans due failures outside of the wanted time, such as those of an old backfill by hour. If a failure is too short for its
 * stride's tier, its task includes time before it, or after it near the data start.
 */
export async function planRetries(
  source: OpenSource,
  { wanted, inFlight }: Pick<PlanRequest, "wanted" | "inFlight">,
): Promise<UsageRequest[]> {
  const { sourceId, store, capabilities } = source;
  const strides = STRIDES.filter((stride) => !capabilities.has(`no_${stride}`));
  const ids = new Set(source.workspaceIds);
  const retries: UsageRequest[][] = [];
  for (const [meter, dataStart] of source.meters) {
    const requested = wanted.filter((want) => (want.meter ?? "traces") === meter);
    const failed = await dueFailures(store.db, { sourceId, meter, strides });
    const scopes = failed
      .filter(({ workspaceId }) => ids.has(workspaceId))
      .map((scope): PlannedScope => {
        const planned = requested.filter(({ stride }) => stride === scope.stride).map(({ range }) => range);
        const due = subtract(scope.missing, [...planned, ...(inFlight?.get(scope.scopeId) ?? [])]);
        return { ...scope, missing: due.map((part) => inTier(part, scope.stride, dataStart)) };
      });
    const everywhere = strides.map((stride) => ({ stride, range: ALL_TIME }));
    retries.push(planTasks({ meter, scopes, wanted: everywhere, dataStart }));
  }
  return retries.flat();
}

function inTier({ start, end }: Interval, stride: Stride, dataStart: number): Interval {
  const shortest = TIER_BUCKETS[stride].min * STRIDE_MS[stride];
  if (end - start >= shortest) return { start, end };
  return end - shortest >= dataStart ? { start: end - shortest, end } : { start, end: start + shortest };
}

export type Demanding = ServerFacts & {
  readonly dataStart: number;
  readonly settings: Pick<OpenSource["settings"], "hourlyForMs" | "meters">;
};

/**
 * Returns the time that a sync keeps. `day`: all time of every wanted meter that the server counts. `hour`: the last
 * `USAGE_HOURLY_FOR` of the meter `traces`. If the server refuses an end in the future, both end with their last whole bucket,
 * and hours show the current day.
 */
export function keptDemand(source: Demanding, now: number): Want[] {
  const hoursFrom = floorToGrid(now - source.settings.hourlyForMs, DAY_MS);
  const demand: Want[] = [
    { stride: "day", range: { start: source.dataStart, end: lastEnd(source, DAY_MS, now) } },
    { stride: "hour", range: { start: hoursFrom, end: lastEnd(source, HOUR_MS, now) } },
    ...[...source.meters]
      .filter(([meter]) => meter !== "traces" && source.settings.meters.includes(meter))
      .map(
        ([meter, start]): Want => ({
          meter,
          stride: "day",
          range: { start, end: lastEnd(source, DAY_MS, now) },
        }),
      ),
  ];
  return demand.filter(({ range }) => range.start < range.end);
}

export function routineDemand(source: Demanding, now: number): Want[] {
  return keptDemand(source, now).flatMap((want) => askable(source, want));
}

function askable(source: Demanding, want: Want): Want[] {
  const capability = `no_${want.stride}` as const;
  if (!source.capabilities.has(capability)) return [want];
  if (!source.strideRetries.has(capability)) return [];
  const end = floorToGrid(want.range.end - 1, STRIDE_MS[want.stride]);
  return [{ ...want, range: { start: end - STRIDE_MS[want.stride], end } }];
}

type Capable = { readonly capabilities: ReadonlySet<ServerCapability> };

export function clipToFuture(
  source: Capable,
  range: Interval,
  stride: Stride,
  now: number,
): Interval | undefined {
  const end = lastEnd(source, stride === "hour" ? HOUR_MS : DAY_MS, now);
  return intersect([range], [{ start: range.start, end }])[0];
}

function lastEnd({ capabilities }: Capable, gridMs: number, now: number): number {
  return capabilities.has("no_future_end") ? floorToGrid(now, gridMs) : ceilToGrid(now, gridMs);
}
