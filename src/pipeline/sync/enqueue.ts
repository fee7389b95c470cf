import type { Store } from "../../store/db/database.ts";
import { finishBackfills } from "../../store/work/backfills.ts";
import { takeSlicesToQueue } from "../../store/work/take-tasks.ts";
import { queuedSlices, releaseSlices } from "../../store/work/tasks.ts";
import { type FetchQueue, isMessageId, messageId } from "./fetch-queue.ts";

/** Slices of a source in Redis at most: about 20 s of work at the default rate limit, and under 1 MB. */
const MOST_QUEUED = 1000;

interface Queued {
  readonly sourceId: number;
  readonly queue: FetchQueue;
}

/** Enqueues waiting slices of a source. Postgres commits first: `requeueLost` finds a message that is lost. */
export async function enqueueSlices(store: Store, { sourceId, queue }: Queued): Promise<{ fed: number }> {
  const slices = await store.transaction(({ db }) => takeSlicesToQueue(db, { sourceId, most: MOST_QUEUED }));
  // Without this, whoever waits for a backfill would wait for the next requeue.
  if (slices.length === 0) await finishBackfills(store);
  await queue.add(
    slices.map(({ sliceId, generation, backfillId }) => ({
      sliceId,
      generation,
      routine: backfillId === undefined,
    })),
  );
  return { fed: slices.length };
}

/**
 * Reconciles the queue with Postgres. Slices whose message Redis lost, or whose lease ran out, wait again. Messages whose
 * slice is queued no longer (its backfill was paused or cancelled) are removed: each would use a place in the rate
 * limit. Ends finished backfills. `isAlone`: no other process adds messages, so one that is not there is lost.
 */
export async function requeueLost(
  store: Store,
  { sourceId, queue, isAlone = false }: Queued & { readonly isAlone?: boolean },
): Promise<{ requeued: number; removed: number; finishedBackfills: number }> {
  const queued = await queuedSlices(store.db, sourceId);
  const present = await queue.present();
  // Another process may be adding messages at this moment: each would be enqueued twice.
  const isLost = (slice: (typeof queued)[number]) =>
    slice.expired || ((isAlone || !slice.underWay) && !present.has(messageId(slice)));
  const lost = queued.filter(isLost).map((slice) => slice.sliceId);
  if (lost.length > 0) await releaseSlices(store.db, lost);
  // Read again: Postgres commits before messages are added, so this answer holds what was enqueued meanwhile.
  const held = new Set((await queuedSlices(store.db, sourceId)).map(messageId));
  const removed = await queue.remove([...present].filter((id) => isMessageId(id) && !held.has(id)));
  const finished = await finishBackfills(store);
  return { requeued: lost.length, removed, finishedBackfills: finished.length };
}
