import { EtlError, reasonOf } from "../base/errors.ts";
import { faultOf } from "../base/faults.ts";
import type { Run } from "../store/activity/run-history.ts";
import { beginRun, endRun, keepSeen, type RunEnd, type RunKind } from "../store/work/runs.ts";
import type { TotalsResult } from "./proof/check-totals.ts";
import type { CreatedSource, OpenSource } from "./source/source.ts";
import type { SourceHandle } from "./source/source-handle.ts";

const NOTE_SEEN_EVERY_MS = 30_000;

/**
 * Records `work` as one run of the history; `endOf` gives its outcome. An error ends the run as failed. If the process dies or
 * loses Postgres, the run has no end, and `runs` lists it as lost.
 */
export async function asRun<T>(
  { store, sourceId }: CreatedSource,
  kind: RunKind,
  work: (runId: number) => Promise<T>,
  endOf: (result: T) => RunEnd,
): Promise<T> {
  const runId = await beginRun(store.db, { sourceId, kind });
  const stopNoting = keepSeen(store.db, runId, { everyMs: NOTE_SEEN_EVERY_MS });
  let result: T;
  try {
    try {
      result = await work(runId);
    } finally {
      await stopNoting();
    }
  } catch (error) {
    // An error of `endRun` must not hide the error of the run.
    await endRun(store.db, runId, { outcome: "failed", ...failureOf(error) }).catch(() => {});
    throw error;
  }
  await endRun(store.db, runId, endOf(result));
  return result;
}

const SKIPPED = { skipped: "the platform refuses the key" };
const END_OF_SKIPPED: RunEnd = {
  outcome: "skipped",
  code: "key_refused",
  message:
    "The platform refuses the API key. The program tries the key again once an hour, and a new key at once.",
};

export async function runOnSource<Counts extends object>(
  handle: SourceHandle,
  kind: RunKind,
  work: (source: OpenSource) => Promise<Counts>,
  endOf: (counts: Counts) => RunEnd,
): Promise<Counts | typeof SKIPPED> {
  const run = async (runId: number) => {
    const source = await handle.openForSync();
    return source && work({ ...source, runId });
  };
  const end = (counts: Counts | undefined) => (counts === undefined ? END_OF_SKIPPED : endOf(counts));
  return (await asRun(await handle.known(), kind, run, end)) ?? SKIPPED;
}

function failureOf(error: unknown): { code: string; message: string } {
  const known = error instanceof EtlError ? error : faultOf(error);
  if (known !== undefined) return { code: known.code, message: known.message };
  return { code: "failed", message: reasonOf(error) };
}

export function endOfCounts(counts: { failed: number; differences: number }): RunEnd {
  const { failed, differences } = counts;
  if (failed > 0) return { outcome: "partly_failed", failed };
  if (differences === 0) return { outcome: "done" };
  return { outcome: "differs", code: "differences_left", message: `${differences} differences remain.` };
}

/** Days that could not be checked make the outcome `partly_failed`. */
export function endOfTotals(
  counts: Pick<TotalsResult, "failures" | "unverified" | "daysNotFinal" | "differences"> &
    Partial<Pick<TotalsResult, "othersNotFinal">>,
): RunEnd {
  const { failures, unverified, differences } = counts;
  const daysNotFinal = counts.daysNotFinal + (counts.othersNotFinal ?? 0);
  const end = endOfCounts({ failed: failures + unverified, differences });
  if (end.outcome !== "done" || daysNotFinal === 0) return end;
  const message = `${daysNotFinal} daily figures were not checked, because they are not loaded or not final.`;
  return { outcome: "partly_failed", code: "days_not_final", message };
}

export function outcomeOf({ outcome, failed, left }: Pick<Run, "outcome" | "failed" | "left">): string {
  const named = outcome === "partly_failed" ? "done" : outcome;
  return [
    named,
    outcome === "partly_failed" && failed === 0 ? "not all" : "",
    failed > 0 ? `${failed.toLocaleString("en-US")} failed` : "",
    left > 0 ? `${left.toLocaleString("en-US")} left` : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}
