import { batchesOf, type UnstoredRequest } from "../../domain/planning/request.ts";
import {
  compareProbe,
  type ProbeReadings,
  progressOf,
  type WorkspaceReading,
} from "../../domain/proof/probe.ts";
import { ceilToGrid, DAY_MS, strideOfRange } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { DeadlineError, PlatformError, UsageError } from "../../errors.ts";
import { deadlineSignal } from "../../platform/http/poll.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { keepTiming, type OpenProbe, type ProbeTiming } from "../../store/proof/probes.ts";
import { askUsage, collectUsable } from "../source/ask.ts";
import type { OpenSource } from "../source/source.ts";
import { conclude, judge, type Look, type ProbeResult } from "./probe-verdict.ts";

export interface ProbeProgress {
  readonly billed: number;
  readonly expected: number;
  readonly waitedMs: number;
  readonly withinMs: number;
  /** After so long the figures are read again, for the verdict; undefined before. */
  readonly settlesInMs: number | undefined;
}

/** Pauses between two looks: they double from the first to the longest. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;
/** A look may take so long after the deadline, since the last one begins at it. */
const LAST_LOOK_MS = 300_000;
/** A second bill may come as late as the first. So the figures must stay for as long again as billing took, up to this. */
const LONGEST_HOLD_MS = 300_000;

/** Looks until all is billed and has stayed so for the settling time, or the deadline is over. Then gives the verdict. */
export async function waitUntilBilled(
  source: OpenSource,
  probe: OpenProbe,
  { resumed, onProgress }: { resumed: boolean; onProgress: (progress: ProbeProgress) => void },
): Promise<ProbeResult> {
  const { clock, store, signal } = source;
  const { probeId, sentAt = 0, waitUntil = 0, expected, lateAfterMs } = probe;
  let timing = probe.timing;
  let last: Look | undefined;
  let progress: ReturnType<typeof progressOf> = "lacking";
  let hasSettled = false;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const withinMs = Math.max(0, waitUntil - (await storeNow(store.db))) + LAST_LOOK_MS;
    const inTime = deadlineSignal("The answer about usage", { withinMs, signal });
    const seen = await lookAtBilling({ ...source, signal: inTime }, probe);
    const now = await storeNow(store.db);
    if (seen instanceof UsageError) {
      const ended = { state: "inconclusive" as const, figures: [], code: seen.code, message: seen.message };
      return { ...(await conclude(source, probe, { ...ended, ...timing })), resumed };
    }
    const billed = seen?.figures.find((figure) => figure.groupBy === "project")?.billed ?? 0;
    if (seen !== undefined) {
      last = seen;
      progress = progressOf(seen.figures, expected);
      timing = timingAfter(timing, { seen, isAll: progress !== "lacking", billed, now });
      await keepTiming(store.db, { probeId, ...timing });
    }
    const { billedAt } = timing;
    if (progress !== "billed") hasSettled = false;
    const isOver = now >= waitUntil;
    if (progress === "billed" ? hasSettled && (seen !== undefined || isOver) : isOver) {
      return { ...(await judge(source, probe, { seen, last, timing })), resumed };
    }
    const settlesInMs =
      progress === "billed" && !hasSettled
        ? Math.max(probe.settleForMs, Math.min(LONGEST_HOLD_MS, (billedAt ?? 0) - sentAt))
        : undefined;
    if (seen !== undefined) {
      onProgress({ billed, expected, waitedMs: now - sentAt, withinMs: waitUntil - sentAt, settlesInMs });
    }
    if (settlesInMs !== undefined) {
      await clock.wait(settlesInMs, signal);
      hasSettled = true;
      continue;
    }
    // A look right at the limit decides whether billing is late.
    const untilLate = sentAt + (lateAfterMs ?? 0) - now;
    const next = Math.min(pause, Math.max(0, waitUntil - now) || pause, untilLate > 0 ? untilLate : pause);
    await clock.wait(Math.max(50, next), signal);
  }
}

function timingAfter(
  before: ProbeTiming,
  { seen, isAll, billed, now }: { seen: Look; isAll: boolean; billed: number; now: number },
): ProbeTiming {
  const firstBilledAt = before.firstBilledAt ?? (billed > 0 ? now : undefined);
  // A figure that fell again was not billed: the delay counts to the look since which it stayed.
  if (!isAll) return { firstBilledAt, unbilledAt: seen.at };
  return { firstBilledAt, unbilledAt: before.unbilledAt, billedAt: before.billedAt ?? now };
}

/** Undefined where the platform does not answer for now; `UsageError` where the project is ambiguous. */
async function lookAtBilling(source: OpenSource, probe: OpenProbe): Promise<Look | UsageError | undefined> {
  const before = probe.baseline ?? new Map<string, WorkspaceReading>();
  const home = probe.projectId && workspaceWith(probe.projectId, before);
  const at = await storeNow(source.store.db);
  try {
    const { readings, found } = await readForProbe(source, {
      start: probe.periodStart,
      workspaceIds: [...before.keys()],
      project: probe.project,
      before,
      home,
    });
    const projectId = probe.projectId ?? theProject(probe.project, found);
    const workspaceId = (projectId && workspaceWith(projectId, readings)) || home || undefined;
    const { expected, sender } = probe;
    const figures = compareProbe({ before, after: readings, home: workspaceId, projectId, expected, sender });
    return { figures, workspaceId, projectId, at };
  } catch (error) {
    if (error instanceof UsageError) return error;
    if (error instanceof DeadlineError) return undefined;
    if (error instanceof PlatformError && error.retryable) return undefined;
    throw error;
  }
}

function workspaceWith(
  projectId: string,
  readings: ReadonlyMap<string, { readonly project: Readonly<Record<string, number>> }>,
): string | undefined {
  return [...readings].find(([, { project }]) => projectId in project)?.[0];
}

interface ReadingRequest {
  /** UTC midnight, epoch milliseconds. */
  readonly start: number;
  readonly workspaceIds: readonly string[];
  /** Name or id. */
  readonly project: string;
  /**
   * The readings before the traffic, for one after it: projects come first before, and last after (see `compareProbe`).
   * Where the project's workspace is known, of other workspaces only the projects of those that changed are read.
   */
  readonly before?: ProbeReadings;
  readonly home?: string | undefined;
}

type Reading = { workspace: number } & Record<"project" | "user" | "api_key", Record<string, number>>;

/**
 * Reads the usage of several workspaces from one instant on as an extraction does, and stores none of it. Throws what
 * `askUsage` throws.
 */
export async function readForProbe(source: OpenSource, request: ReadingRequest) {
  const { start, workspaceIds, project, before, home } = request;
  const readings = new Map(
    workspaceIds.map((id): [string, Reading] => [id, { workspace: 0, project: {}, user: {}, api_key: {} }]),
  );
  /** Ids of projects whose id or name is the one looked for, with the workspace of each. */
  const found = new Map<string, string>();
  const read = async (groupBy: GroupBy, ids: readonly string[]) => {
    const of = { meter: "traces", groupBy } as const;
    const all = ids.map((workspaceId) => ({ workspaceId }));
    for (const members of batchesOf(of, all)) {
      for (const { id, names, traces } of await sumsOf(source, start, { ...of, members })) {
        // Only answers by workspace name the workspace; any other request has one member.
        const workspaceId = groupBy === "workspace" ? id : (members[0]?.workspaceId ?? "");
        const reading = readings.get(workspaceId);
        if (reading === undefined) continue;
        if (groupBy === "workspace") reading.workspace += traces;
        else reading[groupBy][id] = traces;
        const isMeant = id === project.toLowerCase() || names.includes(project);
        if (groupBy === "project" && isMeant) found.set(id, workspaceId);
      }
    }
  };
  if (before === undefined) await read("project", workspaceIds);
  await read("workspace", workspaceIds);
  const near = home === undefined ? workspaceIds : [home];
  await read("user", near);
  await read("api_key", near);
  if (before !== undefined) {
    const isUnchanged = (id: string) => readings.get(id)?.workspace === before.get(id)?.workspace;
    const far = workspaceIds.filter((id) => !near.includes(id));
    await read("project", [...near, ...far.filter((id) => !isUnchanged(id))]);
    for (const id of far.filter(isUnchanged)) {
      Object.assign(readings.get(id) ?? {}, { project: before.get(id)?.project });
    }
  }
  return { readings: readings as ProbeReadings, found };
}

/** Traces of each id of a dimension from `start` to now. */
async function sumsOf(source: OpenSource, start: number, asked: Omit<UnstoredRequest, "window">) {
  // The window ends when the attempt is sent: after a wait over midnight it would miss usage.
  const request = async () => ({ ...asked, window: await windowFrom(source, start) });
  return askUsage(source, { purpose: "probe", request }, async (attempt) => {
    const answer = await collectUsable(source, attempt.request);
    const { keys, records, traces } = answer;
    const result = Array.from(keys, ({ dimensionId: id, names }) => ({
      id,
      names: names.map((one) => one.name),
      traces: 0,
    }));
    for (const { id: key, traces: count } of answer.rows()) {
      const sum = result[key];
      if (sum !== undefined) sum.traces += count;
    }
    return { outcome: "compared", records, traces, result };
  });
}

/** To the end of today, or to this instant where the server refuses an end in the future. */
async function windowFrom(source: OpenSource, start: number): Promise<Window> {
  const now = await storeNow(source.store.db);
  const end = source.capabilities.has("no_future_end") ? now : ceilToGrid(now, DAY_MS);
  return { start, end, stride: strideOfRange(end - start) };
}

/** The one project that is meant, if it exists yet. Errors: `probe_project_ambiguous`. */
export function theProject(project: string, found: ReadonlyMap<string, string>): string | undefined {
  const ids = [...found.keys()];
  if (ids.length <= 1) return ids[0];
  throw new UsageError({
    code: "probe_project_ambiguous",
    message: `${ids.length} projects are called ${JSON.stringify(project)}: ${ids.join(", ")}.`,
    next: "Set USAGE_PROBE_PROJECT to the id of the project that belongs to the deployment.",
  });
}
