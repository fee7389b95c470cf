import type { Queue, Telemetry } from "bullmq";
import type { Redis } from "ioredis";
import {
  openQueue,
  PREFIX,
  processName,
  producerConnection,
  type QueueKind,
  workerConnection,
} from "../../jobs/queues.ts";
import type { Warn } from "../log.ts";

type SourceQueues = Readonly<Record<QueueKind, Queue>>;

/** What this process uses of Redis. */
export type ServiceQueues = Awaited<ReturnType<typeof openQueues>>;

interface QueuesInput {
  readonly slugs: readonly string[];
  readonly redisUrl: string;
  /** Of this process, for those who look at Redis. */
  readonly role?: string;
  /** Whether queues and workers emit OpenTelemetry spans. */
  readonly isTraced: boolean;
  readonly warn: Warn;
}

/** Opens both queues of each source. They need no Redis yet: they connect when it answers. */
export async function openQueues({ slugs, redisUrl, role = "all", isTraced, warn }: QueuesInput) {
  const telemetry = isTraced ? { telemetry: await openTelemetry() } : {};
  /** Without a listener, Node would end the process on a connection error. */
  const watched = <T extends Redis | Queue>(emitter: T, at: string): T => {
    emitter.on("error", (error: Error) => warn({ code: "redis_unreachable", at, reason: error.message }));
    return emitter;
  };
  const producer = watched(producerConnection(redisUrl, processName(role)), "producer");
  const open = (kind: QueueKind, slug: string) => {
    const queue = openQueue(kind, slug, producer, telemetry);
    return watched(queue, queue.name);
  };
  const bySlug = new Map<string, SourceQueues>(
    slugs.map((slug) => [slug, { control: open("control", slug), fetch: open("fetch", slug) }]),
  );
  const all = [...bySlug.values()].flatMap(({ control, fetch }) => [control, fetch]);
  return {
    /** Adds jobs, and counts the requests of all hosts. */
    producer,
    all,
    telemetry,
    of: (slug: string) => bySlug.get(slug) as SourceQueues,
    /** Opens a connection for one worker, which closes it. */
    connectWorker: (name: string) => watched(workerConnection(redisUrl), name),
    /** Jobs of each queue and state, by BullMQ's own count. */
    count: async () => {
      const counted = all.map(async (queue) => {
        const counts = Object.entries(await queue.getJobCounts());
        return counts.map(([state, jobs]) => ({ queue: queue.name, state, jobs }));
      });
      return (await Promise.all(counted)).flat();
    },
    /** Redis's clock, epoch milliseconds. Rejects if Redis takes no write. */
    time: async () => {
      const [seconds, microseconds] = await producer.time();
      await tryWrite(producer);
      return Number(seconds) * 1000 + Number(microseconds) / 1000;
    },
    close: async () => {
      await Promise.all(all.map((queue) => queue.close())).finally(() => producer.disconnect());
    },
  };
}

/** Spans for the OpenTelemetry SDK that the process was started with. */
async function openTelemetry(): Promise<Telemetry> {
  const { BullMQOtel } = await import("bullmq-otel");
  return new BullMQOtel({ tracerName: "usage-etl" });
}

/** On a connection of its own: the producer's reconnects for ever to a Redis that is READONLY, and never learns why. */
async function tryWrite(producer: Redis): Promise<void> {
  const connection = producer.duplicate({
    ...{ lazyConnect: true, reconnectOnError: null, retryStrategy: null },
    connectionName: `${PREFIX}:ready`,
  });
  connection.on("error", () => {});
  try {
    await connection.connect();
    await connection.set(`${PREFIX}:ready`, 1, "PX", 60_000);
  } catch (error) {
    throw new Error(`takes no write: ${(error as Error).message}`);
  } finally {
    connection.disconnect();
  }
}
