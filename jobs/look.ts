import type { Redis } from "ioredis";
import { askRedis, openQueue, PREFIX, redisSettings, SCHEDULER_LINE } from "./queues.ts";
import { syncJob } from "./sync.ts";

/** What Redis and the queues in it show of the service. It changes nothing but a key of its own. */
export interface RedisView {
  readonly version: string;
  readonly answeredInMs: number;
  /** Redis's clock minus this host's, in milliseconds; 0 within what the answer took. */
  readonly clockOffMs: number;
  readonly policy: string;
  readonly appendsOnly: boolean;
  /** Why it takes no write; undefined if it does. */
  readonly writeFault: string | undefined;
  /** Processes that keep schedules: roles `all` and `scheduler`. Undefined if Redis does not tell its clients. */
  readonly schedulers: number | undefined;
  readonly sources: ReadonlyMap<string, QueueView>;
}

export interface QueueView {
  /** Workers of the fetch queue: one for each process. Undefined if Redis does not tell its clients. */
  readonly workers: number | undefined;
  /** Ids of the schedules in Redis, with the next time of each in epoch milliseconds. */
  readonly schedules: ReadonlyMap<string, number>;
  /** When the next sync is due; undefined without its schedule. */
  readonly nextSync: number | undefined;
}

/** Errors: `redis_unreachable`. */
export async function lookAtRedis(url: string, slugs: readonly string[]): Promise<RedisView> {
  return askRedis(url, async (connection) => {
    const before = Date.now();
    const [seconds, microseconds] = await connection.time();
    const after = Date.now();
    const time = Number(seconds) * 1000 + Number(microseconds) / 1000;
    const writeFault = await connection.set(`${PREFIX}:look`, 1, "PX", 60_000).then(
      () => undefined,
      (error: Error) => error.message,
    );
    const server = await connection.info("server");
    // Some hosted ones allow no CLIENT LIST.
    const clients = await connection.client("LIST").then(String, () => undefined);
    const sources = new Map<string, QueueView>();
    for (const slug of slugs) {
      sources.set(slug, await queueView(connection, { slug, tellsClients: clients !== undefined }));
    }
    return {
      version: /redis_version:(\S+)/.exec(server)?.[1] ?? "not known",
      answeredInMs: after - before,
      clockOffMs: time > after ? time - after : Math.min(0, time - before),
      ...(await redisSettings(connection)),
      writeFault,
      schedulers: clients?.split("\n").filter((line) => SCHEDULER_LINE.test(line)).length,
      sources,
    };
  });
}

async function queueView(
  connection: Redis,
  { slug, tellsClients }: { slug: string; tellsClients: boolean },
): Promise<QueueView> {
  const control = openQueue("control", slug, connection);
  const fetch = openQueue("fetch", slug, connection);
  const found = await control.getJobSchedulers();
  const schedules = new Map(found.map(({ key, next }) => [key, Number(next ?? 0)]));
  return {
    workers: tellsClients ? await fetch.getWorkersCount() : undefined,
    schedules,
    nextSync: schedules.get(syncJob.name),
  };
}
