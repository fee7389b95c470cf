import PQueue from "p-queue";
import { fetchQueueOf } from "../../../jobs/queues.ts";
import type { RedisServer } from "../../core/base/redis-server.ts";
import { asRun } from "../../core/pipeline/as-run.ts";
import { workMessage } from "../../core/pipeline/extract/work-task.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import { enqueueTasks, type FetchQueue, messageId, requeueLost } from "../../core/pipeline/sync/enqueue.ts";
import { planSync } from "../../core/pipeline/sync/sync.ts";
import { routineTasks } from "../../core/store/work/tasks.ts";
import { openSessionQueue } from "../../terminal/queue.ts";
import type { Session } from "../../terminal/session.ts";

const LOOK_EVERY_MS = 100;
const CONCURRENCY = 4;

export interface Loader {
  sync(source: OpenSource): Promise<void>;
  enqueue(source: OpenSource): Promise<void>;
}

export function createLoader(session: Session, redis: RedisServer | undefined): Loader {
  const queues = new Map<string, Promise<FetchQueue>>();
  const queueOf = (source: OpenSource) => {
    const { slug } = source.config;
    const opened = queues.get(slug) ?? openFetchQueue(session, source, redis);
    queues.set(slug, opened);
    return opened;
  };
  const enqueue = async (source: OpenSource) => {
    await enqueueTasks(source.store, { sourceId: source.sourceId, queue: await queueOf(source) });
  };
  return {
    enqueue,
    sync: async (source) => {
      // A demo that was killed may have queued tasks in a Redis that no longer exists.
      const { store, sourceId } = source;
      await requeueLost(store, { sourceId, queue: await queueOf(source), isAlone: true });
      await asRun(
        source,
        "sync",
        async (runId) => {
          const { created } = await planSync({ ...source, runId });
          await enqueue(source);
          return created;
        },
        (tasks) => ({ outcome: "done", tasks }),
      );
      await untilLoaded(session, source, enqueue);
    },
  };
}

async function openFetchQueue(
  session: Session,
  source: OpenSource,
  redis: RedisServer | undefined,
): Promise<FetchQueue> {
  if (redis === undefined) return inProcess(source);
  const { slug } = source.config;
  return fetchQueueOf(await openSessionQueue(session, "fetch", { redis, slug }));
}

function inProcess(source: OpenSource): FetchQueue {
  const tasks = new PQueue({ concurrency: CONCURRENCY });
  const held = new Set<string>();
  return {
    add: async (messages) => {
      for (const message of messages) {
        const id = messageId(message);
        held.add(id);
        const work = async () => {
          // The request was already retried. The task waits in Postgres until its lease ends.
          await workMessage(source, { ...message, isLastAttempt: true }).catch((error) =>
            source.log.warn({ reason: String(error) }, "task"),
          );
          held.delete(id);
        };
        void tasks.add(work, { priority: message.routine ? 1 : 0 });
      }
    },
    present: async () => new Set(held),
    remove: async () => 0,
  };
}

async function untilLoaded(
  { output, signal }: Pick<Session, "output" | "signal">,
  source: OpenSource,
  enqueue: Loader["enqueue"],
): Promise<void> {
  const { store, sourceId, clock } = source;
  await output.progress({ label: "load", unit: "fetch tasks" }, async (update) => {
    let total = 0;
    for (;;) {
      const { waiting, queued } = await routineTasks(store.db, sourceId);
      const left = waiting + queued;
      total = Math.max(total, left);
      update({ done: total - left, total });
      if (left === 0) return;
      if (queued === 0) await enqueue(source);
      await clock.wait(LOOK_EVERY_MS, signal);
    }
  });
}
