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

/** The control queue of a source, closed with the session. */
export function openControl(session: Session, redisUrl: string, slug: string): Queue {
  const connection = producerConnection(redisUrl);
  session.onClose(async () => connection.disconnect());
  const queue = openQueue("control", slug, connection);
  session.onClose(() => queue.close());
  return queue;
}
