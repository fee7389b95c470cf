import {
  LEFT_OUT,
  requestsByDimension,
  requestsOfWindow,
  windowsOf,
} from "../../domain/planning/planned-windows.ts";
import { METER, METER_NAME, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import {
  type BackfillBudget,
  type BackfillPreview,
  minutesOf,
  type PreviewedSource,
} from "../../pipeline/backfill/plan-backfill.ts";
import { endsInFuture, type Wish } from "../../pipeline/backfill/wish.ts";
import { counted, instant, table } from "./output.ts";
import { rangeToData } from "./range-report.ts";
import { wrapped } from "./wrap.ts";

/** A table is for people; `--json` has all windows. */
const MOST_ROWS = 1000;

export interface PlannedSource extends BackfillPreview, Omit<Wish, "range"> {
  readonly source: PreviewedSource;
  /** Requests for the same days of what syncs load beside traces of all tiers. */
  readonly beside: readonly { readonly meter: Meter; readonly requests: number }[];
  readonly askedEnd: number;
  /** Without one nobody knows what is loaded. */
  readonly hasDatabase: boolean;
  /** Requests per 10 s. */
  readonly rateLimit: number;
  /** Undefined while no workspace is known. */
  readonly budget: BackfillBudget | undefined;
}

/** What `--json` shows of a source. Instants are ISO texts in UTC. */
export function planToData(planned: PlannedSource) {
  const { source, range, loaded, tasks, askedEnd, hasDatabase, rateLimit, groupings } = planned;
  const { leftOut, facts, budget, notSent, inFlight, digest } = planned;
  const iso = (at: number) => new Date(at).toISOString();
  return {
    source: source.slug,
    from: range === undefined ? null : iso(range.start),
    to: range === undefined ? null : iso(range.end),
    endsInFuture: range !== undefined && askedEnd > range.end,
    workspaces: source.workspaceIds.length,
    loaded: hasDatabase ? rangeToData(loaded) : null,
    windows: windowsOf(tasks).map((window) => ({
      ...{ stride: window.stride, from: iso(window.start), to: iso(window.end) },
      requests: requestsOfWindow(window),
    })),
    requests: requestsByDimension(tasks, groupings),
    total: tasks.length,
    beside: planned.beside,
    seconds: secondsOf(tasks.length, rateLimit),
    leftOut: leftOut.map(({ reason, first, end, buckets }) => ({
      ...{ reason, from: iso(first), to: iso(end), buckets },
    })),
    notSent,
    inFlight,
    recordsReplaced: facts?.records ?? null,
    closedMonths: facts?.closedMonths ?? null,
    minutes: budget === undefined ? null : minutesOf(tasks.length - notSent, budget),
    requestsPerMinute: budget === undefined ? null : Math.floor(budget.leftPerMinute),
    tasksWaiting: facts === undefined ? null : facts.routineTasks + facts.backfillTasks,
    digest,
  };
}

export function describePlan(planned: PlannedSource): string {
  const { source, range, stride, groupings, tasks, askedEnd, rateLimit } = planned;
  const known = source.workspaceIds.length;
  const workspaces = known === 1 ? "1 workspace" : known === 0 ? "each workspace" : `${known} workspaces`;
  const future = endsInFuture(askedEnd, range?.end);
  const head =
    range === undefined
      ? `${source.slug}: the range lies in the future`
      : `${source.slug}: ${planned.meter === "traces" ? "" : `${METER_NAME[planned.meter]}, `}${instant(range.start)} to ${instant(range.end)} by ${stride}, ${workspaces}`;
  const windows = windowsOf(tasks);
  const left = windows.length - MOST_ROWS;
  const byDimension = requestsByDimension(tasks, groupings).map(
    (one) => `${one.groupBy} ${count(one.requests)}`,
  );
  const rows = windows
    .slice(0, MOST_ROWS)
    .map(({ requests, ...one }) => [
      ...[one.stride, instant(one.start), instant(one.end)],
      ...groupings.map((groupBy) => requests[GROUPINGS.indexOf(groupBy)] ?? 0),
    ]);
  return [
    head,
    ...(future === undefined ? [] : [future]),
    loadedText(planned),
    ...(tasks.length === 0
      ? ["Nothing would be asked for."]
      : [
          "Would be asked for, in requests by dimension:",
          table(["stride", "from", "to", ...groupings], rows),
        ]),
    ...(left > 0 ? [`and ${left} more, which --json shows`] : []),
    `Requests for ${workspaces}: ${byDimension.join(", ")}`,
    `${counted(windows.length, "window")}, ${counted(tasks.length, "request")}, at least ${count(secondsOf(tasks.length, rateLimit))} s at the rate limit`,
    ...factLines(planned),
  ].join("\n");
}

/** What somebody should know before the plan is run, beside its requests. */
function factLines({ tasks, leftOut, notSent, inFlight, facts, budget, beside }: PlannedSource): string[] {
  const sent = tasks.length - notSent;
  const lines = leftOut.map(
    ({ reason, first, end, buckets }) =>
      `${counted(buckets, "bucket")} x workspaces x dimensions, ${instant(first)} to ${instant(end)}: ${LEFT_OUT[reason]}.`,
  );
  for (const { meter, requests } of beside) {
    const { kind, tier } = METER[meter];
    const flag = tier === "all" ? `--kind ${kind}` : `--tier ${tier}`;
    lines.push(
      `Beside it, syncs load ${METER_NAME[meter]} of that time in ${counted(requests, "request")} (${flag}).`,
    );
  }
  if (inFlight > 0)
    lines.push(
      `${counted(inFlight, "request")} ${areOf(inFlight)} under way already for a sync or another backfill. Nothing is fetched twice.`,
    );
  if (facts !== undefined && sent > 0) {
    lines.push(
      `${counted(facts.records, "stored record")} ${areOf(facts.records)} fetched again and replaced.`,
    );
    if (facts.closedMonths.length > 0)
      lines.push(
        `Closed months in that time: ${facts.closedMonths.join(", ")}. They stay as they were closed, and changes are adjustments.`,
      );
    const waiting = facts.routineTasks + facts.backfillTasks;
    if (waiting > 0) lines.push(`Fetch tasks of syncs and backfills that wait already: ${count(waiting)}.`);
  }
  if (budget !== undefined && sent > 0) {
    const minutes = minutesOf(sent, budget);
    const left = count(Math.floor(budget.leftPerMinute));
    lines.push(
      minutes === null
        ? "Routine syncs need the whole rate limit, so a backfill advances only while no sync has work left."
        : `About ${counted(minutes, "minute")} at the ${left} requests a minute that routine syncs leave.`,
    );
  }
  return lines.map((line) => wrapped("", line));
}

function areOf(number: number): string {
  return number === 1 ? "is" : "are";
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

function count(number: number): string {
  return number.toLocaleString("en-US");
}

function secondsOf(requests: number, rateLimit: number): number {
  return Math.ceil((requests / rateLimit) * 10);
}
