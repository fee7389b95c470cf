import type { Store } from "../../store/db/database.ts";
import { finishBackfills } from "../../store/work/backfills.ts";
import { queuedSlices, releaseSlices, takeSlicesToQueue } from "../../store/work/slices.ts";
import { type FetchQueue, isMessageId, messageId } from "./fetch-queue.ts";

/** So many slices of a source stand in Redis at most: some 20 s of work at the default budget's pace, and under 1 MB. */
const MOST_QUEUED = 1000;

/** Feeds waiting slices to the source's queue. Postgres commits first: a ticket that is lost is found by the sweep. */
export async function enqueueSlices(
  store: Store,
  feed: { sourceId: number; queue: FetchQueue },
): Promise<{ fed: number }> {
  const slices = await store.transaction(({ db }) =>
    takeSlicesToQueue(db, { sourceId: feed.sourceId, most: MOST_QUEUED }),
  );
  // Whoever waits for a backfill need not wait for the sweep.
  if (slices.length === 0) await finishBackfills(store.db);
  await feed.queue.add(
    slices.map(({ sliceId, generation, backfillId }) => ({
      sliceId,
      generation,
      routine: backfillId === undefined,
    })),
  );
  return { fed: slices.length };
}

/**
 * Brings the queue and Postgres together: puts back what Postgres holds for queued and Redis has lost, or whose lease
 * ran out; takes out tickets that Postgres holds for queued no longer (their backfill was paused or cancelled), since
 * each would cost a place in the rate budget only to be found gone. Ends finished backfills.
 */
export async function requeueLost(
  store: Store,
  sweep: { sourceId: number; queue: FetchQueue },
): Promise<{ requeued: number; removed: number; finishedBackfills: number }> {
  const { sourceId, queue } = sweep;
  const queued = await queuedSlices(store.db, sourceId);
  const present = await queue.present();
  const lost = queued.filter((slice) => slice.expired || !present.has(messageId(slice)));
  if (lost.length > 0) {
    await releaseSlices(
      store.db,
      lost.map((slice) => slice.sliceId),
    );
  }
  // Asked once more: Postgres commits before tickets are added, so what was fed meanwhile is in this answer.
  const held = new Set((await queuedSlices(store.db, sourceId)).map(messageId));
  const removed = await queue.remove([...present].filter((id) => isMessageId(id) && !held.has(id)));
  const finished = await finishBackfills(store.db);
  return { requeued: lost.length, removed, finishedBackfills: finished.length };
}
