import { scopeIdsOf } from "../../domain/planning/request.ts";
import { faultOf } from "../../faults.ts";
import type { Store } from "../../store/db/database.ts";
import { failScopes } from "../../store/load/failures.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import { noteTaskFailed } from "../../store/work/runs.ts";
import {
  type ClaimedSlice,
  claimSlice,
  endSlice,
  enterSlices,
  handBackSlice,
  releaseSlices,
  type StoredSlice,
} from "../../store/work/tasks.ts";
import { isKeyRefused } from "../source/refusal.ts";
import type { OpenSource } from "../source/source.ts";
import { extractSlice, isSettledBy, type SliceResult } from "./extract.ts";
import { isStrideRefused } from "./stride-retry.ts";

/** A slice that so many workers took and neither ended nor handed back ends every worker that takes it. */
const POISON_AFTER = 20;

/** Reason of the signal of a job that its own worker kept from renewing its lock. */
export const LOCK_LOST = "lock_lost";

/**
 * What a worker did about a queue message. `gone`: another worker did the slice, or it was cancelled. `loaded_already`:
 * its time was loaded after it was entered, by another slice or by a worker that ended before it could record that.
 */
export type WorkResult =
  | { readonly outcome: "gone" | "poisoned" | "dropped" | "loaded_already" }
  | (SliceResult & { readonly slice: StoredSlice });

/**
 * Does the work of one queue message: takes its slice, fetches and loads it. The slice ends in the same statement as the fetch
 * that settles it, or in the same transaction that enters those taking its place. Throws what should be tried again; the message
 * then stays queued.
 */
export async function workMessage(
  source: OpenSource,
  message: { sliceId: number; generation: number; isLastAttempt: boolean },
): Promise<WorkResult> {
  const { store, signal, gate } = source;
  const slice = await claimSlice(store.db, message);
  if (slice === undefined) return { outcome: "gone" };
  try {
    return await workSlice(source, slice, message.isLastAttempt);
  } catch (error) {
    const handBack = () => handBackSlice(store.db, slice.sliceId);
    if (isHandedBack(error, signal)) await (gate?.onceWritable(handBack) ?? handBack());
    throw error;
  }
}

/**
 * Whether a worker that stops with this error gives its claim back. A claim that stays counts towards poison: of a worker
 * that crashed or stood still, and of an error that nobody expects to pass.
 */
function isHandedBack(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted === true) return signal.reason !== LOCK_LOST;
  return isKeyRefused(error) || faultOf(error)?.retryable === true;
}

async function workSlice(
  source: OpenSource,
  slice: ClaimedSlice,
  isLastAttempt: boolean,
): Promise<WorkResult> {
  const { store } = source;
  if (slice.openClaims > POISON_AFTER) return poison(source, slice);
  if (isStrideRefused(source, slice)) {
    await endSlice(store.db, { slice, state: "done", code: "stride_not_available" });
    return { outcome: "dropped" };
  }
  // A sync and a backfill may each have a fetch task for the same time: whoever comes first sends the request. A worker
  // may also have ended after its load.
  if (slice.isLoaded) {
    await endSlice(store.db, { slice, state: "done" });
    return { outcome: "loaded_already" };
  }
  const { runId } = slice;
  const result = await extractSlice({ ...source, runId }, slice, {
    onTransient: isLastAttempt ? "keep" : "throw",
    row: slice,
  });
  // Else it ended with its answer.
  if (!isSettledBy(result)) await endWithFollowUps(store, slice, result);
  return { ...result, slice };
}

async function endWithFollowUps(store: Store, slice: StoredSlice, result: SliceResult): Promise<void> {
  await store.transaction(async ({ db }) => {
    await enterSlices(db, {
      sourceId: slice.sourceId,
      backfillId: slice.backfillId,
      runId: slice.runId,
      slices: result.followUps,
    });
    const reason = failureOf(result);
    if (reason === undefined) {
      await endSlice(db, { slice, state: "done", code: result.code, message: result.message });
      return;
    }
    await endSlice(db, { slice, state: "failed", ...reason });
    // Last: until the end of the transaction, other tasks of the run that fail wait for it.
    await noteTaskFailed(db, { runId: slice.runId, ...reason });
  });
}

/** Why a slice failed. An answer that proves no access has no message of its own. */
function failureOf({ outcome, code, message }: SliceResult): { code: string; message: string } | undefined {
  if (outcome === "unverified") return UNVERIFIED;
  if (outcome !== "failed") return undefined;
  return { code: code ?? "failed", message: message || `It failed with ${code ?? "an unnamed error"}.` };
}

const UNVERIFIED = {
  code: "workspace_unverified",
  message: "The answer had no record of a workspace without proof of access, so it may not mean zero.",
};

async function poison(source: OpenSource, slice: StoredSlice): Promise<WorkResult> {
  const code = "slice_poisoned";
  const message = `${POISON_AFTER} workers took it and neither finished it nor handed it back.`;
  const stamp = await drawStamp(source.store.db);
  const failure = { scopeIds: scopeIdsOf(slice), period: slice.window, stamp, code, message };
  await failScopes(source.store, { ...failure, state: "failed" });
  await endSlice(source.store.db, { slice, state: "failed", code, message });
  await noteTaskFailed(source.store.db, { runId: slice.runId, code, message });
  source.log.error({ code, slice: slice.sliceId }, message);
  return { outcome: "poisoned" };
}

/** Gives queue messages back undone: the platform refuses the key. */
export async function returnMessages(store: Store, sliceIds: readonly number[]): Promise<void> {
  await releaseSlices(store.db, sliceIds);
}
