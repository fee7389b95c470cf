import { sql } from "kysely";
import type { AnswerCollector } from "../domain/answer.ts";
import type { FetchStamp } from "../domain/coverage.ts";
import type { Database } from "./database.ts";

/** How long evidence that a workspace can be read stands: within it, an absent record is a zero (rule 4). */
export const READABLE_FOR_MS = 600_000;

/** Keeps that an answer fetched at that instant named these workspaces. */
export async function noteReadable(
  db: Database,
  named: { sourceId: number; workspaceIds: readonly string[]; at: number },
): Promise<void> {
  await sql`
    update usage.workspace w
    set readable_at = greatest(w.readable_at, ${new Date(named.at)})
    from usage.entity e
    where e.entity_id = w.entity_id and e.source_id = ${named.sourceId}
      and e.external_id = any (${[...named.workspaceIds]}::text[])
  `.execute(db);
}

/**
 * Which scopes an answer speaks for: those it names, and those whose workspace was seen to be readable lately, or since
 * `since` (epoch milliseconds) where that is given.
 */
export async function splitByEvidence(
  db: Database,
  asked: {
    answer: AnswerCollector;
    scopeIds: readonly number[];
    stamp: FetchStamp;
    since?: number | undefined;
  },
): Promise<{ readable: number[]; unverified: number[] }> {
  const { answer, scopeIds, stamp } = asked;
  const since = new Date(asked.since ?? stamp.fetchedAt - READABLE_FOR_MS);
  const named = [...answer.named()].map((index) => scopeIds[index] as number);
  if (named.length > 0) {
    await sql`
      update usage.workspace w set readable_at = ${new Date(stamp.fetchedAt)}
      from usage.scope s
      where s.scope_id = any (${named}::integer[]) and w.entity_id = s.workspace_id
        and (w.readable_at is null or w.readable_at < ${new Date(stamp.fetchedAt)})
    `.execute(db);
  }
  const { rows } = await sql<{ scope_id: number }>`
    select s.scope_id from usage.scope s join usage.workspace w on w.entity_id = s.workspace_id
    where s.scope_id = any (${[...scopeIds]}::integer[]) and w.readable_at >= ${since}
  `.execute(db);
  const proved = new Set([...named, ...rows.map((row) => row.scope_id)]);
  return {
    readable: scopeIds.filter((id) => proved.has(id)),
    unverified: scopeIds.filter((id) => !proved.has(id)),
  };
}
