import type { EventEmitter } from "node:events";
import type { Queue, Telemetry } from "bullmq";
import {
  openQueue,
  processName,
  producerConnection,
  type QueueKind,
  workerConnection,
  writeFaultOf,
} from "../../../jobs/queues.ts";
import type { Warn } from "../../core/base/log.ts";
import { loadOptional } from "../../core/base/optional.ts";
import {
  messageOf,
  queryRedis,
  type RedisConnection,
  redisFault,
  redisTime,
} from "../../core/base/redis-connect.ts";
import type { RedisServer } from "../../core/base/redis-server.ts";

type SourceQueues = Readonly<Record<QueueKind, Queue>>;

export type ServiceQueues = Awaited<ReturnType<typeof openQueues>>;

interface QueuesInput {
  readonly slugs: readonly string[];
  readonly redis: RedisServer;
  readonly role?: string;
  readonly isTraced: boolean;
  readonly warn: Warn;
}

/** Redis may be away: queues connect when Redis responds. */
export async function openQueues({ slugs, redis, role = "all", isTraced, warn }: QueuesInput) {
  const { prefix } = redis;
  const telemetry = isTraced ? { telemetry: await openTelemetry() } : {};
  if (telemetry.telemetry !== undefined && !isReceived(telemetry.telemetry)) {
    const reason = "no OpenTelemetry SDK is registered: docs/monitoring.md#traces";
    warn({ code: "telemetry_unreceived", at: "USAGE_TELEMETRY", reason });
  }
  /** Without a listener, Node would end the process on a connection error. */
  const watched = <T extends RedisConnection | Queue>(emitter: T, at: string): T => {
    (emitter as EventEmitter).on("error", (error: Error) =>
      warn({ code: redisFault(redis, [messageOf(error)]).code, at, reason: messageOf(error) }),
    );
    return emitter;
  };
  const producer = watched(producerConnection(redis, processName(role, prefix)), "producer");
  const open = (kind: QueueKind, slug: string) => {
    const queue = openQueue(kind, slug, producer, { ...telemetry, prefix });
    return watched(queue, queue.name);
  };
  const bySlug = new Map<string, SourceQueues>(
    slugs.map((slug) => [slug, { control: open("control", slug), fetch: open("fetch", slug) }]),
  );
  const all = [...bySlug.values()].flatMap(({ control, fetch }) => [control, fetch]);
  return {
    producer,
    prefix,
    all,
    telemetry,
    of: (slug: string) => bySlug.get(slug) as SourceQueues,
    connectWorker: (name: string) => watched(workerConnection(redis), name),
    count: async () => {
      const counted = all.map(async (queue) => {
        const counts = Object.entries(await queue.getJobCounts());
        return counts.map(([state, jobs]) => ({ queue: queue.name, state, jobs }));
      });
      return (await Promise.all(counted)).flat();
    },
    clock: () => redisTime(producer, prefix),
    /** Returns the same time as `clock`. Rejects if Redis refuses a write. */
    time: async () => {
      await tryWrite(redis);
      return redisTime(producer, prefix);
    },
    close: async () => {
      await Promise.all(all.map((queue) => queue.close())).finally(() => producer.disconnect());
    },
  };
}

async function openTelemetry(): Promise<Telemetry> {
  const { BullMQOtel } = await loadOptional(() => import("bullmq-otel"));
  return new BullMQOtel({ tracerName: "usage-etl" });
}

/**
 * Returns whether an SDK is registered with our copy of the OpenTelemetry API. Otherwise every span is dropped silently, and
 * jobs carry no trace context.
 */
function isReceived({ tracer, contextManager }: Telemetry): boolean {
  const context = tracer.startSpan("usage-etl").setSpanOnContext(contextManager.active());
  return contextManager.getMetadata(context) !== "{}";
}

/** Uses a new connection: the producer's would reconnect to a READONLY Redis for ever, without an error. */
async function tryWrite(redis: RedisServer): Promise<void> {
  const fault = await queryRedis(redis, (connection) => writeFaultOf(connection, redis));
  if (fault !== undefined) throw new Error(`takes no write: ${fault}`);
}
