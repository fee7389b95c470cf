import { Cluster, Redis, type RedisOptions } from "ioredis";
import { EtlError, UnreachableError, UsageError } from "./errors.ts";
import { describeRedis, type RedisServer } from "./redis-server.ts";

export type RedisConnection = Redis | Cluster;
type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/** Commands that may wait for ever are retried for this long, because a cluster's failover takes time. */
const FAILOVER = { redirections: 200, pauseMs: 300 };
const NODE_CONNECT_MS = 5_000;

/**
 * Each login uses what `server.access` returns at that time, so that a rotated password needs no restart. This includes
 * duplicates, which BullMQ makes for blocking reads.
 */
export function connectRedis(server: RedisServer, options: ConnectionOptions): RedisConnection {
  const { kind, hosts, primary, database, family } = server;
  const { tls } = server.access();
  const all = {
    ...options,
    ...loginOf(server),
    ...(family === undefined ? {} : { family }),
    ...(tls === undefined ? {} : { tls }),
  };
  if (kind === "cluster") return connectCluster(server, all);
  const retryStrategy = withLogin(server, options.retryStrategy);
  if (kind === "single") return new Redis({ ...all, ...hosts[0], db: database, retryStrategy });
  return new Redis({
    ...all,
    retryStrategy,
    db: database,
    sentinels: hosts.map((host) => ({ ...host })),
    name: primary,
    ...(tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tls }),
    sentinelRetryStrategy: withLogin(server, options.retryStrategy) ?? (() => null),
    sentinelCommandTimeout: NODE_CONNECT_MS,
  });
}

type Login = Pick<RedisOptions, "username" | "password" | "sentinelUsername" | "sentinelPassword">;

/** Unset values are undefined, to replace earlier ones. */
function loginOf({ access }: RedisServer): Login {
  const { tls: _tls, ...login } = access();
  return login as Login;
}

/** ioredis calls the result before each attempt, as a method of that attempt's options. */
function withLogin(server: RedisServer, retry: RedisOptions["retryStrategy"]) {
  if (typeof retry !== "function") return null;
  return function (this: unknown, times: number) {
    Object.assign(this as RedisOptions, loginOf(server));
    return retry(times);
  };
}

/** Makes the nodes of a cluster and of its duplicates use the current login, and makes each `connect` settle. */
function mend(cluster: Cluster, server: RedisServer): Cluster {
  // Without this, ioredis would use the first login.
  cluster.on("+node", () => {
    for (const node of cluster.nodes()) Object.assign(node.options, loginOf(server));
  });
  const connect = cluster.connect.bind(cluster);
  cluster.connect = () => nextConnection(cluster, connect());
  const duplicate = cluster.duplicate.bind(cluster);
  cluster.duplicate = (...args) => mend(duplicate(...args), server);
  return cluster;
}

/**
 * ioredis 6.0.0 goes on if a cluster fails its ready check, as during a failover, and never settles the promise of that
 * `connect`. BullMQ awaits this promise, so a worker would stop taking jobs.
 */
function nextConnection(cluster: Cluster, connecting: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      cluster.off("ready", isReady).off("end", isClosed);
      settle();
    };
    const isReady = () => end(resolve);
    const isClosed = () => end(() => reject(new Error("Connection is closed.")));
    cluster.on("ready", isReady).on("end", isClosed);
    connecting.then(isReady, (error) => end(() => reject(error)));
  });
}

function connectCluster(server: RedisServer, options: ConnectionOptions): Cluster {
  const { retryStrategy, enableOfflineQueue, lazyConnect, ...ofNodes } = options;
  const waits = options.maxRetriesPerRequest === null;
  const cluster = new Cluster(
    server.hosts.map((host) => ({ ...host })),
    {
      clusterRetryStrategy: retryStrategy ?? (() => null),
      ...(enableOfflineQueue === undefined ? {} : { enableOfflineQueue }),
      ...(lazyConnect === undefined ? {} : { lazyConnect }),
      ...(waits ? { maxRedirections: FAILOVER.redirections } : {}),
      retryDelayOnFailover: FAILOVER.pauseMs,
      retryDelayOnClusterDown: FAILOVER.pauseMs,
      slotsRefreshTimeout: NODE_CONNECT_MS,
      // A certificate is checked against the host name, which a look-up would replace by the address.
      ...(options.tls === undefined ? {} : { dnsLookup: (address, found) => found(null, address) }),
      redisOptions: ofNodes,
    },
  );
  return mend(cluster, server);
}

export function primariesOf(connection: RedisConnection): Redis[] {
  return connection instanceof Cluster ? connection.nodes("master") : [connection];
}

/** Time of the server that holds our keys, epoch ms. */
export async function redisTime(connection: RedisConnection, prefix: string): Promise<number> {
  const [seconds, microseconds] =
    connection instanceof Cluster
      ? ((await connection.eval("return redis.call('TIME')", 1, `${prefix}:ready`)) as [string, string])
      : await connection.time();
  return Number(seconds) * 1000 + Number(microseconds) / 1000;
}

export const RESPONSES_WITHIN_MS = 5_000;
const HOST_RESPONSES_WITHIN_MS = 2_000;

/** Opens a connection for one request. Errors: those of `redisFault`, after 5 s. */
export async function queryRedis<T>(
  server: RedisServer,
  request: (connection: RedisConnection) => Promise<T>,
): Promise<T> {
  const connection = connectRedis(server, {
    lazyConnect: true,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    connectTimeout: RESPONSES_WITHIN_MS,
    // ioredis sets this timer even on a failed connection. Its default keeps the process alive for 2 s.
    disconnectTimeout: 50,
  });
  const reasons: string[] = [];
  const note = (error: Error) => void reasons.push(messageOf(error));
  for (const event of ["node error", "sentinelError", "error"]) connection.on(event, note);
  const deadline = setTimeout(() => {
    reasons.push(`no response within ${RESPONSES_WITHIN_MS / 1000} s`);
    connection.disconnect();
  }, RESPONSES_WITHIN_MS);
  try {
    await connection.connect();
    return await request(connection);
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

/** A refused connection to a name with several addresses has one error for each. A cluster's error has that of a node. */
export function messageOf(error: Error & { lastNodeError?: Error }): string {
  if (error.lastNodeError !== undefined) return messageOf(error.lastNodeError);
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error.message || String((error as NodeJS.ErrnoException).code ?? "no reason given");
}

/** Contacts each host alone: a cluster's or Sentinels' connection reports only that it was closed. */
async function reasonsOfHosts({ kind, hosts, access }: RedisServer): Promise<string[]> {
  const { username, password, sentinelUsername, sentinelPassword, tls } = access();
  const login =
    kind === "sentinel" ? { username: sentinelUsername, password: sentinelPassword } : { username, password };
  const requested = hosts.map(async (host) => {
    const reasons: string[] = [];
    const connection = new Redis({
      ...host,
      ...(login.username === undefined ? {} : { username: login.username }),
      ...(login.password === undefined ? {} : { password: login.password }),
      ...(tls === undefined ? {} : { tls }),
      lazyConnect: true,
      retryStrategy: null,
      maxRetriesPerRequest: 0,
      enableReadyCheck: false,
      connectTimeout: HOST_RESPONSES_WITHIN_MS,
      commandTimeout: HOST_RESPONSES_WITHIN_MS,
      disconnectTimeout: 50,
    });
    connection.on("error", (error) => reasons.push(messageOf(error)));
    await connection
      .connect()
      .then(() => connection.ping())
      .catch((error) => reasons.push(messageOf(error)))
      .finally(() => connection.disconnect());
    return reasons;
  });
  return (await Promise.all(requested)).flat();
}

const VAGUE =
  /(connection is closed|failed to refresh slots cache|none of startup nodes is available|and retry is disabled)\.?( Last error: .*)?$/i;

function isVague(reason: string): boolean {
  return VAGUE.test(reason);
}

const REFUSED = /\b(WRONGPASS|NOAUTH|NOPERM)\b|invalid (username|password)|AUTH .*without any password/i;

interface Fault {
  readonly code: string;
  readonly by: RegExp;
  readonly says: string;
  readonly next: (server: RedisServer) => string;
}

const FAULTS: readonly Fault[] = [
  {
    code: "redis_refused",
    by: REFUSED,
    says: "refuses the login",
    next: ({ kind }) =>
      `Correct REDIS_URL or REDIS_PASSWORD${kind === "sentinel" ? "; REDIS_SENTINEL_PASSWORD is for the Sentinels" : ""}.`,
  },
  {
    code: "redis_tls",
    by: /wrong version number|packet length too long|unexpected message|tlsv1 alert|socket disconnected before secure/i,
    says: "does not respond to TLS",
    next: () => "If this Redis has no TLS, begin REDIS_URL with redis:// instead of rediss://.",
  },
  {
    code: "redis_tls",
    by: /certificate|altname|CERT_/i,
    says: "shows a certificate that is not trusted",
    next: () =>
      "Set REDIS_CA_FILE to the certificate of the signing authority, and use the host name that Redis's certificate has.",
  },
  {
    code: "redis_no_primary",
    by: /invalid reply: null|no such master/i,
    says: "has no primary",
    next: ({ primary }) =>
      `The Sentinels watch no primary "${primary}". Correct its name after the hosts in REDIS_URL.`,
  },
];

/**
 * Errors: `redis_refused`, `redis_tls`, `redis_no_primary` and `redis_unreachable`, which may be transient; `redis_not_cluster`
 * for a wrong setting.
 */
export function redisFault(server: RedisServer, reasons: readonly string[], cause?: unknown): EtlError {
  const where = describeRedis(server);
  const clear = reasons.filter((reason) => !isVague(reason));
  if (clear.some((reason) => /cluster support disabled/i.test(reason))) return notCluster(where);
  const known = FAULTS.find(({ by }) => reasons.some((reason) => by.test(reason)));
  const reason = (clear.find((one) => known?.by.test(one)) ?? clear[0] ?? reasons[0] ?? "no reason").replace(
    /\.$/,
    "",
  );
  return new UnreachableError({
    code: known?.code ?? "redis_unreachable",
    message: `${where} ${known?.says ?? "does not respond"}: ${reason}.`,
    next:
      known?.next(server) ??
      "Start it, or set REDIS_URL to a Redis that runs. With --inline, sync and backfill need none.",
    retryable: true,
    cause,
  });
}

function notCluster(where: string): UsageError {
  return new UsageError({
    code: "redis_not_cluster",
    message: `${where} is not a cluster: cluster support is off.`,
    next: "Name one host in REDIS_URL, and begin it with redis:// or rediss://.",
  });
}

/** Returns the error for a command that was sent to one node of a cluster; undefined for other reasons. */
export function isCluster(server: RedisServer, reason: string): UsageError | undefined {
  if (server.kind === "cluster" || !/^MOVED /.test(reason)) return undefined;
  return new UsageError({
    code: "redis_is_cluster",
    message: `${describeRedis(server)} is a node of a Redis cluster.`,
    next: "Begin REDIS_URL with redis+cluster:// or rediss+cluster://, or list several nodes in REDIS_URL.",
  });
}
