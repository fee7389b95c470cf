import { sql } from "kysely";
import { type Database, queryValues } from "../db/query.ts";

/** Ends a session in all processes. `until`: when it would have expired, epoch milliseconds. */
export async function endSession(
  db: Database,
  { session, until }: { session: string; until: number },
): Promise<void> {
  await sql`
    insert into usage.ended_session (session, until) values (${session}::uuid, ${new Date(until)})
    on conflict do nothing
  `.execute(db);
}

/** A day late: by the clock of a process that is behind Postgres's, the session would still be valid. */
export async function forgetExpired(db: Database): Promise<void> {
  await sql`delete from usage.ended_session where until < now() - interval '1 day'`.execute(db);
}

export async function endedAmong(db: Database, sessions: readonly string[]): Promise<ReadonlySet<string>> {
  const ended = await queryValues<string>(db)`
    select session from usage.ended_session where session = any(${sessions}::uuid[])
  `;
  return new Set(ended);
}
