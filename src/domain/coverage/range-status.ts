import { alignRange } from "../planning/windows.ts";
import { intersect, intersectEach, normalize, subtract, union } from "../time/intervals.ts";
import { ceilToGrid, DAY_MS, finerStride, floorToGrid, HOUR_MS, type Stride } from "../time/stride.ts";
import type { Interval } from "../time/window.ts";
import type { Meter } from "../usage/meter.ts";
import type { GroupBy } from "../usage/record.ts";

/** How a part of the requested time is loaded, by the rules of the view `usage_coverage_daily`. */
export type LoadStatus = "final" | "provisional" | "not_available" | "failed" | "unverified" | "missing";

/** A part of time whose last answer could not be used. */
export interface FailedInterval extends Interval {
  readonly state: "failed" | "unverified";
  readonly code: string;
  /** When a sync fetches it again, epoch milliseconds. */
  readonly retryAt: number;
}

/** What is known of the time of one dimension and workspace in one stride. */
export interface KnownTime {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly workspaceId: string;
  readonly coverage: readonly (Interval & { readonly final: boolean })[];
  readonly failures: readonly FailedInterval[];
}

/** Days (hours, if hours were requested) x workspaces of one dimension that share a status. */
export interface RangeLine {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly status: LoadStatus;
  /** Why it failed; null for every other status. */
  readonly code: string | null;
  readonly buckets: number;
  /** Epoch milliseconds. */
  readonly first: number;
  readonly end: number;
  /** The earliest instant of the next attempt, epoch milliseconds; null where none is planned. */
  readonly retryAt: number | null;
}

interface RangeDemand {
  /** The meter of all these scopes. */
  readonly meter: Meter;
  /** Every scope of the wanted strides and of all finer ones. */
  readonly known: readonly KnownTime[];
  readonly wanted: readonly { readonly stride: Stride; readonly range: Interval }[];
  readonly dataStart: number;
  /** Strides that the server does not answer in. */
  readonly unavailable: ReadonlySet<Stride>;
}

interface StatusPart {
  readonly status: LoadStatus;
  readonly parts: readonly Interval[];
  readonly failure?: FailedInterval;
}

/** What the tables say about a requested range. The lines of a dimension and stride add up to the whole range. */
export function rangeStatus({ meter, known, wanted, dataStart, unavailable }: RangeDemand): RangeLine[] {
  const byKey = new Map(known.map((one) => [`${one.groupBy} ${one.workspaceId} ${one.stride}`, one]));
  const lines = new Map<string, RangeLine>();
  for (const { stride, range } of wanted) {
    const required = alignRange(range, stride, dataStart);
    if (required === undefined) continue;
    for (const { groupBy, workspaceId, ...scope } of known) {
      if (scope.stride !== stride) continue;
      const inStride = (finer: Stride) => byKey.get(`${groupBy} ${workspaceId} ${finer}`);
      for (const part of statusParts(required, stride, {
        inStride,
        isUnavailable: unavailable.has(stride),
      })) {
        addTo(lines, { meter, groupBy, stride }, part);
      }
    }
  }
  return [...lines.values()];
}

/** Whether nothing of the range is left to load. */
export function isLoaded({ status }: Pick<RangeLine, "status">): boolean {
  return status === "final" || status === "provisional";
}

/** The first status that applies: not available, failed or unverified, missing, provisional, final. */
function statusParts(
  required: Interval,
  stride: Stride,
  given: { inStride: (stride: Stride) => KnownTime | undefined; isUnavailable: boolean },
): StatusPart[] {
  const { inStride, isUnavailable } = given;
  const found: StatusPart[] = [];
  let left: Interval[] = [required];
  const take = (status: LoadStatus, among: readonly Interval[]) => {
    const parts = intersect(left, among);
    if (parts.length > 0) found.push({ status, parts });
    left = subtract(left, parts);
  };
  const grid = stride === "hour" ? HOUR_MS : DAY_MS;
  // Together: thousands of failures one by one would go through all that is left each time.
  const takeFailures = (failures: readonly FailedInterval[]) => {
    const widened = failures.map((failure) => ({
      failure,
      part: { start: floorToGrid(failure.start, grid), end: ceilToGrid(failure.end, grid) },
    }));
    const parts = intersectEach(
      left,
      widened.map(({ part }) => part),
    );
    widened.forEach(({ failure }, n) => {
      const own = parts[n] ?? [];
      if (own.length > 0) found.push({ status: failure.state, parts: own, failure });
    });
    left = subtract(left, parts.flat());
  };
  const loaded = loadedTime(stride, inStride, grid);
  if (isUnavailable) take("not_available", subtract(left, loaded.all));
  takeFailures(inStride(stride)?.failures ?? []);
  take("final", loaded.final);
  take("provisional", loaded.all);
  // Time that does not fit the tier of the stride is planned in finer ones, so their failures are the reason.
  for (let at = finerStride(stride); at !== undefined; at = finerStride(at)) {
    takeFailures(inStride(at)?.failures ?? []);
  }
  take("missing", left);
  return found;
}

/** Time that is loaded in this stride or, outside of it, in a finer one. Hours make up a day only if all 24 are loaded. */
function loadedTime(
  stride: Stride,
  inStride: (stride: Stride) => KnownTime | undefined,
  grid: number,
): { all: Interval[]; final: Interval[] } {
  const coverage = inStride(stride)?.coverage ?? [];
  const own = {
    all: whole(coverage, grid),
    final: whole(
      coverage.filter(({ final }) => final),
      grid,
    ),
  };
  const finer = finerStride(stride);
  if (finer === undefined) return own;
  const below = loadedTime(finer, inStride, grid);
  return { all: union(own.all, below.all), final: union(own.final, subtract(below.final, own.all)) };
}

function whole(parts: readonly Interval[], grid: number): Interval[] {
  return normalize(
    normalize(parts).map(({ start, end }) => ({
      start: ceilToGrid(start, grid),
      end: floorToGrid(end, grid),
    })),
  );
}

function addTo(
  lines: Map<string, RangeLine>,
  { meter, groupBy, stride }: Pick<RangeLine, "meter" | "groupBy" | "stride">,
  { status, parts, failure }: StatusPart,
): void {
  const unit = stride === "hour" ? HOUR_MS : DAY_MS;
  const code = failure?.code ?? null;
  const key = `${groupBy} ${stride} ${status} ${code}`;
  for (const { start, end } of parts) {
    const before = lines.get(key) ?? { buckets: 0, first: start, end, retryAt: failure?.retryAt ?? null };
    const retries = [before.retryAt, failure?.retryAt].filter((at) => at != null);
    lines.set(key, {
      ...{ meter, groupBy, stride, status, code },
      buckets: before.buckets + Math.ceil((end - start) / unit),
      first: Math.min(before.first, start),
      end: Math.max(before.end, end),
      retryAt: retries.length === 0 ? null : Math.min(...retries),
    });
  }
}
