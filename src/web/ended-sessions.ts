import { sql } from "kysely";
import { anyOf } from "../core/store/db/expressions.ts";
import type { Database } from "../core/store/db/query.ts";

/** `until`: the time at which the session would have expired, epoch ms. */
export async function endSession(
  db: Database,
  { session, until }: { session: string; until: number },
): Promise<void> {
  await db
    .insertInto("usage.ended_session")
    .values({ session, until: new Date(until) })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Rows are kept a day longer, because a process whose clock is slow would still accept the session. */
export async function forgetExpired(db: Database): Promise<void> {
  await db
    .deleteFrom("usage.ended_session")
    .where("until", "<", sql<Date>`now() - interval '1 day'`)
    .execute();
}

export async function endedAmong(db: Database, sessions: readonly string[]): Promise<ReadonlySet<string>> {
  const ended = await db
    .selectFrom("usage.ended_session")
    .select("session")
    .where("session", "=", anyOf(sessions))
    .execute();
  return new Set(ended.map(({ session }) => session));
}
