import { Queue, type Telemetry } from "bullmq";
import { Redis, type RedisOptions } from "ioredis";
import { EtlError, UnreachableError, UsageError } from "../src/errors.ts";
import { type FetchQueue, messageId, type QueueMessage } from "../src/pipeline/sync/fetch-queue.ts";
import { extractSliceJob } from "./extract-slice.ts";

/** One hash tag for all queues, so that they share one slot of a Redis Cluster. */
export const PREFIX = "{usage-etl}";

export type QueueKind = "control" | "fetch";

export function queueName(kind: QueueKind, slug: string): string {
  return `${kind}-${slug}`;
}

/** The name that Redis shows of a process of the service. */
export function processName(role: string): string {
  return `usage-etl:${role}`;
}

/** Matches a line of `CLIENT LIST`: a process that keeps schedules. */
export const SCHEDULER_LINE = / name=usage-etl:(all|scheduler) /;

const SHARED = {
  connectTimeout: 10_000,
  // Retries for ever, capped at 10 s and with jitter, so that hosts do not reconnect at the same instant.
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
 * For adding jobs. Fails fast without Redis, since Postgres keeps the slices. A command that timed out leaves the
 * connection open: only `socketTimeout` closes a half-open one.
 */
export function producerConnection(url: string, name = ""): Redis {
  return new Redis(url, {
    ...SHARED,
    // Redis shows it to whoever looks for the processes of the service.
    ...(name === "" ? {} : { connectionName: name }),
    enableOfflineQueue: false,
    commandTimeout: 5_000,
    socketTimeout: 10_000,
    maxRetriesPerRequest: 1,
  });
}

export function openQueue(
  kind: QueueKind,
  slug: string,
  connection: Redis,
  options: { telemetry?: Telemetry } = {},
): Queue {
  return new Queue(queueName(kind, slug), { connection, prefix: PREFIX, ...options });
}

const ADDED_AT_ONCE = 500;
/** Removals are single commands, and the producer's connection gives each 5 s. */
const REMOVED_AT_ONCE = 100;

/** The fetch queue of one source as the pipeline sees it. */
export function fetchQueueOf(queue: Queue): FetchQueue {
  return {
    add: async (messages) => {
      for (let first = 0; first < messages.length; first += ADDED_AT_ONCE) {
        await queue.addBulk(messages.slice(first, first + ADDED_AT_ONCE).map(toJob));
      }
    },
    present: async () => {
      const jobs = await queue.getJobs(["waiting", "active", "delayed", "prioritized"]);
      return new Set(jobs.flatMap((job) => (job?.id === undefined ? [] : [job.id])));
    },
    remove: async (ids) => {
      let removed = 0;
      for (let first = 0; first < ids.length; first += REMOVED_AT_ONCE) {
        // BullMQ returns 0 for a job that a worker holds, and leaves it.
        const some = ids.slice(first, first + REMOVED_AT_ONCE).map((id) => queue.remove(id));
        for (const count of await Promise.all(some)) removed += count;
      }
      return removed;
    },
  };
}

/** Routine work goes before backfills: BullMQ serves a lower priority number first. */
function toJob(message: QueueMessage) {
  const { sliceId, generation, routine } = message;
  return {
    name: extractSliceJob.name,
    data: { sliceId, generation },
    opts: { ...extractSliceJob.options, jobId: messageId(message), priority: routine ? 1 : 2 },
  };
}

export const ANSWERS_WITHIN_MS = 5_000;

/** Opens a connection, asks Redis by it, and closes it. Error: `redis_unreachable` after 5 s. */
export async function askRedis<T>(url: string, ask: (connection: Redis) => Promise<T>): Promise<T> {
  const connection = new Redis(url, { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 });
  let reason = "";
  connection.on("error", (error) => {
    reason ||= error.message;
  });
  const deadline = setTimeout(() => {
    reason ||= `no answer within ${ANSWERS_WITHIN_MS / 1000} s`;
    connection.disconnect();
  }, ANSWERS_WITHIN_MS);
  try {
    await connection.connect();
    return await ask(connection);
  } catch (error) {
    if (error instanceof EtlError) throw error;
    throw redisUnreachable(url, reason || (error as Error).message, error);
  } finally {
    clearTimeout(deadline);
    connection.disconnect();
  }
}

/** The settings of a Redis that decide whether it loses jobs. */
export async function redisSettings(connection: Redis) {
  const [memory, persistence] = await Promise.all([
    connection.info("memory"),
    connection.info("persistence"),
  ]);
  return {
    policy: /maxmemory_policy:(\S+)/.exec(memory)?.[1] ?? "noeviction",
    appendsOnly: /aof_enabled:1/.test(persistence),
  };
}

/** What is wrong with a Redis that may evict keys: it would lose jobs silently. */
export function evicts(policy: string): UsageError | undefined {
  if (policy === "noeviction") return undefined;
  return new UsageError({
    code: "redis_evicts",
    message: `Redis evicts keys (maxmemory-policy ${policy}): jobs would be lost.`,
    next: "Set maxmemory-policy to noeviction, or give the service a Redis of its own.",
  });
}

export const NOT_APPENDING = "without appendonly, a restart of Redis costs a minute of work";

/**
 * Refuses a Redis that evicts keys. Returns warnings about other settings. Errors: `redis_unreachable`, `redis_evicts`.
 */
export async function checkRedis(url: string): Promise<string[]> {
  const { policy, appendsOnly } = await askRedis(url, redisSettings);
  const refused = evicts(policy);
  if (refused !== undefined) throw refused;
  return appendsOnly ? [] : [NOT_APPENDING];
}

export function redisUnreachable(url: string, reason: string, cause?: unknown): UnreachableError {
  return new UnreachableError({
    code: "redis_unreachable",
    message: `Redis at ${new URL(url).host} does not answer: ${reason}.`,
    next: "Start it, or set REDIS_URL to a Redis that runs. With --inline, sync and backfill need none.",
    retryable: true,
    cause,
  });
}
