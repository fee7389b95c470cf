import { Redis } from "ioredis";
import pg from "pg";
import { readSetting } from "../config/variables.ts";
import { UnreachableError, UsageError } from "../errors.ts";
import { withoutPassword } from "../url.ts";
import type { Service } from "./service.ts";

/** Servers of `DATABASE_URL` and `REDIS_URL`. They are checked once, and never started, stopped or changed. */

const CONNECT_MS = 5_000;

/** The Postgres of `DATABASE_URL`, after it has answered a query. Undefined if the variable is not set. */
export async function namedPostgres(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const url = readSetting(env, "DATABASE_URL")?.reveal();
  if (url === undefined) return undefined;
  try {
    await pingPostgres(url);
  } catch (cause) {
    const where = `Postgres at ${withoutPassword(url)} (DATABASE_URL)`;
    // Class 28 is a refused login, 3D000 a missing database: the server answers, but the URL is wrong.
    if (/^(28|3D)/.test(codeOf(cause))) throw refused("postgres", where, "DATABASE_URL", cause);
    throw unreachable("postgres", where, "DATABASE_URL", cause);
  }
  return { url, origin: "named", close: async () => {} };
}

/** The Redis of `REDIS_URL`, after it has answered a PING. Undefined if the variable is not set. */
export async function namedRedis(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const url = readSetting(env, "REDIS_URL")?.reveal();
  if (url === undefined) return undefined;
  try {
    await pingRedis(url);
  } catch (cause) {
    const where = `Redis at ${withoutPassword(url)} (REDIS_URL)`;
    if (/\b(NOAUTH|WRONGPASS|NOPERM)\b/.test(messageOf(cause)))
      throw refused("redis", where, "REDIS_URL", cause);
    throw unreachable("redis", where, "REDIS_URL", cause);
  }
  return { url, origin: "named", close: async () => {} };
}

/** Sends one query on a connection of its own. Rejects with the error of pg. */
export async function pingPostgres(url: string): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CONNECT_MS,
  });
  // A server that disappears between two messages raises "error" on the client. Without a listener, the process would end.
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("SELECT 1");
  } finally {
    await client.end().catch(() => {});
  }
}

/** Sends one PING on a connection of its own. Rejects with the reason, not with ioredis's "Connection is closed". */
export async function pingRedis(url: string): Promise<void> {
  let reason: unknown;
  const client = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_MS,
    commandTimeout: CONNECT_MS,
    // ioredis sets this timer even on a failed connection. By default it would keep the process alive for 2 s.
    disconnectTimeout: 50,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
  });
  client.on("error", (error) => {
    reason = error;
  });
  try {
    await client.connect();
    await client.ping();
  } catch (error) {
    throw reason ?? error;
  } finally {
    client.disconnect();
  }
}

function unreachable(
  kind: "postgres" | "redis",
  where: string,
  name: string,
  cause: unknown,
): UnreachableError {
  return new UnreachableError({
    code: `${kind}_unreachable`,
    message: `${where} does not answer: ${messageOf(cause)}`,
    next: `Start it or correct ${name}. Without ${name}, demo, tests and benchmarks start a local server.`,
    retryable: true,
    cause,
  });
}

function refused(kind: "postgres" | "redis", where: string, name: string, cause: unknown): UsageError {
  return new UsageError({
    code: `${kind}_refused`,
    message: `${where} refuses the connection: ${messageOf(cause)}`,
    next: `Correct user, password and database in ${name}.`,
    cause,
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** A connection that failed on several addresses has an AggregateError with an empty message. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
