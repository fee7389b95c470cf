import type { Queue } from "bullmq";
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

/** A queue of a source, closed with the session. Its libraries are loaded here: `--inline` needs none of them. */
export async function openSessionQueue(
  session: Session,
  name: "control" | "fetch",
  given: { redisUrl: string; slug: string },
): Promise<Queue> {
  const { openQueue, producerConnection } = await import("../../../jobs/queues.ts");
  const connection = producerConnection(given.redisUrl);
  session.onClose(async () => connection.disconnect());
  const queue = openQueue(name, given.slug, connection);
  session.onClose(() => queue.close());
  return queue;
}
