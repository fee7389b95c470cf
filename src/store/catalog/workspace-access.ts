import { type RawBuilder, sql } from "kysely";
import type { FetchStamp } from "../../domain/planning/coverage.ts";
import type { AnswerCollector } from "../../domain/usage/answer.ts";
import type { Database } from "../db/database.ts";

/** How long proof of access lasts: as long as it does, an absent record means zero (rule 4 of docs/architecture.md). */
export const ACCESS_PROVEN_FOR_MS = 600_000;

/**
 * Keeps what an answer over all of time says about access. It proves access to the workspaces that it names, and ends
 * older proof for the others that were asked for.
 */
export async function noteAccess(
  db: Database,
  answer: { sourceId: number; asked: readonly string[]; named: readonly string[]; at: number },
): Promise<void> {
  await updateAccess(
    db,
    answer.at,
    sql`
      select entity_id, external_id = any (${[...answer.named]}::text[]) from usage.entity
      where source_id = ${answer.sourceId} and dimension = 'workspace' and external_id = any (${[...answer.asked]}::text[])
    `,
  );
}

/**
 * Keeps the proof of access to the workspaces that an answer names, even if the answer is then discarded.
 *
 * It runs before the load, as a statement of its own. Loads of every dimension and stride share these rows, so a host that
 * disappears with them locked would block all loads (test/integration/service/hosts.test.ts).
 */
export async function noteNamedAccess(
  db: Database,
  { answer, scopeIds, stamp }: { answer: AnswerCollector; scopeIds: readonly number[]; stamp: FetchStamp },
): Promise<void> {
  const named = [...answer.named()].map((index) => scopeIds[index] as number);
  if (named.length === 0) return;
  const asked = sql`select workspace_id, true from usage.scope where scope_id = any (${named}::integer[])`;
  await updateAccess(db, stamp.fetchedAt, asked);
}

/** `asked` selects the ids of the workspaces that were asked for, and whether the answer names them. */
async function updateAccess(db: Database, fetchedAt: number, asked: RawBuilder<unknown>): Promise<void> {
  const at = new Date(fetchedAt);
  // An answer does not restore the access that a newer listing took away. Rows that bring nothing new stay unlocked.
  // The others are locked in key order, as listings lock them.
  await sql`
    with asked (entity_id, is_named) as (${asked}), locked as (
      select w.entity_id, asked.is_named
      from usage.workspace w join asked using (entity_id)
      where (w.unlisted_since is null or w.unlisted_since <= ${at})
        and case when asked.is_named then w.readable_at is null or w.readable_at < ${at} else w.readable_at <= ${at} end
      order by w.entity_id
      for no key update of w
    )
    update usage.workspace w
    set readable_at = case
      when locked.is_named then greatest(w.readable_at, ${at})
      when w.readable_at > ${at} then w.readable_at
    end
    from locked
    where locked.entity_id = w.entity_id
  `.execute(db);
}

/**
 * Splits the scopes of an answer by proof of access: `proven` ones are named in the answer, or their workspace was
 * readable recently, or since `since` (epoch milliseconds) if that is given.
 */
export async function splitByAccess(
  db: Database,
  asked: {
    /** Indices of the workspaces that the answer names. */
    answer: Pick<AnswerCollector, "named">;
    scopeIds: readonly number[];
    stamp: FetchStamp;
    since?: number | undefined;
  },
): Promise<{ proven: number[]; unverified: number[] }> {
  const { answer, scopeIds, stamp } = asked;
  const since = new Date(asked.since ?? stamp.fetchedAt - ACCESS_PROVEN_FOR_MS);
  const { rows } = await sql<{ scope_id: number }>`
    select s.scope_id from usage.scope s join usage.workspace w on w.entity_id = s.workspace_id
    where s.scope_id = any (${[...scopeIds]}::integer[]) and w.readable_at >= ${since}
  `.execute(db);
  const named = [...answer.named()].map((index) => scopeIds[index] as number);
  const proven = new Set([...named, ...rows.map((row) => row.scope_id)]);
  return {
    proven: scopeIds.filter((id) => proven.has(id)),
    unverified: scopeIds.filter((id) => !proven.has(id)),
  };
}
