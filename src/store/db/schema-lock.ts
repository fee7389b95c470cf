import { setTimeout as wait } from "node:timers/promises";
import { sql } from "kysely";
import { EtlError } from "../../errors.ts";
import type { Database } from "./database.ts";

/** How long a change of the schema tries to get its locks. */
export interface SchemaLockRetry {
  /** Longest wait for a lock. Queries that come later queue behind it for so long. */
  readonly lockMs: number;
  readonly attempts: number;
  readonly pause: (ms: number) => Promise<unknown>;
}

/** About two minutes in all. Reports that begin meanwhile wait two seconds at a time. */
export const SCHEMA_LOCK_RETRY: SchemaLockRetry = { lockMs: 2_000, attempts: 30, pause: wait };

/** lock_not_available and deadlock_detected. */
const HELD_UP = new Set(["55P03", "40P01"]);

/**
 * Runs `work`, which changes tables or views in one transaction, and repeats it while another session holds a lock.
 * Errors: `schema_in_use`, which names the session, after the last attempt.
 */
export async function withSchemaLock<T>(
  db: Database,
  { lockMs, attempts, pause }: SchemaLockRetry,
  work: (lockTimeout: string) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(`${lockMs}ms`);
    } catch (error) {
      if (!HELD_UP.has((error as { code?: string }).code ?? "")) throw error;
      if (attempt >= attempts) throw await inUse(db, error);
      // Longer than the wait for the lock, and random, so that two sessions do not keep colliding.
      await pause(lockMs * (1 + Math.random()));
    }
  }
}

async function inUse(db: Database, cause: unknown): Promise<EtlError> {
  const { rows } = await sql<{ pid: number; who: string; seconds: number; held: string; query: string }>`
    select a.pid, concat_ws(', ', a.usename, nullif(a.application_name, '')) as who,
           extract(epoch from now() - a.xact_start)::integer as seconds,
           min(c.relnamespace::regnamespace || '.' || c.relname) as held, left(a.query, 100) as query
    from pg_locks l
    join pg_class c on c.oid = l.relation and c.relnamespace in ('usage'::regnamespace, 'reporting'::regnamespace, 'reporting_detail'::regnamespace)
    join pg_stat_activity a on a.pid = l.pid
    where l.granted and l.locktype = 'relation' and l.pid <> pg_backend_pid()
      and l.database = (select oid from pg_database where datname = current_database())
    group by a.pid, a.usename, a.application_name, a.xact_start, a.query
    order by a.xact_start
    limit 1
  `.execute(db);
  const holder = rows[0];
  const about =
    holder === undefined
      ? "The transaction has ended meanwhile."
      : `Process ${holder.pid} (${holder.who}) has held ${holder.held} for ${holder.seconds} s with: ${holder.query}`;
  const end = holder === undefined ? "" : `, or end it with SELECT pg_terminate_backend(${holder.pid}),`;
  return new EtlError({
    code: "schema_in_use",
    message: `A long transaction uses tables or views, so they were not changed. ${about}`,
    next: `Wait until it ends${end} and run \`usage-etl migrate\` again. Nothing is half done.`,
    retryable: true,
    cause,
  });
}
