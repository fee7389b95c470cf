import type { Command } from "commander";
import { counted } from "../../core/base/printable.ts";
import { METER_NAME, type Meter, meterFlags } from "../../core/domain/usage/meter.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import { describePutOff, knownSyncBudget, type PutOff } from "../../core/pipeline/sync/sync-budget.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { EXIT } from "../../terminal/exit.ts";
import { rangeToData } from "../../terminal/load-report.ts";
import {
  groupingsOf,
  meterOf,
  type RangeOptions,
  rangeOf,
  type SelectionOptions,
  withRange,
  withSelection,
  withSource,
} from "../../terminal/options.ts";
import { count, instant, linesOf, table, tableOf, wrapped } from "../../terminal/output.ts";
import { inSessionOfSource, type Session } from "../../terminal/session.ts";
import { type BackfillRequest, endsInFuture, refuseOutside, workspacesOf } from "./backfill-request.ts";
import {
  asIfCounted,
  type BackfillBudget,
  type BackfillPreview,
  backfillBudget,
  minutesOf,
  type PreviewedSource,
  planBackfill,
  previewBackfill,
  previewedSource,
} from "./plan-backfill.ts";
import { LEFT_OUT, requestsByDimension, requestsOfWindow, windowsOf } from "./planned-windows.ts";

export const examples = [
  ["plan --from 2026-01-01 --to 2026-03-01", "what a backfill of two months would request"],
  ["plan --from 2026-01-01 --to 2026-03-01 --group-by project", "only by project"],
] as const;

export function define(command: Command): void {
  withSelection(withRange(withSource(command))).action(inSessionOfSource(showPreview));
}

type Requested = RangeOptions & SelectionOptions & { readonly reprocess?: BackfillRequest["reprocess"] };

const NO_SOURCE = { slug: "default", dataStart: "2026-01-05", workspaceIds: [], rateLimit: 200 };

export function backfillRequestOf(options: Requested): BackfillRequest {
  const { stride, reprocess = "missing" } = options;
  const [range, meter] = [rangeOf(options), meterOf(options)];
  return { meter, range, stride, groupings: groupingsOf(options, meter), reprocess };
}

export async function showPreview(session: Session, options: Requested): Promise<number> {
  const backfillRequest = backfillRequestOf(options);
  const { meter, range: requested } = backfillRequest;
  const { config: settings, output } = session;
  const store = settings.databaseUrl === undefined ? undefined : await session.migratedStore();
  const now = store === undefined ? Date.now() : await storeNow(store.db);
  const planned: PlannedSource[] = [];
  for (const config of settings.sources.length === 0 ? [NO_SOURCE] : settings.sources) {
    const { known, isAssumed } = await asIfCounted(await previewedSource(config, store?.db), meter);
    if (isAssumed) {
      output.note(
        `Whether the server of source ${config.slug} counts ${METER_NAME[meter]} is not known yet. A backfill tests it first, and loads nothing if it does not.`,
      );
    }
    refuseOutside(known, requested, now);
    const isKnown = known.workspaceIds.length > 0;
    const { workspace = [] } = options;
    const workspaceIds = isKnown ? workspacesOf(options.workspace, known.workspaceIds) : workspace;
    const chosen = { ...known, workspaceIds };
    planned.push({
      ...backfillRequest,
      ...(await previewBackfill(chosen, backfillRequest, { now })),
      beside: await othersOf(chosen, backfillRequest, { meters: settings.meters, now }),
      source: chosen,
      requestedEnd: requested.end,
      hasDatabase: store !== undefined,
      rateLimit: config.rateLimit,
      // The budget counts the routine syncs of all workspaces.
      budget: isKnown ? backfillBudget(known, { config, settings, now }) : undefined,
      putOff: (store && (await knownSyncBudget(store.db, { config, settings }))?.putOff) ?? null,
    });
  }
  output.data(planned.map(planToData), () => planned.map(describePlan).join("\n\n"));
  return EXIT.done;
}

async function othersOf(
  source: PreviewedSource,
  backfillRequest: BackfillRequest,
  { meters, now }: { meters: readonly Meter[]; now: number },
): Promise<PlannedSource["beside"]> {
  if (backfillRequest.meter !== "traces" || backfillRequest.stride !== "day") return [];
  const others = meters.filter((meter) => meter !== "traces" && source.stored?.source.meters.has(meter));
  const planned = await Promise.all(
    others.map(async (meter) => {
      const { tasks } = await planBackfill(source, { ...backfillRequest, meter }, now);
      return { meter, requests: tasks.length };
    }),
  );
  return planned.filter(({ requests }) => requests > 0);
}

const MOST_ROWS = 1000;

interface PlannedSource extends BackfillPreview, Omit<BackfillRequest, "range"> {
  readonly source: PreviewedSource;
  readonly beside: readonly { readonly meter: Meter; readonly requests: number }[];
  readonly requestedEnd: number;
  readonly hasDatabase: boolean;
  /** Requests per 10 s. */
  readonly rateLimit: number;
  /** Undefined while no workspace is known. */
  readonly budget: BackfillBudget | undefined;
  readonly putOff: PutOff | null;
}

function planToData(planned: PlannedSource) {
  const { source, range, loaded, tasks, requestedEnd, hasDatabase, rateLimit, groupings } = planned;
  const { leftOut, facts, budget, notSent, withoutTraces, inFlight, digest } = planned;
  const iso = (at: number) => new Date(at).toISOString();
  return {
    source: source.slug,
    from: range === undefined ? null : iso(range.start),
    to: range === undefined ? null : iso(range.end),
    endsInFuture: range !== undefined && requestedEnd > range.end,
    workspaces: source.workspaceIds.length,
    loaded: hasDatabase ? rangeToData(loaded) : null,
    windows: windowsOf(tasks).map((window) => ({
      stride: window.stride,
      from: iso(window.start),
      to: iso(window.end),
      requests: requestsOfWindow(window),
    })),
    requests: requestsByDimension(tasks, groupings),
    total: tasks.length,
    beside: planned.beside,
    seconds: secondsOf(tasks.length, rateLimit),
    leftOut: leftOut.map(({ reason, first, end, buckets }) => {
      return { reason, from: iso(first), to: iso(end), buckets };
    }),
    notSent,
    withoutTraces,
    inFlight,
    recordsReplaced: facts?.records ?? null,
    closedMonths: facts?.closedMonths ?? null,
    minutes: budget === undefined ? null : minutesOf(tasks.length - notSent - withoutTraces, budget),
    requestsPerMinute: budget === undefined ? null : Math.floor(budget.leftPerMinute),
    tasksWaiting: facts === undefined ? null : facts.routineTasks + facts.backfillTasks,
    putOff: planned.putOff,
    digest,
  };
}

function describePlan(planned: PlannedSource): string {
  const { source, range, stride, groupings, tasks, rateLimit, meter } = planned;
  const known = source.workspaceIds.length;
  const workspaces = known === 0 ? "each workspace" : counted(known, "workspace");
  const what = meter === "traces" ? "" : `${METER_NAME[meter]}, `;
  const windows = windowsOf(tasks);
  const rows = windows
    .slice(0, MOST_ROWS)
    .map(({ requests, ...one }) => [
      ...[one.stride, instant(one.start), instant(one.end)],
      ...groupings.map((groupBy) => requests[GROUPINGS.indexOf(groupBy)] ?? 0),
    ]);
  const byDimension = requestsByDimension(tasks, groupings).map(
    (one) => `${one.groupBy} ${count(one.requests)}`,
  );
  return linesOf(
    range === undefined
      ? `${source.slug}: the range lies in the future`
      : `${source.slug}: ${what}${instant(range.start)} to ${instant(range.end)} by ${stride}, ${workspaces}`,
    endsInFuture(planned.requestedEnd, range?.end),
    loadedText(planned),
    tasks.length === 0
      ? "Nothing would be requested."
      : ["Requests by dimension:", table(["stride", "from", "to", ...groupings], rows)],
    windows.length > MOST_ROWS && `and ${windows.length - MOST_ROWS} more, which --json shows`,
    `Requests for ${workspaces}: ${byDimension.join(", ")}`,
    `${counted(windows.length, "window")}, ${counted(tasks.length, "request")}, at least ${count(secondsOf(tasks.length, rateLimit))} s at the rate limit`,
    factsOf(planned).map((fact) => wrapped("", fact)),
  );
}

function loadedText({ source, loaded, hasDatabase }: PlannedSource): string {
  if (!hasDatabase) return "What is loaded is not known: DATABASE_URL is not set.";
  if (source.stored === undefined) return "Nothing is loaded: the source was never contacted.";
  if (loaded.length === 0) return "No usage is expected in that range.";
  return tableOf(loaded, {
    dimension: "groupBy",
    stride: "stride",
    is: ({ status }) => status.replace("_", " "),
    figures: "buckets",
    from: ({ first }) => instant(first),
    to: ({ end }) => instant(end),
  });
}

function factsOf({
  tasks,
  leftOut,
  notSent,
  withoutTraces,
  inFlight,
  facts,
  budget,
  beside,
  putOff,
}: PlannedSource): string[] {
  const areOf = (number: number) => (number === 1 ? "is" : "are");
  const sent = tasks.length - notSent;
  const lines = leftOut.map(
    ({ reason, first, end, buckets }) =>
      `${counted(buckets, "figure")} by workspace and dimension, ${instant(first)} to ${instant(end)}: ${LEFT_OUT[reason]}.`,
  );
  for (const { meter, requests } of beside) {
    const what = `${METER_NAME[meter]} of that time in ${counted(requests, "request")}`;
    lines.push(`Beside it, syncs load ${what} (${meterFlags(meter)}).`);
  }
  if (inFlight > 0) {
    lines.push(
      `${counted(inFlight, "request")} ${areOf(inFlight)} under way already for a sync or another backfill. Nothing is fetched twice.`,
    );
  }
  if (withoutTraces > 0) {
    lines.push(
      `Up to ${counted(withoutTraces, "request")} ${areOf(withoutTraces)} not sent: the workspace had no traces in that time so far, and responds by workspace come first.`,
    );
  }
  if (sent === 0) return lines;
  if (facts !== undefined) {
    const { records, closedMonths } = facts;
    lines.push(`${counted(records, "stored record")} ${areOf(records)} fetched again and replaced.`);
    if (closedMonths.length > 0) {
      lines.push(
        `Closed months in that time: ${closedMonths.join(", ")}. They stay as they were closed, and changes are adjustments.`,
      );
    }
    const waiting = facts.routineTasks + facts.backfillTasks;
    if (waiting > 0) lines.push(`Waiting fetch tasks of syncs and backfills: ${count(waiting)}.`);
  }
  if (putOff !== null) lines.push(describePutOff(putOff));
  if (budget !== undefined) {
    const minutes = minutesOf(sent - withoutTraces, budget);
    const left = count(Math.floor(budget.leftPerMinute));
    lines.push(
      `About ${counted(minutes, "minute")} at the ${left} requests a minute that routine syncs leave.`,
    );
  }
  return lines;
}

function secondsOf(requests: number, rateLimit: number): number {
  return Math.ceil((requests / rateLimit) * 10);
}
