import pg from "pg";
import { readRedis } from "../../config/config.ts";
import { readSetting } from "../../config/variables.ts";
import { EtlError, UnreachableError, UsageError } from "../../errors.ts";
import { askRedis } from "../../redis-connect.ts";
import { describeRedis, redisServerOf } from "../../redis-server.ts";
import { withoutPassword } from "../../url.ts";

/** A server to use. `url` holds its password: not for logs. */
export interface Service {
  readonly url: string;
  readonly origin: "named" | "docker" | "local";
  /** Stops a server that was started here, and removes its data unless a `dataDir` was given. A named server stays. */
  close(): Promise<void>;
}

export interface ServicesOptions {
  /**
   * Folder for data of Postgres that survives a restart, in `postgres/`, for one owner at a time. Without it, a temporary
   * folder is used and removed on close. A kept folder is always served by a local process: a container lives seconds
   * longer than its killed owner, and Postgres cannot see across containers that its directory is in use.
   */
  readonly dataDir?: string;
  /** Prints progress, such as an installation or a download. By default to stderr. */
  readonly say?: (line: string) => void;
  readonly env?: NodeJS.ProcessEnv;
  /** Asked before anything is installed on the machine: `what` completes "Install ...". Default: yes. */
  readonly mayInstall?: (what: string) => Promise<boolean>;
}

/** The options with their defaults filled in. */
export interface StartInput {
  readonly dataDir: string | undefined;
  readonly say: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
  readonly mayInstall?: ServicesOptions["mayInstall"];
}

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
    // Class 28 is a refused login, 3D000 a missing database.
    if (/^(28|3D)/.test(codeOf(cause))) {
      throw new UsageError({
        code: "postgres_refused",
        message: `${where} refuses the connection: ${messageOf(cause)}`,
        next: "Correct user, password and database in DATABASE_URL.",
        cause,
      });
    }
    throw new UnreachableError({
      code: "postgres_unreachable",
      message: `${where} does not answer: ${messageOf(cause)}`,
      next: `Start it or correct DATABASE_URL. ${WITHOUT("DATABASE_URL")}`,
      retryable: true,
      cause,
    });
  }
  return { url, origin: "named", close: async () => {} };
}

const WITHOUT = (name: string) => `Without ${name}, demo, tests and benchmarks start a local server.`;

/** The Redis of `REDIS_URL` or `REDIS_SENTINELS`, after it has answered a PING. Undefined if neither is set. */
export async function namedRedis(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const redis = readRedis(env);
  if (redis === undefined) return undefined;
  try {
    await askRedis(redis, (connection) => connection.ping());
  } catch (error) {
    if (!(error instanceof EtlError)) throw error;
    const { code, message, cause } = error;
    const next = `${error.next} ${WITHOUT("REDIS_URL")}`;
    if (code !== "redis_unreachable") throw new UsageError({ code, message, next, cause });
    throw new UnreachableError({ code, message, next, retryable: true, cause });
  }
  const url = readSetting(env, "REDIS_URL")?.reveal() ?? describeRedis(redis);
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

/** Sends one PING on a connection of its own. */
export async function pingRedis(url: string): Promise<void> {
  await askRedis(redisServerOf({ url }), (connection) => connection.ping());
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** A connection that failed on several addresses has an AggregateError with an empty message. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
