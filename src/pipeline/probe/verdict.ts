import { compareProbe, type ProbeFigure } from "../../domain/probe.ts";
import { PlatformError, UsageError } from "../../errors.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  type Conclusion,
  concludeProbe,
  conclusionOf,
  hasUnsettledProbe,
  type OpenProbe,
  type ProbeVerdict,
} from "../../store/report/probes.ts";
import type { OpenSource } from "../source/source.ts";
import { readForProbe, theProject } from "./readings.ts";

export interface ProbeResult {
  readonly probeId: number;
  readonly state: ProbeVerdict;
  /** Whether another process sent the traffic. */
  readonly resumed: boolean;
  readonly expected: number;
  /** Empty where nothing was compared. */
  readonly figures: readonly ProbeFigure[];
  /** Milliseconds from the last trace sent to the request whose answer held all of it; null where none did. */
  readonly delayMs: number | null;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  /** What ended it before anything was compared. */
  readonly cause?: unknown;
}

export interface ProbeProgress {
  readonly billed: number;
  readonly expected: number;
  readonly waitedMs: number;
  readonly withinMs: number;
}

/** Pauses between two looks: they double from the first to the longest. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
/** A second bill may come as late as the first: all figures must stay for as long again as billing took. */
const HOLD_MS = { least: 1_000, most: 300_000 };
/** For so long, traces that an earlier probe lacked may still be billed and appear in the figures of this one. */
const LATE_FOR_DAYS = 7;

interface Look {
  readonly figures: readonly ProbeFigure[];
  readonly workspaceId: string | undefined;
  readonly projectId: string | undefined;
  /** By Postgres's clock, before the first request of the reading. */
  readonly at: number;
}

/** Looks until all figures stayed for long enough or the deadline is over, then gives the verdict. */
export async function waitUntilBilled(
  source: OpenSource,
  probe: OpenProbe,
  { resumed, onProgress }: { resumed: boolean; onProgress: (progress: ProbeProgress) => void },
): Promise<ProbeResult> {
  const { clock, store, signal } = source;
  const { sentAt = 0, waitUntil = 0, expected } = probe;
  let billedAt: number | undefined;
  let last: Look | undefined;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const seen = await lookAtBilling(source, probe);
    const now = await storeNow(store.db);
    if (seen instanceof UsageError) {
      const ended = { state: "inconclusive" as const, figures: [], code: seen.code, message: seen.message };
      return { ...(await conclude(source, probe, ended)), resumed };
    }
    last = seen ?? last;
    const holds = seen?.figures.every((figure) => figure.difference === 0) ?? false;
    // A surplus in another dimension may be other people's traces, once their projects show them.
    const surplus = seen?.figures.some((one) => one.groupBy === "project" && one.difference > 0) ?? false;
    if (seen !== undefined) {
      // A figure that fell again was not billed: the delay counts to the look since which it stayed.
      billedAt = holds || surplus ? (billedAt ?? seen.at) : undefined;
      const billed = seen.figures.find((figure) => figure.groupBy === "project")?.billed ?? 0;
      onProgress({ billed, expected, waitedMs: now - sentAt, withinMs: waitUntil - sentAt });
    }
    const hold = Math.min(HOLD_MS.most, Math.max(HOLD_MS.least, (billedAt ?? 0) - sentAt));
    const heldLongEnough = billedAt !== undefined && seen !== undefined && seen.at >= billedAt + hold;
    if (heldLongEnough || (now >= waitUntil && !(holds && billedAt === seen?.at))) {
      return { ...(await judge(source, probe, { last, billedAt })), resumed };
    }
    const next = billedAt === undefined ? pause : Math.min(pause, hold);
    await clock.wait(Math.max(50, billedAt === undefined ? Math.min(next, waitUntil - now) : next), signal);
  }
}

/** Undefined where the platform does not answer for now; `UsageError` where the project is ambiguous. */
async function lookAtBilling(source: OpenSource, probe: OpenProbe): Promise<Look | UsageError | undefined> {
  const baseline = probe.baseline ?? {};
  // Once the project is known, other workspaces need no look.
  const home = probe.projectId && workspaceWith(probe.projectId, new Map(Object.entries(baseline)));
  const at = await storeNow(source.store.db);
  try {
    const after = await readForProbe(source, {
      start: probe.periodStart,
      workspaceIds: home ? [home] : Object.keys(baseline),
      project: probe.project,
      projects: "last",
    });
    const projectId = probe.projectId ?? theProject(probe.project, after.found);
    const seenIn = projectId && workspaceWith(projectId, after.byWorkspace);
    const workspaceId = seenIn || home || undefined;
    // Until the project is seen its workspace is not known, so all of them are compared together.
    const compared = workspaceId === undefined ? Object.keys(baseline) : [workspaceId];
    const figures = compareProbe({
      before: compared.flatMap((id) => baseline[id] ?? []),
      after: compared.flatMap((id) => after.byWorkspace.get(id) ?? []),
      projectId,
      expected: probe.expected,
    });
    return { figures, workspaceId, projectId, at };
  } catch (error) {
    if (error instanceof UsageError) return error;
    if (error instanceof PlatformError && error.retryable) return undefined;
    throw error;
  }
}

function workspaceWith(
  projectId: string,
  byWorkspace: ReadonlyMap<string, { readonly projects: Readonly<Record<string, number>> }>,
): string | undefined {
  return [...byWorkspace].find(([, { projects }]) => projectId in projects)?.[0];
}

async function judge(
  source: OpenSource,
  probe: OpenProbe,
  { last, billedAt }: { last: Look | undefined; billedAt: number | undefined },
): Promise<ProbeResult> {
  if (last === undefined) {
    return conclude(source, probe, {
      state: "inconclusive",
      figures: [],
      code: "probe_unanswered",
      message: "The platform answered no request for usage before the deadline.",
    });
  }
  const { figures, workspaceId, projectId } = last;
  const found = { figures, workspaceId, projectId };
  const wrong = figures.filter((figure) => figure.difference !== 0);
  if (wrong.length === 0) return conclude(source, probe, { state: "matched", ...found, billedAt });
  const message = wrong
    .map(
      ({ groupBy, billed, difference }) =>
        `${groupBy}: ${billed} billed, ${Math.abs(difference)} too ${difference > 0 ? "many" : "few"}`,
    )
    .join("; ");
  const { sourceId, store } = source;
  const surplusOnly = wrong.every((figure) => figure.difference > 0);
  if (
    surplusOnly &&
    (await hasUnsettledProbe(store.db, { sourceId, probeId: probe.probeId, days: LATE_FOR_DAYS }))
  ) {
    const why = `${message}; an earlier probe ended without all of its traces, which may be these`;
    return conclude(source, probe, {
      state: "inconclusive",
      ...found,
      code: "probe_earlier_late",
      message: why,
    });
  }
  return conclude(source, probe, { state: "differs", ...found, code: "probe_differs", message });
}

/** Gives a probe its verdict, or returns the one that another process gave it. */
export async function conclude(
  source: OpenSource,
  probe: OpenProbe,
  end: Omit<Conclusion, "probeId">,
): Promise<ProbeResult> {
  const { probeId, expected, sentAt } = probe;
  const isOurs = await concludeProbe(source.store, { probeId, ...end });
  // Another process that waited for the same traffic may have been first. Its verdict stands.
  const { state, figures, billedAt, code, message } = isOurs
    ? end
    : await conclusionOf(source.store.db, probeId);
  source.log.info({ probe: probeId, state, expected, code }, "probe");
  const delayMs = billedAt === undefined || sentAt === undefined ? null : Math.max(0, billedAt - sentAt);
  return { probeId, state, resumed: false, expected, figures, delayMs, code, message };
}
