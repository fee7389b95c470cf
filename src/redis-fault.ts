import { type EtlError, UnreachableError, UsageError } from "./errors.ts";
import { describeRedis, type RedisServer } from "./redis-server.ts";

/** What errors of connections to Redis mean. */

const VAGUE =
  /(connection is closed|failed to refresh slots cache|none of startup nodes is available|and retry is disabled)\.?( Last error: .*)?$/i;

/** Whether a reason says nothing that another does not say better. */
export function isVague(reason: string): boolean {
  return VAGUE.test(reason);
}

const REFUSED = /\b(WRONGPASS|NOAUTH|NOPERM)\b|invalid (username|password)|AUTH .*without any password/i;

/** Whether an answer says that user or password are not, or no longer, right. */
export function isLoginRefused(reason: string): boolean {
  return REFUSED.test(reason);
}

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
      `Correct REDIS_URL, or REDIS_USERNAME and REDIS_PASSWORD${kind === "sentinel" ? "; REDIS_SENTINEL_PASSWORD is for the Sentinels" : ""}.`,
  },
  {
    code: "redis_tls",
    by: /wrong version number|packet length too long|unexpected message|tlsv1 alert|socket disconnected before secure/i,
    says: "was asked with TLS, and does not answer so",
    next: () => "If it speaks no TLS, use redis:// and REDIS_TLS=off.",
  },
  {
    code: "redis_tls",
    by: /certificate|altname|CERT_/i,
    says: "shows a certificate that is not trusted",
    next: () =>
      "Set REDIS_CA_FILE to the certificate of the authority that signed it, and name the host as it does.",
  },
  {
    code: "redis_no_primary",
    by: /invalid reply: null|no such master/i,
    says: "has no primary",
    next: ({ primary }) => `Set REDIS_SENTINEL_NAME to a name that they watch: they know no "${primary}".`,
  },
];

/**
 * Why Redis cannot be used: `redis_refused`, `redis_tls`, `redis_no_primary`, or `redis_unreachable`. Each may be over soon.
 * Error of a setting: `redis_not_cluster`.
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
    message: `${where} ${known?.says ?? "does not answer"}: ${reason}.`,
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
    message: `${where} is no cluster: cluster support is off.`,
    next: "Name one host in REDIS_URL, and leave REDIS_CLUSTER out.",
  });
}

/** What is wrong with a command that was sent to one node of a cluster; undefined for other answers. */
export function isCluster(server: RedisServer, reason: string): UsageError | undefined {
  if (server.kind === "cluster" || !/^MOVED /.test(reason)) return undefined;
  return new UsageError({
    code: "redis_is_cluster",
    message: `${describeRedis(server)} is a node of a cluster.`,
    next: "Set REDIS_CLUSTER=on.",
  });
}
