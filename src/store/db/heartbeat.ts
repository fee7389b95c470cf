import { sql } from "kysely";
import type { Database } from "./database.ts";

/**
 * Writes the primary's time as the heartbeat of a process, a name that nobody else has. Whoever sees it on a replica sees
 * everything that was committed before that time. Returns it, epoch milliseconds.
 */
export async function writeHeartbeat(db: Database, process: string): Promise<number> {
  const { rows } = await sql<{ at: Date }>`
    with ended as (
      delete from usage.heartbeat where beat_at < now() - interval '1 hour' and process <> ${process}
    )
    insert into usage.heartbeat as h (process, beat_at) values (${process}, clock_timestamp())
    on conflict (process) do update set beat_at = greatest(h.beat_at, excluded.beat_at)
    returning beat_at as at
  `.execute(db);
  return (rows[0] as { at: Date }).at.getTime();
}

/** The heartbeat of a process as this server shows it, epoch milliseconds. Undefined: it shows none. */
export async function readHeartbeat(db: Database, process: string): Promise<number | undefined> {
  const { rows } = await sql<{ at: Date }>`
    select beat_at as at from usage.heartbeat where process = ${process}
  `.execute(db);
  return rows[0]?.at.getTime();
}

export async function removeHeartbeat(db: Database, process: string): Promise<void> {
  await sql`delete from usage.heartbeat where process = ${process}`.execute(db);
}
