import { Queue, type Telemetry } from "bullmq";
import { Redis, type RedisOptions } from "ioredis";
import { UnreachableError, UsageError } from "../src/errors.ts";
import { type FetchQueue, messageId, type QueueMessage } from "../src/pipeline/sync/fetch-queue.ts";
import { extractSliceJob } from "./extract-slice.ts";

/** One hash tag for all queues, so that they stand in one slot of a Redis Cluster. */
export const PREFIX = "{usage-etl}";

export function queueName(kind: "control" | "fetch", slug: string): string {
  return `${kind}-${slug}`;
}

const SHARED = {
  connectTimeout: 10_000,
  // Without end, capped and jittered: a Redis that comes back is found within 10 s.
  retryStrategy: (times: number) =>
    Math.min(10_000, 200 * 2 ** Math.min(times, 6)) * (0.5 + Math.random() / 2),
  // A demoted primary answers READONLY for ever: reconnect, and send the command again.
  reconnectOnError: (error: Error) => (error.message.includes("READONLY") ? (2 as const) : false),
} satisfies RedisOptions;

/** For workers, whose blocking reads last 10 s: a half-open connection is noticed after 30 s. */
export function workerConnection(url: string): Redis {
  return new Redis(url, { ...SHARED, maxRetriesPerRequest: null, socketTimeout: 30_000 });
}

/**
 * For adding: fails fast where Redis is away, since Postgres keeps what was to be added. A command that timed out leaves
 * the connection open: only `socketTimeout` gets rid of a half-open one.
 */
export function producerConnection(url: string): Redis {
  return new Redis(url, {
    ...SHARED,
    enableOfflineQueue: false,
    commandTimeout: 5_000,
    socketTimeout: 10_000,
    maxRetriesPerRequest: 1,
  });
}

/** The fetch queue of one source as the pipeline sees it. */
export function fetchQueueOf(queue: Queue): FetchQueue {
  return {
    add: async (tickets) => {
      for (let first = 0; first < tickets.length; first += 500) {
        await queue.addBulk(tickets.slice(first, first + 500).map(toJob));
      }
    },
    present: async () => {
      const jobs = await queue.getJobs(["waiting", "active", "delayed", "prioritized"]);
      return new Set(jobs.flatMap((job) => (job?.id === undefined ? [] : [job.id])));
    },
    remove: async (ids) => {
      let removed = 0;
      for (let first = 0; first < ids.length; first += REMOVED_AT_ONCE) {
        // One that a worker holds is left to it: 0.
        const some = ids.slice(first, first + REMOVED_AT_ONCE).map((id) => queue.remove(id));
        for (const count of await Promise.all(some)) removed += count;
      }
      return removed;
    },
  };
}

/** Commands under way at once: the producer's connection gives each 5 s. */
const REMOVED_AT_ONCE = 100;

/** BullMQ serves jobs without priority first; those with a lower number come before a higher one. */
function toJob(ticket: QueueMessage) {
  const { sliceId, generation, routine } = ticket;
  return {
    name: extractSliceJob.name,
    data: { sliceId, generation },
    opts: { ...extractSliceJob.options, jobId: messageId(ticket), priority: routine ? 1 : 2 },
  };
}

export function openQueue(
  kind: "control" | "fetch",
  slug: string,
  connection: Redis,
  options: { telemetry?: Telemetry } = {},
): Queue {
  return new Queue(queueName(kind, slug), { connection, prefix: PREFIX, ...options });
}

/**
 * Refuses a Redis that evicts keys, since it would lose jobs without a word, and returns what is not ideal. Errors:
 * `redis_unreachable`, `redis_evicts`.
 */
export async function checkRedis(url: string): Promise<string[]> {
  const connection = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 3_000,
    commandTimeout: 3_000,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
  });
  let reason = "";
  connection.on("error", (error) => {
    reason = error.message;
  });
  try {
    await connection.connect();
    const [memory, persistence] = await Promise.all([
      connection.info("memory"),
      connection.info("persistence"),
    ]);
    const policy = /maxmemory_policy:(\S+)/.exec(memory)?.[1] ?? "noeviction";
    if (policy !== "noeviction") {
      throw new UsageError({
        code: "redis_evicts",
        message: `Redis evicts keys (maxmemory-policy ${policy}): jobs would vanish.`,
        next: "Set maxmemory-policy to noeviction, or give the service a Redis of its own.",
      });
    }
    return /aof_enabled:1/.test(persistence)
      ? []
      : ["without appendonly, a restart of Redis costs a minute of work"];
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UnreachableError({
      code: "redis_unreachable",
      message: `Redis at ${new URL(url).host} does not answer: ${reason || (error as Error).message}.`,
      next: "Start it, or set REDIS_URL to one that runs.",
      retryable: true,
      cause: error,
    });
  } finally {
    connection.disconnect();
  }
}
