import { sql } from "kysely";
import type { FetchToken } from "../../domain/coverage/finality.ts";
import type { Window } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Store } from "../db/database.ts";
import { CLOCK } from "../db/expressions.ts";
import { type Database, query, queryOne, type Row } from "../db/query.ts";
import { endingOf, type TaskEnd } from "./tasks.ts";

export type FetchPurpose = Row<"usage.fetch">["purpose"];

interface FetchStart {
  readonly sourceId: number;
  readonly purpose: FetchPurpose;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly window: Window;
  readonly workspaces: number;
  readonly runId?: number | undefined;
}

type FetchOutcome = Exclude<Row<"usage.fetch">["outcome"], "running">;

/** SQL: end of fetch `f`. A fetch whose process died after its load has no end, and counts as ended after an hour. */
export const FETCH_END = sql<Date>`coalesce(f.finished_at, f.fetched_at + interval '1 hour')`;

/** Draws the number and time of a fetch in one statement, before its request is sent (rule 5 of docs/rules.md). */
export async function beginFetch(db: Database, fetch: FetchStart): Promise<FetchToken> {
  const { sourceId, purpose, meter, groupBy, window, workspaces, runId = null } = fetch;
  const { kind, tier } = METER[meter];
  const { fetchNumber, fetchedAt } = await queryOne<Row<"usage.fetch", "fetchNumber" | "fetchedAt">>(db)`
    insert into usage.fetch
      (source_id, purpose, kind, trace_tier, group_by, stride, period_start, period_end, workspaces, run_id)
    values (${sourceId}, ${purpose}, ${kind}, ${tier}, ${groupBy}, ${window.stride}, ${new Date(window.start)},
            ${new Date(window.end)}, ${workspaces}, ${runId})
    returning fetch_number as "fetchNumber", fetched_at as "fetchedAt"
  `;
  return { fetchNumber, fetchedAt: fetchedAt.getTime() };
}

export async function drawFetchToken(db: Database): Promise<FetchToken> {
  const { number, at } = await queryOne<{ number: number; at: Date }>(db)`
    select nextval('usage.fetch_number') as number, clock_timestamp() as at
  `;
  return { fetchNumber: number, fetchedAt: at.getTime() };
}

export interface FetchEnd {
  readonly outcome: FetchOutcome;
  readonly code?: string | undefined;
  readonly status?: number | undefined;
  readonly records?: number;
  readonly traces?: number;
  readonly task?: TaskEnd | undefined;
}

/** One statement ends the fetch and its task, because a round trip costs about as much as a small load. */
export async function finishFetch(
  db: Database,
  { fetchNumber }: Pick<FetchToken, "fetchNumber">,
  end: FetchEnd,
): Promise<void> {
  const { outcome, code = null, status = null, records = null, traces = null, task } = end;
  await sql`
    ${task === undefined ? sql`` : sql`with ended_task as (${endingOf(task)})`}
    update usage.fetch
    set outcome = ${outcome}, code = ${code}, status = ${status}, records = ${records}, traces = ${traces},
        finished_at = clock_timestamp(), as_of_limit = usage.as_of_limit()
    where fetch_number = ${fetchNumber}
  `.execute(db);
}

/**
 * Lifts the sequence of fetch numbers above all stored numbers, because after a restore it may be behind. One process at a time
 * does this: a second one must not set it back after the first has drawn from it. If it was behind, the digest epoch may be
 * too, so a new epoch begins and no void digest becomes valid again.
 */
export async function liftFetchNumbers(store: Store): Promise<void> {
  // The time limits of a transaction apply: without them, a host that disappears here would block all others at start-up.
  await store.transaction(async ({ db }) => {
    await sql`select pg_advisory_xact_lock(hashtext('usage-etl fetch numbers'))`.execute(db);
    const lifted = await query(db)`
      select setval('usage.fetch_number', stored.newest)
      from (
        select greatest(
          (select max(fetch_number) from usage.coverage),
          (select max(fetch_number) from usage.fetch),
          (select max(fetch_number) from usage.failure),
          (select max(fetch_number) from usage.entity_name),
          (select max(fetch_number) from usage.recent_naming)
        ) as newest
      ) stored, usage.fetch_number s
      where stored.newest > s.last_value or (stored.newest = s.last_value and not s.is_called)
    `;
    await sql`
      select setval('usage.digest_epoch', greatest(stored.newest, s.last_value) + 1)
      from (select coalesce(max(digest_epoch), 0) as newest from usage.coverage) stored, usage.digest_epoch s
      where stored.newest > s.last_value or ${lifted.length > 0}
    `.execute(db);
  });
}

/** Postgres's clock, epoch ms. No other clock decides what is due or final. */
export async function storeNow(db: Database): Promise<number> {
  const { now } = await queryOne<{ now: Date }>(db)`select ${CLOCK} as now`;
  return now.getTime();
}

/**
 * Fails as a load would: while Postgres is away or refuses writes, or its disk has no room for a megabyte. Smaller writes may
 * fit into existing pages of a full disk.
 */
export async function tryWrite({ db }: Store): Promise<void> {
  await sql`
    create temporary table room_for_a_load on commit drop as select repeat('x', 1000) as x from generate_series(1, 1000)
  `.execute(db);
}
