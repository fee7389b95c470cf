import type { UsageRequest } from "../../domain/planning/request.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import type { Preview, PreviewedSource, Wish } from "../../pipeline/sync/preview.ts";
import { counted, instant, table } from "./output.ts";
import { rangeToData } from "./range-report.ts";

/** A table is for people; `--json` has all windows. */
const MOST_ROWS = 1000;

export interface PlannedSource extends Preview, Omit<Wish, "range"> {
  readonly source: PreviewedSource;
  readonly askedEnd: number;
  /** Without one nobody knows what is loaded. */
  readonly hasDatabase: boolean;
  /** Requests per 10 s. */
  readonly rateLimit: number;
}

/** Sentence for a range whose end lies in the future; undefined for another one. */
export function endsInFuture(askedEnd: number, planned: number | undefined): string | undefined {
  if (planned === undefined || askedEnd <= planned) return undefined;
  return `The range ends in the future (${instant(askedEnd)}). It is asked for until ${instant(planned)}.`;
}

/** What `--json` shows of a source. Instants are ISO texts in UTC. */
export function planToData(planned: PlannedSource) {
  const { source, range, loaded, slices, askedEnd, hasDatabase, rateLimit } = planned;
  const iso = (at: number) => new Date(at).toISOString();
  return {
    source: source.slug,
    from: range === undefined ? null : iso(range.start),
    to: range === undefined ? null : iso(range.end),
    endsInFuture: range !== undefined && askedEnd > range.end,
    workspaces: source.workspaceIds.length,
    loaded: hasDatabase ? rangeToData(loaded) : null,
    windows: windowsOf(planned).map(({ stride, start, end, requests }) => ({
      ...{ stride, from: iso(start), to: iso(end) },
      requests: requests.reduce((sum, count) => sum + count, 0),
    })),
    requests: requestsOf(planned),
    total: slices.length,
    seconds: secondsOf(slices.length, rateLimit),
  };
}

export function describePlan(planned: PlannedSource): string {
  const { source, range, stride, groupings, slices, askedEnd, rateLimit } = planned;
  const known = source.workspaceIds.length;
  const workspaces = known === 1 ? "1 workspace" : known === 0 ? "each workspace" : `${known} workspaces`;
  const future = endsInFuture(askedEnd, range?.end);
  const head =
    range === undefined
      ? `${source.slug}: the range lies in the future`
      : `${source.slug}: ${instant(range.start)} to ${instant(range.end)} by ${stride}, ${workspaces}`;
  const windows = windowsOf(planned);
  const left = windows.length - MOST_ROWS;
  const byDimension = requestsOf(planned).map((one) => `${one.groupBy} ${count(one.requests)}`);
  const rows = windows
    .slice(0, MOST_ROWS)
    .map(({ requests, ...one }) => [one.stride, instant(one.start), instant(one.end), ...requests]);
  return [
    head,
    ...(future === undefined ? [] : [future]),
    loadedText(planned),
    ...(slices.length === 0
      ? ["Nothing would be asked for."]
      : [
          "Would be asked for, in requests by dimension:",
          table(["stride", "from", "to", ...groupings], rows),
        ]),
    ...(left > 0 ? [`and ${left} more, which --json shows`] : []),
    `Requests for ${workspaces}: ${byDimension.join(", ")}`,
    `${counted(windows.length, "window")}, ${counted(slices.length, "request")}, at least ${count(secondsOf(slices.length, rateLimit))} s at the rate limit`,
  ].join("\n");
}

function loadedText({ source, loaded, hasDatabase }: PlannedSource): string {
  if (!hasDatabase) return "What is loaded is not known: DATABASE_URL is not set.";
  if (source.stored === undefined) return "Nothing is loaded: the source was never contacted.";
  if (loaded.length === 0) return "No usage is expected in that range.";
  return table(
    ["dimension", "stride", "is", "buckets x\nworkspaces", "from", "to"],
    loaded.map((one) => [
      ...[one.groupBy, one.stride, one.status.replace("_", " "), one.buckets],
      ...[instant(one.first), instant(one.end)],
    ]),
  );
}

/** Each window with its requests by dimension, in the order of `groupings`. */
function windowsOf({ slices, groupings }: PlannedSource) {
  const byWindow = Map.groupBy(slices, ({ window: { stride, start, end } }) => `${stride} ${start} ${end}`);
  return [...byWindow.values()]
    .map((group) => {
      const { window } = group[0] as UsageRequest;
      return {
        ...window,
        requests: groupings.map((by) => group.filter(({ groupBy }) => groupBy === by).length),
      };
    })
    .sort((a, b) => a.start - b.start || a.end - b.end);
}

function requestsOf({ slices, groupings }: PlannedSource) {
  return GROUPINGS.filter((groupBy) => groupings.includes(groupBy)).map((groupBy) => ({
    groupBy,
    requests: slices.filter((one) => one.groupBy === groupBy).length,
  }));
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}

function secondsOf(requests: number, rateLimit: number): number {
  return Math.ceil((requests / rateLimit) * 10);
}
