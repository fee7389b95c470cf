import { sql } from "kysely";
import type { FetchStamp } from "../../domain/planning/coverage.ts";
import type { AnswerCollector } from "../../domain/usage/answer.ts";
import type { Database } from "../db/database.ts";

/** How long evidence that a workspace can be read stands: within it, an absent record is a zero (rule 4). */
export const ACCESS_PROVEN_FOR_MS = 600_000;

/**
 * Keeps what an answer over all of time says of the workspaces it was asked for: those it names were readable when it
 * was fetched, and evidence from before says nothing of the others any longer.
 */
export async function noteAccess(
  db: Database,
  answer: { sourceId: number; asked: readonly string[]; named: readonly string[]; at: number },
): Promise<void> {
  const at = new Date(answer.at);
  await sql`
    with locked as (
      select w.entity_id, e.external_id = any (${[...answer.named]}::text[]) as named
      from usage.workspace w join usage.entity e on e.entity_id = w.entity_id
      where e.source_id = ${answer.sourceId} and e.external_id = any (${[...answer.asked]}::text[])
        and (w.unlisted_since is null or w.unlisted_since <= ${at})
      order by w.entity_id
      for no key update of w
    )
    update usage.workspace w
    set readable_at = case
      when locked.named then greatest(w.readable_at, ${at})
      when w.readable_at > ${at} then w.readable_at
    end
    from locked
    where locked.entity_id = w.entity_id
  `.execute(db);
}

/**
 * Keeps that the workspaces which an answer names were readable when it was fetched, whatever becomes of the answer.
 *
 * Before the load and in a statement of its own: loads of every grouping and stride share these rows, and a host that
 * vanished with them locked would hold up all of them (test/integration/service/hosts.test.ts).
 */
export async function noteNamedAccess(
  db: Database,
  { answer, scopeIds, stamp }: { answer: AnswerCollector; scopeIds: readonly number[]; stamp: FetchStamp },
): Promise<void> {
  const named = [...answer.named()].map((index) => scopeIds[index] as number);
  if (named.length === 0) return;
  const at = new Date(stamp.fetchedAt);
  // A late answer does not bring back what a newer listing took away. In key order, as listings take these rows.
  await sql`
    with locked as (
      select w.entity_id
      from usage.workspace w join usage.scope s on s.workspace_id = w.entity_id
      where s.scope_id = any (${named}::integer[])
        and (w.readable_at is null or w.readable_at < ${at})
        and (w.unlisted_since is null or w.unlisted_since <= ${at})
      order by w.entity_id
      for no key update of w
    )
    update usage.workspace w set readable_at = greatest(w.readable_at, ${at})
    from locked
    where locked.entity_id = w.entity_id
  `.execute(db);
}

/**
 * Which scopes an answer speaks for: those it names, and those whose workspace was seen to be readable lately, or since
 * `since` (epoch milliseconds) where that is given.
 */
export async function splitByAccess(
  db: Database,
  asked: {
    /** Indices of the workspaces that it names. */
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
  const proved = new Set([...named, ...rows.map((row) => row.scope_id)]);
  return {
    proven: scopeIds.filter((id) => proved.has(id)),
    unverified: scopeIds.filter((id) => !proved.has(id)),
  };
}
