import { Queue, type Telemetry } from "bullmq";
import type { RedisOptions } from "ioredis";
import { UsageError } from "../src/core/base/errors.ts";
import {
  connectRedis,
  isCluster,
  primariesOf,
  queryRedis,
  type RedisConnection,
} from "../src/core/base/redis-connect.ts";
import { type RedisServer, redisServerOf } from "../src/core/base/redis-server.ts";
import { type FetchQueue, messageId, type QueueMessage } from "../src/core/pipeline/sync/enqueue.ts";
import { extractJob } from "./extract.ts";

export const { prefix: PREFIX } = redisServerOf({});

export type QueueKind = "control" | "fetch";

export function queueName(kind: QueueKind, slug: string): string {
  return `${kind}-${slug}`;
}

export function processName(role: string, prefix: string): string {
  return `${prefix.slice(1, -1)}:${role}`;
}

export function isScheduler(line: string, prefix: string): boolean {
  return ["all", "scheduler"].some((role) => line.includes(` name=${processName(role, prefix)} `));
}

const SHARED = {
  connectTimeout: 10_000,
  // Retries for ever, at most every 10 s and with jitter, so that hosts do not reconnect at the same instant.
  retryStrategy: (times: number) =>
    Math.min(10_000, 200 * 2 ** Math.min(times, 6)) * (0.5 + Math.random() / 2),
  // A demoted primary responds with READONLY for ever: reconnect and send the command again.
  reconnectOnError: (error: Error) => (error.message.includes("READONLY") ? (2 as const) : false),
} satisfies RedisOptions;

/** For blocking reads, which last 10 s. A half-open connection is noticed after 30 s. */
export function workerConnection(server: RedisServer): RedisConnection {
  return connectRedis(server, { ...SHARED, maxRetriesPerRequest: null, socketTimeout: 30_000 });
}

/**
 * For adding jobs. Commands fail fast, since Postgres keeps the tasks. A command that times out leaves a half-open
 * connection open: only `socketTimeout` closes it.
 */
export function producerConnection(server: RedisServer, name = ""): RedisConnection {
  return connectRedis(server, {
    ...SHARED,
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
  connection: RedisConnection,
  options: { telemetry?: Telemetry; prefix?: string } = {},
): Queue {
  return new Queue(queueName(kind, slug), { connection, prefix: PREFIX, ...options });
}

const ADDED_AT_ONCE = 500;
/** Each removal is a command, which has a limit of 5 s. */
const REMOVED_AT_ONCE = 100;

export function fetchQueueOf(queue: Queue): FetchQueue {
  return {
    add: async (messages) => {
      for (let first = 0; first < messages.length; first += ADDED_AT_ONCE) {
        await queue.addBulk(messages.slice(first, first + ADDED_AT_ONCE).map(toJob));
      }
    },
    present: async () => {
      // One command reads all ids.
      return new Set(await queue.getRanges(["waiting", "active", "delayed", "prioritized"], 0, -1));
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

/** BullMQ serves a lower number first: routine work goes before backfills. */
function toJob(message: QueueMessage) {
  const { taskId, generation, routine } = message;
  return {
    name: extractJob.name,
    data: { taskId, generation },
    opts: { ...extractJob.options, jobId: messageId(message), priority: routine ? 1 : 2 },
  };
}

/** Settings that decide whether Redis loses jobs. For a cluster, the worst setting of any primary. */
export async function redisSettings(connection: RedisConnection) {
  const settings = await Promise.all(
    primariesOf(connection).map(async (node) => {
      const [memory, persistence] = await Promise.all([node.info("memory"), node.info("persistence")]);
      return {
        policy: /maxmemory_policy:(\S+)/.exec(memory)?.[1] ?? "noeviction",
        appendsOnly: /aof_enabled:1/.test(persistence),
      };
    }),
  );
  return {
    policy: settings.find(({ policy }) => policy !== "noeviction")?.policy ?? "noeviction",
    appendsOnly: settings.every(({ appendsOnly }) => appendsOnly),
  };
}

export function writeFaultOf(
  connection: RedisConnection,
  { prefix }: RedisServer,
): Promise<string | undefined> {
  return connection.set(`${prefix}:ready`, 1, "PX", 60_000).then(
    () => undefined,
    (error: Error) => error.message,
  );
}

/** A Redis that evicts keys would lose jobs silently. */
export function evicts(policy: string): UsageError | undefined {
  if (policy === "noeviction") return undefined;
  return new UsageError({
    code: "redis_evicts",
    message: `Redis evicts keys (maxmemory-policy ${policy}): jobs would be lost.`,
    next: "Set maxmemory-policy to noeviction, or give the service a Redis of its own.",
  });
}

/** BullMQ's scripts need streams and `cmsgpack`. */
const TRY_SCRIPT = `
  redis.call('XADD', KEYS[1], '*', 'a', 'b')
  redis.call('DEL', KEYS[1])
  return cmsgpack.unpack(cmsgpack.pack('ok'))`;

export async function commandFaultOf(
  connection: RedisConnection,
  { prefix }: RedisServer,
): Promise<string | undefined> {
  const key = `${prefix}:ready:try`;
  try {
    await connection.eval(TRY_SCRIPT, 1, key);
    await connection.bzpopmin(key, 0.01);
    return undefined;
  } catch (error) {
    const { message } = error as Error;
    // These messages mean that the server is away or read-only.
    if (/^(READONLY|OOM|MISCONF|MOVED|LOADING|CLUSTERDOWN)|connection is closed/i.test(message))
      return undefined;
    return message.replace(/\.?\s*$/, "");
  }
}

export function lacksCommands(reason: string | undefined): UsageError | undefined {
  if (reason === undefined) return undefined;
  return new UsageError({
    code: "redis_unsuitable",
    message: `Redis refuses what queues need (blocking reads, Lua scripts, streams): ${reason}.`,
    next: "Allow the user these commands, or use a Redis or Valkey server without a proxy that bans them.",
  });
}

export const NOT_APPENDING = "without appendonly, a restart of Redis costs a minute of work";

/** Returns warnings. Errors: those of `queryRedis`, `redis_evicts`, `redis_is_cluster`, `redis_unsuitable`. */
export async function checkRedis(server: RedisServer): Promise<string[]> {
  const {
    policy,
    appendsOnly,
    fault = "",
    refusal,
  } = await queryRedis(server, async (connection) => {
    return {
      fault: await writeFaultOf(connection, server),
      refusal: await commandFaultOf(connection, server),
      ...(await redisSettings(connection)),
    };
  });
  const refused = isCluster(server, fault) ?? evicts(policy) ?? lacksCommands(refusal);
  if (refused !== undefined) throw refused;
  return appendsOnly ? [] : [NOT_APPENDING];
}
