import { sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/finality.ts";
import type { Window } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database, Store } from "../db/database.ts";
import { endingOf, type TaskEnd } from "../work/tasks.ts";

export type FetchPurpose = "load" | "reconcile" | "probe";

/** A request, as the ledger keeps it. */
interface FetchStart {
  readonly sourceId: number;
  readonly purpose: FetchPurpose;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly window: Window;
  readonly workspaces: number;
  readonly runId?: number | undefined;
}

type FetchOutcome = "loaded" | "discarded" | "unconfirmed" | "unverified" | "refused" | "failed" | "compared";

/** Draws the number and time of a fetch in one statement, before its request is sent (rule 5 of docs/architecture.md). */
export async function beginFetch(db: Database, fetch: FetchStart): Promise<FetchStamp> {
  const row = await db
    .insertInto("fetch")
    .values({
      source_id: fetch.sourceId,
      purpose: fetch.purpose,
      kind: METER[fetch.meter].kind,
      trace_tier: METER[fetch.meter].tier,
      group_by: fetch.groupBy,
      stride: fetch.window.stride,
      period_start: new Date(fetch.window.start),
      period_end: new Date(fetch.window.end),
      workspaces: fetch.workspaces,
      run_id: fetch.runId ?? null,
    })
    .returning(["fetch_number", "fetched_at"])
    .executeTakeFirstOrThrow();
  return { fetchNumber: row.fetch_number, fetchedAt: row.fetched_at.getTime() };
}

/** A number and time for a request without a task, such as a listing. */
export async function drawStamp(db: Database): Promise<FetchStamp> {
  const { rows } = await sql<{ number: number; at: Date }>`
    select nextval('usage.fetch_number') as number, clock_timestamp() as at
  `.execute(db);
  const { number, at } = rows[0] as { number: number; at: Date };
  return { fetchNumber: number, fetchedAt: at.getTime() };
}

/** How a fetch ended, with what it received. */
export interface FetchEnd {
  readonly outcome: FetchOutcome;
  readonly code?: string | undefined;
  /** HTTP status of a failed request. */
  readonly status?: number | undefined;
  readonly records?: number;
  readonly traces?: number;
  /** The task whose work is done with it. */
  readonly task?: TaskEnd | undefined;
}

/** Keeps how a fetch ended, and ends its task, by one statement: each round trip costs a task about as much as a small load does. */
export async function finishFetch(
  db: Database,
  { fetchNumber }: Pick<FetchStamp, "fetchNumber">,
  end: FetchEnd,
): Promise<void> {
  const { task } = end;
  await (task === undefined ? db : db.with("ended_task", (own) => endingOf(own, task)))
    .updateTable("fetch")
    .set({
      outcome: end.outcome,
      code: end.code ?? null,
      status: end.status ?? null,
      records: end.records ?? null,
      traces: end.traces ?? null,
      finished_at: sql<Date>`clock_timestamp()`,
      as_of_limit: sql<Date>`usage.as_of_limit()`,
    })
    .where("fetch_number", "=", fetchNumber)
    .execute();
}

/**
 * Lifts the sequence of fetch numbers above all stored numbers, because after a restore it may be behind. One process at
 * a time: a second one must not set the sequence back after the first has lifted it and drawn from it. Where sequences are
 * behind, the epoch of digests is behind too: a new one begins, so that no digest that was void is believed again.
 */
export async function liftFetchNumbers(store: Store): Promise<void> {
  // In a transaction, for its time limits: without them, a host that disappears here would block all others at start-up.
  await store.transaction(async ({ db }) => {
    await sql`select pg_advisory_xact_lock(hashtext('usage-etl fetch numbers'))`.execute(db);
    const { rows: lifted } = await sql`
      select setval('usage.fetch_number', stored.newest)
      from (
        select greatest(
          (select max(fetch_number) from usage.coverage),
          (select max(fetch_number) from usage.fetch),
          (select max(fetch_number) from usage.failure),
          (select max(fetch_number) from usage.entity_name)
        ) as newest
      ) stored, usage.fetch_number s
      where stored.newest > s.last_value or (stored.newest = s.last_value and not s.is_called)
    `.execute(db);
    await sql`
      select setval('usage.digest_epoch', greatest(stored.newest, s.last_value) + 1)
      from (select coalesce(max(digest_epoch), 0) as newest from usage.coverage) stored, usage.digest_epoch s
      where stored.newest > s.last_value or ${lifted.length > 0}
    `.execute(db);
  });
}

/** Postgres's clock, in epoch milliseconds. No other clock decides what is due or final. */
export async function storeNow(db: Database): Promise<number> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
  return (rows[0] as { now: Date }).now.getTime();
}

/**
 * Fails as a load would: while Postgres is away or refuses writes, or its disk has no room for a megabyte. Room in pages
 * that exist lets smaller writes succeed on a full disk.
 */
export async function tryWrite({ db }: Store): Promise<void> {
  await sql`
    create temporary table room_for_a_load on commit drop as select repeat('x', 1000) as x from generate_series(1, 1000)
  `.execute(db);
}
