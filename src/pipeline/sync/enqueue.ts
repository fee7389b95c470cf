import type { Store } from "../../store/db/database.ts";
import { finishBackfills } from "../../store/work/backfills.ts";
import { queuedTasks, releaseTasks, takeTasksToQueue } from "../../store/work/tasks.ts";

/** Tasks of a source in Redis at most: about 20 s of work at the default rate limit, and under 1 MB. */
const MOST_QUEUED = 1000;

interface Queued {
  readonly sourceId: number;
  readonly queue: FetchQueue;
}

/** Enqueues waiting tasks of a source. Postgres commits first: `requeueLost` finds a message that is lost. */
export async function enqueueTasks(store: Store, { sourceId, queue }: Queued): Promise<{ fed: number }> {
  const tasks = await store.transaction(({ db }) => takeTasksToQueue(db, { sourceId, most: MOST_QUEUED }));
  // Without this, whoever waits for a backfill would wait for the next requeue.
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
 * Reconciles the queue with Postgres. Tasks whose message Redis lost, or whose lease ran out, wait again. Messages whose
 * task is queued no longer (its backfill was paused or cancelled) are removed: each would use a place in the rate
 * limit. Ends finished backfills. `isAlone`: no other process adds messages, so one that is not there is lost.
 */
export async function requeueLost(
  store: Store,
  { sourceId, queue, isAlone = false }: Queued & { readonly isAlone?: boolean },
): Promise<{ requeued: number; removed: number; finishedBackfills: number }> {
  const queued = await queuedTasks(store.db, sourceId);
  const present = await queue.present();
  // Another process may be adding messages at this moment: each would be enqueued twice.
  const isLost = (task: (typeof queued)[number]) =>
    task.expired || ((isAlone || !task.underWay) && !present.has(messageId(task)));
  const lost = queued.filter(isLost).map((task) => task.taskId);
  if (lost.length > 0) await releaseTasks(store.db, lost);
  // Read again: Postgres commits before messages are added, so this answer holds what was enqueued meanwhile.
  const held = new Set((await queuedTasks(store.db, sourceId)).map(messageId));
  const removed = await queue.remove([...present].filter((id) => isMessageId(id) && !held.has(id)));
  const finished = await finishBackfills(store);
  return { requeued: lost.length, removed, finishedBackfills: finished.length };
}

/** A task in the queue. A stale message, whose generation is over, does nothing. `routine` work goes before backfills. */
export interface QueueMessage {
  readonly taskId: number;
  readonly generation: number;
  readonly routine: boolean;
}

/** The queue of one source, as the pipeline sees it. It may lose everything at any time. */
export interface FetchQueue {
  add(messages: readonly QueueMessage[]): Promise<void>;
  /** Ids of the messages that wait, are delayed or at work. */
  present(): Promise<Set<string>>;
  /** Removes messages, but for those at work; returns how many. */
  remove(ids: readonly string[]): Promise<number>;
}

/** The id of a message in the queue. It differs each time the task is enqueued. */
export function messageId({ taskId, generation }: Pick<QueueMessage, "taskId" | "generation">): string {
  return `${taskId}-${generation}`;
}

/** Whether `messageId` gave an id. Messages of a person or of another release are left alone. */
export function isMessageId(id: string): boolean {
  return /^\d+-\d+$/.test(id);
}
