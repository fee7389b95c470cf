import { type RedisServer, redisServerOf } from "../redis-server.ts";
import { type Environment, readSecretFile, readVariables, refuse, type Values } from "./variables.ts";

/** The Redis of the settings; undefined if none is named. Adds to `problems` what contradicts itself. */
export function redisFrom(values: Values, problems: string[]): RedisServer | undefined {
  const { REDIS_URL, REDIS_SENTINELS: sentinels, REDIS_CLUSTER: cluster, REDIS_CA_FILE: caFile } = values;
  // Undefined where the setting has a problem of its own.
  if (REDIS_URL === undefined && (sentinels ?? []).length === 0) return undefined;
  const ca = caFile === undefined ? undefined : readSecretFile(caFile, "REDIS_CA_FILE", problems);
  const read = () => ({
    url: REDIS_URL?.reveal(),
    isCluster: cluster === undefined ? undefined : cluster === "on",
    sentinels,
    primary: values.REDIS_SENTINEL_NAME,
    prefix: values.REDIS_PREFIX,
    username: values.REDIS_USERNAME?.reveal(),
    password: values.REDIS_PASSWORD?.reveal(),
    sentinelUsername: values.REDIS_SENTINEL_USERNAME?.reveal(),
    sentinelPassword: values.REDIS_SENTINEL_PASSWORD?.reveal(),
    isEncrypted: values.REDIS_TLS === undefined ? undefined : values.REDIS_TLS === "on",
    ca,
  });
  const server = redisServerOf(read(), read);
  if (ca !== undefined && !ca.includes("-----BEGIN CERTIFICATE-----")) {
    problems.push("REDIS_CA_FILE holds no certificate in PEM form");
  }
  if (ca !== undefined && server.access().tls === undefined) {
    problems.push("REDIS_CA_FILE is for TLS, which is off: use rediss:// or REDIS_TLS=on");
  }
  if (server.kind === "sentinel" && (REDIS_URL !== undefined || cluster === "on")) {
    problems.push("REDIS_SENTINELS says where Redis is; leave REDIS_URL and REDIS_CLUSTER out");
  }
  if (server.kind === "single" && server.hosts.length > 1) {
    problems.push("REDIS_URL names several hosts, and REDIS_CLUSTER is off; name one");
  }
  if (server.kind === "cluster" && server.database !== 0) {
    problems.push("REDIS_URL names a database, and a cluster has only database 0");
  }
  return server;
}

/** The Redis of an environment. Error: `configuration_invalid`. */
export function readRedis(environment: Environment): RedisServer | undefined {
  const problems: string[] = [];
  const server = redisFrom(readVariables(environment, problems), problems);
  refuse(problems.filter((problem) => problem.startsWith("REDIS_")));
  return server;
}
