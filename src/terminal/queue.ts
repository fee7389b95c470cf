import type { EventEmitter } from "node:events";
import type { JobsOptions, Queue } from "bullmq";
import { systemClock } from "../core/base/clock.ts";
import { UsageError } from "../core/base/errors.ts";
import { redisFault } from "../core/base/redis-connect.ts";
import type { RedisServer } from "../core/base/redis-server.ts";
import type { Session } from "./session.ts";

/** `instead` says how to do without Redis. Error: `redis_missing`. */
export function requireRedis({ config }: Session, instead: string): RedisServer {
  if (config.redis !== undefined) return config.redis;
  throw new UsageError({
    code: "redis_missing",
    message: "REDIS_URL is not set.",
    next: `Set REDIS_URL to the Redis of the service, such as redis://127.0.0.1:6379, or ${instead}.`,
  });
}

/** Call it first. Errors: `redis_missing`; `redis_unreachable` after some seconds; `redis_evicts`. */
export async function queryRedis(session: Session): Promise<RedisServer> {
  const redis = requireRedis(session, "add --inline to work in this process");
  const { checkRedis } = await import("../../jobs/queues.ts");
  await checkRedis(redis);
  return redis;
}

/** The session closes the queue. Its libraries are loaded here, since `--inline` needs none of them. */
export async function openSessionQueue(
  session: Session,
  name: "control" | "fetch",
  given: { redis: RedisServer; slug: string },
): Promise<Queue> {
  const { openQueue, producerConnection } = await import("../../jobs/queues.ts");
  const connection = producerConnection(given.redis);
  const queue = openQueue(name, given.slug, connection, { prefix: given.redis.prefix });
  // Both report every attempt to connect; the caller that adds a job gets the error.
  for (const emitter of [connection, queue] as EventEmitter[]) emitter.on("error", () => {});
  session.onClose(async () => {
    // First, because closing waits for a connection that is still being made.
    connection.disconnect();
    await queue.close().catch(() => {});
  });
  return queue;
}

/** A queue alone waits for a connection for ever. Error: `redis_unreachable`. */
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
