import {
  isCluster,
  primariesOf,
  queryRedis,
  type RedisConnection,
  redisTime,
} from "../src/core/base/redis-connect.ts";
import type { RedisServer } from "../src/core/base/redis-server.ts";
import { commandFaultOf, isScheduler, openQueue, redisSettings, writeFaultOf } from "./queues.ts";
import { syncJob } from "./sync.ts";

export interface RedisView {
  readonly version: string;
  readonly respondedInMs: number;
  /** Redis's clock minus this host's, in ms; 0 if less than the response time. */
  readonly clockOffMs: number;
  readonly policy: string;
  readonly appendsOnly: boolean;
  readonly writeFault: string | undefined;
  readonly commandFault: string | undefined;
  /** Processes with roles `all` and `scheduler`. Undefined if Redis does not list its clients. */
  readonly schedulers: number | undefined;
  readonly sources: ReadonlyMap<string, QueueView>;
}

export interface QueueView {
  /** Processes that fetch. Undefined if Redis does not list its clients. */
  readonly workers: number | undefined;
  /** Epoch ms. Undefined if Redis has no schedule of syncs. */
  readonly nextSync: number | undefined;
  /** Next run of each schedule in epoch ms, by id. */
  readonly schedules: ReadonlyMap<string, number>;
}

/** Errors: those of `queryRedis`, `redis_is_cluster`. */
export async function lookAtRedis(server: RedisServer, slugs: readonly string[]): Promise<RedisView> {
  const { prefix } = server;
  return queryRedis(server, async (connection) => {
    const before = Date.now();
    const time = await redisTime(connection, prefix).catch((error: Error) => {
      throw isCluster(server, error.message) ?? error;
    });
    const after = Date.now();
    const writeFault = await writeFaultOf(connection, server);
    const elsewhere = isCluster(server, writeFault ?? "");
    if (elsewhere !== undefined) throw elsewhere;
    const info = await primariesOf(connection)[0]?.info("server");
    const lists = await clientLists(connection);
    const sources = new Map<string, QueueView>();
    for (const slug of slugs) {
      sources.set(slug, await queueView(connection, { slug, prefix, tellsClients: lists !== undefined }));
    }
    return {
      version: versionOf(info ?? ""),
      respondedInMs: after - before,
      clockOffMs: time > after ? time - after : Math.min(0, time - before),
      ...(await redisSettings(connection)),
      writeFault,
      commandFault: await commandFaultOf(connection, server),
      schedulers:
        lists && Math.max(...lists.map((lines) => lines.filter((line) => isScheduler(line, prefix)).length)),
      sources,
    };
  });
}

/** `8.0.1`, or `Valkey 8.1.0`: Valkey also reports the Redis version that it replaces. */
function versionOf(info: string): string {
  const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
  if (valkey !== undefined) return `Valkey ${valkey}`;
  return /redis_version:(\S+)/.exec(info)?.[1] ?? "not known";
}

/** Lines of `CLIENT LIST`, by primary. Undefined if the command is not allowed, as on some hosted servers. */
async function clientLists(connection: RedisConnection): Promise<string[][] | undefined> {
  const requested = primariesOf(connection).map(async (node) =>
    String(await node.client("LIST")).split("\n"),
  );
  return Promise.all(requested).catch(() => undefined);
}

async function queueView(
  connection: RedisConnection,
  { slug, prefix, tellsClients }: { slug: string; prefix: string; tellsClients: boolean },
): Promise<QueueView> {
  const control = openQueue("control", slug, connection, { prefix });
  const fetch = openQueue("fetch", slug, connection, { prefix });
  const found = await control.getJobSchedulers();
  const schedules = new Map(found.map(({ key, next }) => [key, Number(next ?? 0)]));
  return {
    workers: tellsClients ? await fetch.getWorkersCount() : undefined,
    schedules,
    nextSync: schedules.get(syncJob.name),
  };
}
