import { sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/coverage.ts";
import { clearTime, multirange, overlaps, type ScopeTime } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import type { Database, Store } from "../db/database.ts";

interface NotedFailure extends ScopeTime {
  readonly stamp: FetchStamp;
  readonly state: "failed" | "unverified";
  readonly code: string;
  readonly message: string;
}

/** Keeps a failed task, under the same lock that loads take. */
export async function failScopes(store: Store, failure: NotedFailure): Promise<void> {
  await store.transaction(async ({ db }) => {
    await noteFailures(db, { ...failure, scopeIds: await lockScopes(db, failure.scopeIds) });
  });
}

/**
 * Keeps that a period could not be loaded, and when to retry it: after an hour, doubling to a day (rule 12 of
 * docs/architecture.md). Time that a newer fetch has loaded or failed is left out.
 */
export async function noteFailures(db: Database, failure: NotedFailure): Promise<void> {
  const { scopeIds, period, stamp, state, code, message } = failure;
  if (scopeIds.length === 0) return;
  const before = await clearTime(db, "failure", { scopeIds, period, olderThan: stamp.fetchNumber });
  const attempts = scopeIds.map((scopeId) =>
    before.reduce((most, row) => (row.scope_id === scopeId ? Math.max(most, row.attempts + 1) : most), 1),
  );
  const failedAt = sql`${new Date(stamp.fetchedAt)}::timestamptz`;
  await sql`
    with newer as (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as parts
      from (
        select scope_id, period_start, period_end from usage.coverage
        where ${overlaps(failure)} and fetch_number > ${stamp.fetchNumber}
        union all
        select scope_id, period_start, period_end from usage.failure
        where ${overlaps(failure)} and fetch_number >= ${stamp.fetchNumber}
      ) n
      group by scope_id
    )
    insert into usage.failure
      (scope_id, period_start, period_end, state, code, message, attempts, fetch_number, failed_at, retry_at)
    select scope_id, lower(part), upper(part), ${state}, ${code}, ${message}, attempts, ${stamp.fetchNumber}, ${failedAt},
           ${failedAt} + least(interval '1 hour' * 2 ^ least(attempts - 1, 10), interval '1 day')
    from unnest(${[...scopeIds]}::integer[], ${attempts}::integer[]) s (scope_id, attempts)
    left join newer using (scope_id)
    cross join lateral unnest(${multirange(period)} - coalesce(newer.parts, '{}')) part
  `.execute(db);
}

/** Makes all failures of a source due: a person asks, who does not wait for their retry time. */
export async function retryNow(db: Database, sourceId: number): Promise<void> {
  await sql`
    update usage.failure f set retry_at = now() from usage.every_scope s
    where s.scope_id = f.scope_id and s.source_id = ${sourceId} and f.retry_at > now()
  `.execute(db);
}

/** Removes the failures that a newer load replaces. */
export async function clearFailures(db: Database, cleared: ScopeTime & { olderThan: number }): Promise<void> {
  await clearTime(db, "failure", cleared);
}
