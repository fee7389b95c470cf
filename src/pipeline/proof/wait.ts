import { compareProbe, progressOf, type WorkspaceReading } from "../../domain/proof/probe.ts";
import { DeadlineError, PlatformError, UsageError } from "../../errors.ts";
import { deadlineSignal } from "../../platform/http/poll.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { keepTiming, type OpenProbe, type ProbeTiming } from "../../store/proof/probes.ts";
import type { OpenSource } from "../source/source.ts";
import { readForProbe, theProject } from "./readings.ts";
import { conclude, judge, type Look, type ProbeResult } from "./verdict.ts";

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
