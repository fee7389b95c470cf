import { Cluster, Redis, type RedisOptions } from "ioredis";
import { EtlError } from "./errors.ts";
import { isVague, redisFault } from "./redis-fault.ts";
import type { RedisServer } from "./redis-server.ts";

/** Connections to Redis, whichever kind it is, and what their errors mean. */

export type RedisConnection = Redis | Cluster;
type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/** What a cluster's failover may take: a command is sent again for so long by those who wait for ever. */
const FAILOVER = { redirections: 200, pauseMs: 300 };
const NODE_CONNECT_MS = 5_000;

export function connectRedis(server: RedisServer, options: ConnectionOptions): RedisConnection {
  const { kind, hosts, primary, database, options: ofUrl } = server;
  const { username, password, sentinelUsername, sentinelPassword, tls } = server.access();
  const login = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  };
  if (kind === "cluster") return connectCluster(server, { ...ofUrl, ...options, ...login });
  if (kind === "single") return new Redis({ ...ofUrl, ...options, ...login, ...hosts[0], db: database });
  return new Redis({
    ...options,
    ...login,
    db: database,
    sentinels: hosts.map((host) => ({ ...host })),
    name: primary,
    ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
    ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    ...(tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tls }),
    sentinelRetryStrategy: options.retryStrategy ?? (() => null),
    sentinelCommandTimeout: NODE_CONNECT_MS,
  });
}

function connectCluster({ hosts }: RedisServer, options: ConnectionOptions): Cluster {
  const { retryStrategy, enableOfflineQueue, lazyConnect, ...ofNodes } = options;
  const waits = options.maxRetriesPerRequest === null;
  return new Cluster(
    hosts.map((host) => ({ ...host })),
    {
      clusterRetryStrategy: retryStrategy ?? (() => null),
      ...(enableOfflineQueue === undefined ? {} : { enableOfflineQueue }),
      ...(lazyConnect === undefined ? {} : { lazyConnect }),
      ...(waits ? { maxRedirections: FAILOVER.redirections } : {}),
      retryDelayOnFailover: FAILOVER.pauseMs,
      retryDelayOnClusterDown: FAILOVER.pauseMs,
      slotsRefreshTimeout: NODE_CONNECT_MS,
      // A certificate is checked against the name of the host, which looking it up would replace by its address.
      ...(options.tls === undefined ? {} : { dnsLookup: (address, found) => found(null, address) }),
      redisOptions: ofNodes,
    },
  );
}

/** The servers that hold keys: one, or all primaries of a cluster. */
export function primariesOf(connection: RedisConnection): Redis[] {
  return connection instanceof Cluster ? connection.nodes("master") : [connection];
}

/** The clock of the server that holds our keys, epoch milliseconds. */
export async function redisTime(connection: RedisConnection, prefix: string): Promise<number> {
  const [seconds, microseconds] =
    connection instanceof Cluster
      ? ((await connection.eval("return redis.call('TIME')", 1, `${prefix}:ready`)) as [string, string])
      : await connection.time();
  return Number(seconds) * 1000 + Number(microseconds) / 1000;
}

export const ANSWERS_WITHIN_MS = 5_000;
const HOST_ANSWERS_WITHIN_MS = 2_000;

/** Opens a connection, asks Redis by it, and closes it. Errors: those of `redisFault`, after 5 s. */
export async function askRedis<T>(
  server: RedisServer,
  ask: (connection: RedisConnection) => Promise<T>,
): Promise<T> {
  const connection = connectRedis(server, {
    lazyConnect: true,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    connectTimeout: ANSWERS_WITHIN_MS,
    // ioredis sets this timer even on a failed connection. By default it would keep the process alive for 2 s.
    disconnectTimeout: 50,
  });
  const reasons: string[] = [];
  const note = (error: Error & { lastNodeError?: Error }) => {
    reasons.push(messageOf(error.lastNodeError ?? error));
  };
  for (const event of ["node error", "sentinelError", "error"]) connection.on(event, note);
  const deadline = setTimeout(() => {
    reasons.push(`no answer within ${ANSWERS_WITHIN_MS / 1000} s`);
    connection.disconnect();
  }, ANSWERS_WITHIN_MS);
  try {
    await connection.connect();
    return await ask(connection);
  } catch (error) {
    if (error instanceof EtlError) throw error;
    reasons.push(messageOf(error as Error));
    if (server.kind !== "single" && reasons.every(isVague))
      reasons.unshift(...(await reasonsOfHosts(server)));
    throw redisFault(server, reasons, error);
  } finally {
    clearTimeout(deadline);
    connection.disconnect();
  }
}

/** A refused connection to a name with several addresses has no message. */
function messageOf(error: Error): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error.message || String((error as NodeJS.ErrnoException).code ?? "no reason given");
}

/**
 * What each named host answers by itself: a cluster's or Sentinels' connection says only that it was closed.
 */
async function reasonsOfHosts({ kind, hosts, access }: RedisServer): Promise<string[]> {
  const { username, password, sentinelUsername, sentinelPassword, tls } = access();
  const login =
    kind === "sentinel" ? { username: sentinelUsername, password: sentinelPassword } : { username, password };
  const asked = hosts.map(async (host) => {
    const reasons: string[] = [];
    const connection = new Redis({
      ...host,
      ...(login.username === undefined ? {} : { username: login.username }),
      ...(login.password === undefined ? {} : { password: login.password }),
      ...(tls === undefined ? {} : { tls }),
      ...{ lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0, enableReadyCheck: false },
      ...{
        connectTimeout: HOST_ANSWERS_WITHIN_MS,
        commandTimeout: HOST_ANSWERS_WITHIN_MS,
        disconnectTimeout: 50,
      },
    });
    connection.on("error", (error) => reasons.push(messageOf(error)));
    await connection
      .connect()
      .then(() => connection.ping())
      .catch((error) => reasons.push(messageOf(error)))
      .finally(() => connection.disconnect());
    return reasons;
  });
  return (await Promise.all(asked)).flat();
}
