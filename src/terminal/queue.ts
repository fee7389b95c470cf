import type { EventEmitter } from "node:events";
import type { JobsOptions, Queue } from "bullmq";
import { systemClock } from "../core/base/clock.ts";
import { UsageError } from "../core/base/errors.ts";
import { redisFault } from "../core/base/redis-connect.ts";
import type { RedisServer } from "../core/base/redis-server.ts";
import type { Session } from "./session.ts";

/** `instead` tells the user how to work without Redis. Error: `redis_missing`. */
export function requireRedis({ config }: Session, instead: string): RedisServer {
  if (config.redis !== undefined) return config.redis;
  throw new UsageError({
    code: "redis_missing",
    message: "REDIS_URL is not set.",
    next: `Set REDIS_URL to the Redis of the service, such as redis://127.0.0.1:6379, or ${instead}.`,
  });
}

/** Call this before opening a queue. Errors: `redis_missing`; `redis_unreachable` after some seconds; `redis_evicts`. */
export async function queryRedis(session: Session): Promise<RedisServer> {
  const redis = requireRedis(session, "add --inline to work in this process");
  const { checkRedis } = await import("../../jobs/queues.ts");
  await checkRedis(redis);
  return redis;
}

/** The session closes the queue. BullMQ is loaded here, since `--inline` does not need it. */
export async function openSessionQueue(
  session: Session,
  name: "control" | "fetch",
  given: { redis: RedisServer; slug: string },
): Promise<Queue> {
  const { openQueue, producerConnection } = await import("../../jobs/queues.ts");
  const connection = producerConnection(given.redis);
  const queue = openQueue(name, given.slug, connection, { prefix: given.redis.prefix });
  // Both report every attempt to connect. Adding a job reports the error to the caller.
  for (const emitter of [connection, queue] as EventEmitter[]) emitter.on("error", () => {});
  session.onClose(async () => {
    // Disconnect first: `close` would wait for a connection that is still being opened.
    connection.disconnect();
    await queue.close().catch(() => {});
  });
  return queue;
}

/** Limits the time, because BullMQ waits for a connection for ever. Error: `redis_unreachable`. */
export async function addJob(
  queue: Queue,
  given: { redis: RedisServer; name: string; options: JobsOptions },
): Promise<void> {
  const { RESPONSES_WITHIN_MS } = await import("../core/base/redis-connect.ts");
  const late = new AbortController();
  const limit = systemClock.wait(RESPONSES_WITHIN_MS, late.signal).then(() => {
    throw new Error(`the job was not taken within ${RESPONSES_WITHIN_MS / 1000} s`);
  });
  await Promise.race([queue.add(given.name, {}, given.options), limit])
    .catch((error) => {
      throw redisFault(given.redis, [error.message], error);
    })
    .finally(() => late.abort());
}
