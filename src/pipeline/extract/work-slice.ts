import { scopeIdsOf } from "../../domain/planning/request.ts";
import type { Store } from "../../store/db/database.ts";
import { failScopes } from "../../store/load/failures.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import {
  claimSlice,
  endSlice,
  enterSlices,
  isLoadedAlready,
  releaseSlices,
  type StoredSlice,
} from "../../store/work/slices.ts";
import type { OpenSource } from "../source/source.ts";
import { extractSlice, type SliceResult } from "./extract.ts";
import { isStrideRefused } from "./stride-retry.ts";

/** A slice that was taken so often ends every worker that takes it. */
const POISON_AFTER = 20;

/**
 * What a worker did about a queue message. `gone`: another worker did the slice, or it was cancelled. `loaded_already`:
 * its time was loaded after it was entered, by another slice or by a worker that ended before it could record that.
 */
export type WorkResult =
  | { readonly outcome: "gone" | "poisoned" | "dropped" | "loaded_already" }
  | (SliceResult & { readonly slice: StoredSlice });

/**
 * Does the work of one queue message: takes its slice, fetches and loads it. The slice ends in the same transaction that
 * enters those taking its place. Throws what should be tried again; the message then stays queued.
 */
export async function workMessage(
  source: OpenSource,
  message: { sliceId: number; generation: number; isLastAttempt: boolean },
): Promise<WorkResult> {
  const { store } = source;
  const slice = await claimSlice(store.db, message);
  if (slice === undefined) return { outcome: "gone" };
  if (slice.attempts > POISON_AFTER) return poison(source, slice);
  if (isStrideRefused(source, slice)) {
    await endSlice(store.db, { slice, state: "done", code: "stride_not_available" });
    return { outcome: "dropped" };
  }
  // A backfill has fetch tasks of its own for time that a sync is loading: whoever comes first sends the request.
  const mayBeLoaded = slice.attempts > 1 || slice.backfillId !== undefined;
  if (mayBeLoaded && (await isLoadedAlready(store.db, slice.sliceId))) {
    await endSlice(store.db, { slice, state: "done" });
    return { outcome: "loaded_already" };
  }
  const result = await extractSlice(source, slice, {
    onTransient: message.isLastAttempt ? "keep" : "throw",
  });
  await endWithFollowUps(store, slice, result);
  return { ...result, slice };
}

async function endWithFollowUps(store: Store, slice: StoredSlice, result: SliceResult): Promise<void> {
  await store.transaction(async ({ db }) => {
    await enterSlices(db, {
      sourceId: slice.sourceId,
      backfillId: slice.backfillId,
      slices: result.followUps,
    });
    const hasFailed = result.outcome === "failed" || result.outcome === "unverified";
    await endSlice(db, {
      slice,
      state: hasFailed ? "failed" : "done",
      code: result.code ?? (hasFailed ? "workspace_unverified" : undefined),
      message: result.message,
    });
  });
}

async function poison(source: OpenSource, slice: StoredSlice): Promise<WorkResult> {
  const code = "slice_poisoned";
  const message = `No worker finished it in ${POISON_AFTER} attempts.`;
  const stamp = await drawStamp(source.store.db);
  const failure = { scopeIds: scopeIdsOf(slice), period: slice.window, stamp, code, message };
  await failScopes(source.store, { ...failure, state: "failed" });
  await endSlice(source.store.db, { slice, state: "failed", code, message });
  source.log.error({ code, slice: slice.sliceId }, message);
  return { outcome: "poisoned" };
}

/** Gives queue messages back undone: the platform refuses the key, or the process ends. */
export async function returnMessages(store: Store, sliceIds: readonly number[]): Promise<void> {
  await releaseSlices(store.db, sliceIds);
}
