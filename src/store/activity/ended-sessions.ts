import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Ends a session in all processes. `until`: when it would have expired, epoch milliseconds. */
export async function endSession(
  db: Database,
  { session, until }: { session: string; until: number },
): Promise<void> {
  await sql`delete from usage.ended_session where until < now()`.execute(db);
  await sql`
    insert into usage.ended_session (session, until) values (${session}::uuid, ${new Date(until)})
    on conflict do nothing
  `.execute(db);
}

export async function isSessionEnded(db: Database, session: string): Promise<boolean> {
  const { rows } = await sql<{ ended: boolean }>`
    select exists (select from usage.ended_session where session = ${session}::uuid) as ended
  `.execute(db);
  return rows[0]?.ended === true;
}
