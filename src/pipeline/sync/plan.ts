import { type KnownScope, planSlices, type Slice } from "../../domain/planning/slice.ts";
import { intersect, normalize } from "../../domain/time/intervals.ts";
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

export interface PlanRequest {
  readonly wanted: readonly { readonly stride: Stride; readonly range: Interval }[];
  readonly groupings?: readonly GroupBy[];
  /** Platform ids; default: all workspaces of the source. */
  readonly workspaceIds?: readonly string[];
  /** `missing` leaves out settled time; `all` asks for everything again. */
  readonly reprocess: "missing" | "all";
  /** Parts of each scope's time that are being fetched already. */
  readonly inFlight?: ReadonlyMap<number, readonly Interval[]>;
}

/** The slices to fetch: required, minus settled coverage, minus failures whose time has not come. */
export async function planSource(source: OpenSource, request: PlanRequest): Promise<Slice[]> {
  const groupings = request.groupings ?? GROUPINGS;
  const strides = withFiner(request.wanted.map((want) => want.stride));
  const { sourceId, store, dataStart } = source;
  // The views put a day beside its hours, so both scopes are there from the start.
  await ensureScopes(store.db, {
    sourceId,
    groupings,
    strides: [...new Set<Stride>([...strides, "day", "hour"])],
  });
  const states = await scopeStates(store.db, { sourceId, groupings, strides });
  const workspaceIds = request.workspaceIds ?? source.workspaces.map((w) => w.workspaceId);
  const scopes: KnownScope[] = states
    .filter((state) => workspaceIds.includes(state.workspaceId))
    .map((state) => ({
      ...state,
      done: normalize([
        ...(request.reprocess === "all" ? [] : doneParts(state)),
        ...(request.inFlight?.get(state.scopeId) ?? []),
      ]),
    }));
  return planSlices({ scopes, wanted: request.wanted, dataStart });
}

/** The strides themselves and every finer one, in which the rest of a plan is cut. */
function withFiner(strides: readonly Stride[]): Stride[] {
  const coarsest = Math.max(...strides.map((stride) => STRIDES.indexOf(stride)));
  return STRIDES.slice(0, coarsest + 1).filter((stride) => strides.includes(stride) || stride !== "hour");
}

function doneParts(state: ScopeState): Interval[] {
  return normalize([
    ...state.coverage.filter((fragment) => fragment.settled),
    ...state.failures.filter((failure) => !failure.due),
  ]);
}

/** What of a source decides what a round keeps. */
type Demanding = Pick<OpenSource, "capabilities" | "strideRetries" | "dataStart"> & {
  readonly settings: Pick<OpenSource["settings"], "hourlyForMs">;
};

/**
 * What a round keeps: `day` for all time, `hour` for the last `USAGE_HOURLY_FOR`. Where the server refuses an end in
 * the future, both end with their last whole bucket, and the day under way is known by its hours.
 */
export function routineDemand(source: Demanding, now: number): PlanRequest["wanted"] {
  const future = !source.capabilities.has("no_future_end");
  const endOn = (gridMs: number) => (future ? ceilToGrid(now, gridMs) : floorToGrid(now, gridMs));
  const hoursFrom = floorToGrid(now - source.settings.hourlyForMs, DAY_MS);
  const demand: { stride: Stride; range: Interval }[] = [
    { stride: "day", range: { start: source.dataStart, end: endOn(DAY_MS) } },
    { stride: "hour", range: { start: hoursFrom, end: endOn(HOUR_MS) } },
  ];
  return demand.flatMap((want) => askable(source, want)).filter(({ range }) => range.start < range.end);
}

type Want = PlanRequest["wanted"][number];

/** Nothing of a stride that the server does not answer in, but its newest whole bucket where the daily probe is due. */
function askable(source: Demanding, want: Want): Want[] {
  const fact = `no_${want.stride}` as const;
  if (!source.capabilities.has(fact)) return [want];
  if (!source.strideRetries.has(fact)) return [];
  const end = floorToGrid(want.range.end - 1, STRIDE_MS[want.stride]);
  return [{ stride: want.stride, range: { start: end - STRIDE_MS[want.stride], end } }];
}

/** What of a range that a person asked for can hold usage: nothing after the hour or day under way. */
export function clipToFuture(
  source: OpenSource,
  range: Interval,
  stride: Stride,
  now: number,
): Interval | undefined {
  const grid = stride === "hour" ? HOUR_MS : DAY_MS;
  const end = source.capabilities.has("no_future_end") ? floorToGrid(now, grid) : ceilToGrid(now, grid);
  return intersect([range], [{ start: range.start, end }])[0];
}
