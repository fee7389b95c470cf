import { type PlannedScope, planSlices } from "../../domain/planning/plan-slices.ts";
import type { UsageRequest } from "../../domain/planning/request.ts";
import { ALL_TIME, intersect, subtract } from "../../domain/time/intervals.ts";
import {
  ceilToGrid,
  DAY_MS,
  floorToGrid,
  HOUR_MS,
  STRIDE_MS,
  STRIDES,
  type Stride,
} from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import type { OpenSource } from "../source/source.ts";

interface Want {
  readonly stride: Stride;
  readonly range: Interval;
}

export interface PlanRequest {
  readonly wanted: readonly Want[];
  readonly groupings?: readonly GroupBy[];
  /** Platform ids; default: all workspaces of the source. */
  readonly workspaceIds?: readonly string[];
  /** `missing` leaves out settled time; `all` asks for everything again. */
  readonly reprocess: "missing" | "all";
  /** By scope id: parts of time that are being fetched already. */
  readonly inFlight?: ReadonlyMap<number, readonly Interval[]>;
}

/** The slices to fetch: what is required, but for settled time, time in flight and failures that are not due. */
export async function planSource(source: OpenSource, request: PlanRequest): Promise<UsageRequest[]> {
  const { sourceId, store, dataStart } = source;
  const { wanted, reprocess, inFlight, groupings = GROUPINGS } = request;
  const strides = withFiner(wanted.map((want) => want.stride));
  // The views show a day beside its hours, so both scopes exist from the start.
  const ensured = [...new Set<Stride>([...strides, "day", "hour"])];
  await ensureScopes(store.db, { sourceId, groupings, strides: ensured });
  const states = await scopeStates(store.db, { sourceId, groupings, strides });
  const workspaceIds = request.workspaceIds ?? source.workspaces.map((w) => w.workspaceId);
  const scopes = states
    .filter((state) => workspaceIds.includes(state.workspaceId))
    .map((state): PlannedScope => {
      const done = reprocess === "all" ? [] : doneParts(state);
      return { ...state, missing: subtract([ALL_TIME], [...done, ...(inFlight?.get(state.scopeId) ?? [])]) };
    });
  return planSlices({ scopes, wanted, dataStart });
}

/** The strides themselves and every finer one, which hold the parts of time that do not fit. */
function withFiner(strides: readonly Stride[]): Stride[] {
  const coarsest = Math.max(...strides.map((stride) => STRIDES.indexOf(stride)));
  return STRIDES.slice(0, coarsest + 1).filter((stride) => strides.includes(stride) || stride !== "hour");
}

function doneParts({ coverage, failures }: ScopeState): Interval[] {
  return [...coverage.filter((loaded) => loaded.settled), ...failures.filter((failure) => !failure.due)];
}

/** The properties of a source that decide what a sync keeps. */
export type Demanding = Pick<OpenSource, "capabilities" | "strideRetries" | "dataStart"> & {
  readonly settings: Pick<OpenSource["settings"], "hourlyForMs">;
};

/**
 * What a sync keeps: `day` for all time, `hour` for the last `USAGE_HOURLY_FOR`. Where the server refuses an end in the
 * future, both end with their last whole bucket, and the hours show the day under way.
 */
export function routineDemand(source: Demanding, now: number): Want[] {
  const hoursFrom = floorToGrid(now - source.settings.hourlyForMs, DAY_MS);
  const demand: Want[] = [
    { stride: "day", range: { start: source.dataStart, end: lastEnd(source, DAY_MS, now) } },
    { stride: "hour", range: { start: hoursFrom, end: lastEnd(source, HOUR_MS, now) } },
  ];
  return demand.flatMap((want) => askable(source, want)).filter(({ range }) => range.start < range.end);
}

/** A stride that the server does not answer in is left out. Where its daily retry is due, its newest whole bucket stays. */
function askable(source: Demanding, want: Want): Want[] {
  const capability = `no_${want.stride}` as const;
  if (!source.capabilities.has(capability)) return [want];
  if (!source.strideRetries.has(capability)) return [];
  const end = floorToGrid(want.range.end - 1, STRIDE_MS[want.stride]);
  return [{ stride: want.stride, range: { start: end - STRIDE_MS[want.stride], end } }];
}

/** The part of a range that can have usage: nothing after the hour or day under way. */
export function clipToFuture(
  source: OpenSource,
  range: Interval,
  stride: Stride,
  now: number,
): Interval | undefined {
  const end = lastEnd(source, stride === "hour" ? HOUR_MS : DAY_MS, now);
  return intersect([range], [{ start: range.start, end }])[0];
}

/** The latest end that a window may have. */
function lastEnd({ capabilities }: Pick<OpenSource, "capabilities">, gridMs: number, now: number): number {
  return capabilities.has("no_future_end") ? floorToGrid(now, gridMs) : ceilToGrid(now, gridMs);
}
