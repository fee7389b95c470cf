import type { Queue } from "bullmq";
import { openQueue, producerConnection } from "../../../jobs/queues.ts";
import { UsageError } from "../../errors.ts";
import type { Session } from "./session.ts";

export function requireRedis({ config }: Session): string {
  if (config.redisUrl !== undefined) return config.redisUrl.reveal();
  throw new UsageError({
    code: "redis_missing",
    message: "REDIS_URL is not set.",
    next: "Set it to the Redis of the service, or add --inline to work in this process.",
  });
}

/** A queue of a source, closed with the session. */
export function openSessionQueue(
  session: Session,
  name: "control" | "fetch",
  given: { redisUrl: string; slug: string },
): Queue {
  const connection = producerConnection(given.redisUrl);
  session.onClose(async () => connection.disconnect());
  const queue = openQueue(name, given.slug, connection);
  session.onClose(() => queue.close());
  return queue;
}
