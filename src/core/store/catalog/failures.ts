import { type RawBuilder, sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import type { Store } from "../db/database.ts";
import { change, type Database, type Row } from "../db/query.ts";
import { clearTime, multirange, overlaps, type ScopeTime } from "./scope-time.ts";
import { lockScopes } from "./scopes.ts";

interface NotedFailure extends ScopeTime, Row<"usage.failure", "state" | "code" | "message"> {
  readonly fetchToken: FetchToken;
}

export async function failScopes(store: Store, failure: NotedFailure): Promise<void> {
  await store.transaction(async ({ db }) => {
    await noteFailures(db, { ...failure, scopeIds: await lockScopes(db, failure.scopeIds) });
  });
}

/**
 * Stores that a period could not be loaded, and when to retry it (rule 12 of docs/rules.md). Leaves out time that a newer
 * fetch has loaded or failed.
 */
export async function noteFailures(db: Database, failure: NotedFailure): Promise<void> {
  const { scopeIds, period, fetchToken, state, code, message } = failure;
  if (scopeIds.length === 0) return;
  const before = await clearTime(db, "failure", { scopeIds, period, olderThan: fetchToken.fetchNumber });
  const attempts = scopeIds.map((scopeId) =>
    before.reduce((most, row) => (row.scope_id === scopeId ? Math.max(most, row.attempts + 1) : most), 1),
  );
  const failedAt = sql`${new Date(fetchToken.fetchedAt)}::timestamptz`;
  await sql`
    with newer as (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as parts
      from (
        select scope_id, period_start, period_end from usage.coverage
        where ${overlaps(failure)} and fetch_number > ${fetchToken.fetchNumber}
        union all
        select scope_id, period_start, period_end from usage.failure
        where ${overlaps(failure)} and fetch_number >= ${fetchToken.fetchNumber}
      ) n
      group by scope_id
    )
    insert into usage.failure
      (scope_id, period_start, period_end, state, code, message, attempts, fetch_number, failed_at, retry_at)
    select scope_id, lower(part), upper(part), ${state}, ${code}, ${message}, attempts, ${fetchToken.fetchNumber}, ${failedAt},
           ${failedAt} + least(interval '1 hour' * 2 ^ least(attempts - 1, 10), interval '1 day')
    from unnest(${scopeIds}::integer[], ${attempts}::integer[]) s (scope_id, attempts)
    left join newer using (scope_id)
    cross join lateral unnest(${multirange(period)} - coalesce(newer.parts, '{}')) part
  `.execute(db);
}

/** Makes all failures due, because a person requested the retry. */
export async function retryNow(db: Database, sourceId: number): Promise<void> {
  await sql`
    update usage.failure f set retry_at = now() from usage.scope s
    where s.scope_id = f.scope_id and s.source_id = ${sourceId} and f.retry_at > now()
  `.execute(db);
}

/** Unverified time becomes due once its workspace is proven to be readable. */
export async function retryUnverified(
  db: Database,
  { sourceId, at }: { sourceId: number; at: number },
): Promise<void> {
  await sql`
    update usage.failure f set retry_at = ${new Date(at)}
    from usage.scope s join usage.workspace w on w.entity_id = s.workspace_id
    where s.scope_id = f.scope_id and s.source_id = ${sourceId} and f.state = 'unverified'
      and w.readable_at > f.failed_at and f.retry_at > ${new Date(at)}
  `.execute(db);
}

export async function clearFailures(db: Database, which: RawBuilder<unknown>): Promise<void> {
  await sql`delete from usage.failure f using usage.scope c where c.scope_id = f.scope_id and ${which}`.execute(
    db,
  );
}

const UNANSWERED = ["server_error", "network", "timeout", "response_cut", "response_too_large"];
/**
 * Codes of a response that is not the endpoint's, such as a proxy's page. `response_invalid` about one record is not meant: the
 * ledger has that fetch as refused, not as failed.
 */
const FOREIGN = ["response_invalid", "redirect_refused"];
const BY_CHANCE = 3;
/** Maximum age of the first attempt of a task that gave up: eight attempts with pauses of up to two minutes. */
const ATTEMPTS_WITHIN = sql`interval '10 minutes'`;
const MOST = 1000;

/**
 * Makes failures that an outage of the source caused due now (rule 12 of docs/rules.md). Returns how many are due. An outage
 * caused a failure if the source sent no response between the first and the last attempt of its task. All failures of an outage
 * are due once the source has responded since; until then, each sync retries one. A foreign response is no response. It comes
 * at once, even between good ones, so a failure's first three always count as an outage. After these, any response in the
 * minutes before shows that the task itself is at fault.
 */
export async function retryAfterOutage(db: Database, sourceId: number): Promise<number> {
  const responded = sql`a.source_id = ${sourceId} and a.finished_at is not null
    and (a.outcome <> 'failed' or a.code <> all (${[...UNANSWERED, ...FOREIGN]}::text[]))`;
  return change(db)`
    with failed as (
      select f.scope_id, f.period_start, f.failed_at, f.code = any (${FOREIGN}::text[]) as is_foreign, f.attempts,
             f.failed_at - ${ATTEMPTS_WITHIN} as earliest,
             (select min(a.fetched_at) from usage.fetch a
              where a.source_id = ${sourceId} and a.fetched_at between f.failed_at - ${ATTEMPTS_WITHIN} and f.failed_at
                and a.outcome = 'failed' and a.group_by = c.group_by and a.stride = c.stride
                and a.kind = c.kind and a.trace_tier = c.trace_tier
                and a.period_start <= f.period_start and a.period_end >= f.period_end) as first_at
      from usage.failure f join usage.scope c using (scope_id)
      where c.source_id = ${sourceId} and f.retry_at > now()
        and (f.code = any (${UNANSWERED}::text[]) or f.code = any (${FOREIGN}::text[]) and exists (
          select from usage.fetch a where a.fetch_number = f.fetch_number and a.outcome = 'failed'))
      order by f.period_start desc, f.scope_id
      limit ${MOST}
    ), outage as (
      select f.*, exists (select from usage.fetch a where ${responded} and a.fetched_at > f.failed_at) as is_over
      from failed f
      where (is_foreign and attempts <= ${BY_CHANCE}) or not exists (
        select from usage.fetch a
        where ${responded} and a.fetched_at between f.earliest and f.failed_at and (is_foreign or a.finished_at >= f.first_at)
      )
    ), again as (
      select scope_id, period_start from outage where is_over
      union all
      (select scope_id, period_start from outage
       where not exists (select from outage where is_over)
       order by period_start desc, scope_id limit 1)
    )
    update usage.failure f set retry_at = now()
    from again
    where f.scope_id = again.scope_id and f.period_start = again.period_start
  `;
}
