import { Redis } from "ioredis";
import pg from "pg";
import { readSetting } from "../config/variables.ts";
import { UnreachableError, UsageError } from "../errors.ts";
import { withoutPassword } from "../url.ts";
import type { Service } from "./service.ts";

/** Servers of `DATABASE_URL` and `REDIS_URL`. They are checked once, and never started, stopped or changed. */

const CONNECT_MS = 5_000;

interface NamedServer {
  readonly server: "Postgres" | "Redis";
  readonly name: "DATABASE_URL" | "REDIS_URL";
  readonly ping: (url: string) => Promise<void>;
  /** Whether the server answers, but the URL is wrong. */
  readonly isRefusal: (cause: unknown) => boolean;
}

/** The Postgres of `DATABASE_URL`, after it has answered a query. Undefined if the variable is not set. */
export function namedPostgres(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  // Class 28 is a refused login, 3D000 a missing database.
  const isRefusal = (cause: unknown) => /^(28|3D)/.test(codeOf(cause));
  return named(env, { server: "Postgres", name: "DATABASE_URL", ping: pingPostgres, isRefusal });
}

/** The Redis of `REDIS_URL`, after it has answered a PING. Undefined if the variable is not set. */
export function namedRedis(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const isRefusal = (cause: unknown) => /\b(NOAUTH|WRONGPASS|NOPERM)\b/.test(messageOf(cause));
  return named(env, { server: "Redis", name: "REDIS_URL", ping: pingRedis, isRefusal });
}

async function named(
  env: NodeJS.ProcessEnv,
  { server, name, ping, isRefusal }: NamedServer,
): Promise<Service | undefined> {
  const url = readSetting(env, name)?.reveal();
  if (url === undefined) return undefined;
  try {
    await ping(url);
  } catch (cause) {
    const where = `${server} at ${withoutPassword(url)} (${name})`;
    if (isRefusal(cause)) {
      throw new UsageError({
        code: `${server.toLowerCase()}_refused`,
        message: `${where} refuses the connection: ${messageOf(cause)}`,
        next: `Correct user, password and database in ${name}.`,
        cause,
      });
    }
    throw new UnreachableError({
      code: `${server.toLowerCase()}_unreachable`,
      message: `${where} does not answer: ${messageOf(cause)}`,
      next: `Start it or correct ${name}. Without ${name}, demo, tests and benchmarks start a local server.`,
      retryable: true,
      cause,
    });
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

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** A connection that failed on several addresses has an AggregateError with an empty message. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
