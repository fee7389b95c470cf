import type { Store } from "../../store/db/database.ts";
import { finishBackfills } from "../../store/work/backfills.ts";
import { queuedTasks, releaseTasks, takeTasksToQueue } from "../../store/work/tasks.ts";

/** Maximum tasks of a source in Redis: about 20 s of work at the default rate limit, and under 1 MB. */
const MOST_QUEUED = 1000;

interface Queued {
  readonly sourceId: number;
  readonly queue: FetchQueue;
}

/** Postgres commits before messages are added, so `requeueLost` finds lost messages. */
export async function enqueueTasks(store: Store, { sourceId, queue }: Queued): Promise<{ fed: number }> {
  const tasks = await store.transaction(({ db }) => takeTasksToQueue(db, { sourceId, most: MOST_QUEUED }));
  if (tasks.length === 0) await finishBackfills(store);
  await queue.add(
    tasks.map(({ taskId, generation, backfillId }) => ({
      taskId,
      generation,
      routine: backfillId === undefined,
    })),
  );
  return { fed: tasks.length };
}

/**
 * Reconciles the queue with Postgres. Tasks whose message Redis lost, or whose lease ran out, wait again. Messages of tasks
 * that are no longer queued (a paused or cancelled backfill) are removed, because each would use the rate limit. `isAlone`: no
 * other process adds messages, so a missing message is lost.
 */
export async function requeueLost(
  store: Store,
  { sourceId, queue, isAlone = false }: Queued & { readonly isAlone?: boolean },
): Promise<{ requeued: number; removed: number; finishedBackfills: number }> {
  const queued = await queuedTasks(store.db, sourceId);
  const present = await queue.present();
  // Another process may still be adding a missing message, and its task would be queued twice.
  const isLost = (task: (typeof queued)[number]) =>
    task.expired || ((isAlone || !task.underWay) && !present.has(messageId(task)));
  const lost = queued.filter(isLost).map((task) => task.taskId);
  if (lost.length > 0) await releaseTasks(store.db, lost);
  // Postgres commits before messages are added, so this second read has all tasks enqueued meanwhile.
  const held = new Set((await queuedTasks(store.db, sourceId)).map(messageId));
  const removed = await queue.remove([...present].filter((id) => isMessageId(id) && !held.has(id)));
  const finished = await finishBackfills(store);
  return { requeued: lost.length, removed, finishedBackfills: finished.length };
}

/** A message of an earlier generation is ignored. `routine` messages go before those of backfills. */
export interface QueueMessage {
  readonly taskId: number;
  readonly generation: number;
  readonly routine: boolean;
}

export interface FetchQueue {
  add(messages: readonly QueueMessage[]): Promise<void>;
  present(): Promise<Set<string>>;
  remove(ids: readonly string[]): Promise<number>;
}

export function messageId({ taskId, generation }: Pick<QueueMessage, "taskId" | "generation">): string {
  return `${taskId}-${generation}`;
}

function isMessageId(id: string): boolean {
  return /^\d+-\d+$/.test(id);
}
