import { sql } from "kysely";
import {
  cutOut,
  type FetchStamp,
  type LoadedInterval,
  loadedIntervalsOf,
} from "../../domain/planning/coverage.ts";
import type { Window } from "../../domain/time/window.ts";
import type { AnswerCollector } from "../../domain/usage/answer.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { EtlError } from "../../errors.ts";
import { learnKeys } from "../catalog/entities.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { noteNamedAccess, splitByAccess } from "../catalog/workspace-access.ts";
import { copyRows } from "../db/copy.ts";
import type { Database, Store, Transaction } from "../db/database.ts";
import { clearFailures, noteFailures } from "./failures.ts";
import { AGE_CLASSES_HOURS, countLateChanges, type LateChange } from "./late-changes.ts";
import { type RecordTable, recordTable } from "./load-statements.ts";
import { MonthCounter } from "./month-totals.ts";
import { noteSettlement } from "./settlement.ts";

export interface WholeAnswer {
  readonly sourceId: number;
  readonly groupBy: GroupBy;
  readonly window: Window;
  readonly stamp: FetchStamp;
  /** Scope of each requested workspace, by its index. */
  readonly scopeIds: readonly number[];
  /** Proved whole by the client, without a flaw. */
  readonly answer: AnswerCollector;
  readonly settleAfterMs: number;
  /** Set on a second fetch: what the first one would delete fully, and when (rule 3). */
  readonly confirms?: { readonly fullyDeleted: readonly number[]; readonly since: number } | undefined;
}

/** Records inserted, updated, retired and unchanged by a load; `unverified` scopes were left as they are. */
export interface LoadResult {
  readonly outcome: "loaded" | "discarded" | "unconfirmed" | "unverified";
  readonly inserted: number;
  readonly updated: number;
  readonly retired: number;
  readonly unchanged: number;
  readonly restated: number;
  readonly unverified: readonly number[];
  /** Scopes that the answer would have left without any of their non-zero rows. */
  readonly fullyDeleted: readonly number[];
}

const NOTHING = {
  inserted: 0,
  updated: 0,
  retired: 0,
  unchanged: 0,
  restated: 0,
  unverified: [],
  fullyDeleted: [],
};

/**
 * What a load stores carries the instant after its locks were taken. `usage.as_of_limit` answers for no instant that a
 * load of this age may still change.
 */
const LONGEST_LOAD_MS = 15 * 60_000;

/**
 * Replaces a window's records and its coverage in one transaction (rules 2 to 6).
 *
 * Locks the scopes in key order, then compares with the coverage that the window overlaps: older than any of it (or the
 * same fetch again), the answer is discarded whole. A scope without records whose workspace nothing shows to be readable
 * is left as it is and noted as unverified. An answer that would retire every non-zero row of a scope's window comes
 * back `unconfirmed`, with nothing changed, unless a second fetch agreed.
 */
export async function loadAnswer(store: Store, whole: WholeAnswer): Promise<LoadResult> {
  const { sourceId, groupBy, answer, scopeIds, stamp } = whole;
  const series = await learnKeys(store, {
    sourceId,
    groupBy,
    scopeIds,
    keys: answer.keys,
    fetchNumber: stamp.fetchNumber,
  });
  await store.statement((db) => noteNamedAccess(db, whole));
  return store.transaction((transaction) => replaceWindow(transaction, whole, series));
}

async function replaceWindow(
  transaction: Transaction,
  whole: WholeAnswer,
  seriesOf: Int32Array,
): Promise<LoadResult> {
  const { db, client } = transaction;
  const { sourceId, groupBy, window, stamp, scopeIds, answer } = whole;
  await lockScopes(db, scopeIds);
  const instant = loadInstant(transaction);
  const overlapped = await overlappedCoverage(db, scopeIds, window);
  if (overlapped.some((fragment) => fragment.fetchNumber >= stamp.fetchNumber)) {
    return { outcome: "discarded", ...NOTHING };
  }
  const { proven, unverified } = await splitByAccess(db, {
    answer,
    scopeIds,
    stamp,
    since: whole.confirms?.since,
  });
  await noteUnverified(db, whole, unverified);
  if (proven.length === 0) return { outcome: "unverified", ...NOTHING, unverified };

  const table = recordTable(window.stride);
  const { bucketType } = table;
  const rows = answer.rows(seriesOf);
  // Records exist only inside coverage: where there is none, there is nothing to compare with.
  const isFresh = !overlapped.some((fragment) => proven.includes(fragment.scopeId));
  let counts: typeof NOTHING = NOTHING;
  let late: readonly LateChange[] = [];
  if (isFresh) {
    const months = bucketType === "date" ? new MonthCounter() : undefined;
    const inserted = await copyRows(client, { table: table.name, bucketType, rows, passing: months });
    await months?.keep(client);
    counts = { ...NOTHING, inserted };
  } else {
    await client.query(table.createStage);
    const staged = await copyRows(client, { table: table.stage, bucketType, rows });
    const changes = await findChanges(transaction, table, { window, scopeIds: proven });
    if (changes.fullyDeleted.some((scopeId) => !whole.confirms?.fullyDeleted.includes(scopeId))) {
      return { outcome: "unconfirmed", ...NOTHING, fullyDeleted: changes.fullyDeleted };
    }
    const { inserted, updated, retired } = changes;
    let restated = 0;
    if (inserted + updated + retired > 0) {
      late = await findLateChanges(transaction, table, stamp);
      restated = await applyChanges(transaction, table, { stamp, restatedAt: await instant.at() });
    }
    counts = { ...NOTHING, inserted, updated, retired, unchanged: staged - inserted - updated, restated };
  }
  const hasSettled = await replaceCoverage(db, whole, { proven, overlapped });
  await clearFailures(db, { scopeIds: proven, period: window, olderThan: stamp.fetchNumber });
  if (hasSettled && window.stride === "day")
    await noteSettlement(db, { scopeIds: proven, at: await instant.at() });
  // Last, since these few rows are shared by all loads of a source: they are locked for no longer than the commit.
  await countLateChanges(db, { sourceId, groupBy, stride: window.stride, observedAt: stamp.fetchedAt }, late);
  instant.check();
  return { outcome: "loaded", ...counts, unverified };
}

/** The one instant of a load, drawn when it is first needed, and the bound on how long before the commit that was. */
function loadInstant({ client }: Transaction) {
  // As its text: a Date would lose the microseconds, and with them the order of two loads of one millisecond.
  let drawn: { readonly at: string; readonly when: number } | undefined;
  return {
    at: async () => {
      if (drawn === undefined) {
        const when = performance.now();
        drawn = { at: (await client.query("SELECT clock_timestamp()::text AS at")).rows[0].at, when };
      }
      return drawn.at;
    },
    check: () => {
      if (drawn === undefined || performance.now() - drawn.when < LONGEST_LOAD_MS) return;
      throw new EtlError({
        code: "load_too_long",
        message: "A load took over 15 minutes; it was rolled back, and the window stays as it was.",
        next: "See what holds up Postgres (locks, disk); the window is asked for again.",
        retryable: true,
      });
    },
  };
}

type ScopeInterval = LoadedInterval & { scopeId: number };

async function overlappedCoverage(
  db: Database,
  scopeIds: readonly number[],
  window: Window,
): Promise<ScopeInterval[]> {
  const rows = await db
    .selectFrom("coverage")
    .selectAll()
    .where(sql<boolean>`scope_id = any (${[...scopeIds]}::integer[])`)
    .where("period_start", "<", new Date(window.end))
    .where("period_end", ">", new Date(window.start))
    .execute();
  return rows.map((row) => ({
    scopeId: row.scope_id,
    start: row.period_start.getTime(),
    end: row.period_end.getTime(),
    settled: row.settled,
    fetchNumber: row.fetch_number,
    fetchedAt: row.fetched_at.getTime(),
  }));
}

async function noteUnverified(db: Database, whole: WholeAnswer, scopeIds: readonly number[]): Promise<void> {
  await noteFailures(db, {
    scopeIds,
    period: whole.window,
    stamp: whole.stamp,
    state: "unverified",
    code: "workspace_unverified",
    message:
      "No records, and neither a listing nor an answer named this workspace lately: it may be unreadable.",
  });
}

/** Compares the stage with what is stored, once; the differences wait in a table of the session. */
async function findChanges(
  { client }: Transaction,
  table: RecordTable,
  within: { window: Window; scopeIds: readonly number[] },
): Promise<{ inserted: number; updated: number; retired: number; fullyDeleted: number[] }> {
  const values = [
    within.scopeIds,
    new Date(within.window.start).toISOString(),
    new Date(within.window.end).toISOString(),
  ];
  const staged = await client.query(table.stageChanges, values);
  if (staged.rowCount === 0) return { inserted: 0, updated: 0, retired: 0, fullyDeleted: [] };
  return (await client.query(table.countChanges, values)).rows[0];
}

async function findLateChanges(
  { client }: Transaction,
  table: RecordTable,
  { fetchedAt }: FetchStamp,
): Promise<LateChange[]> {
  return (await client.query(table.lateChanges, [new Date(fetchedAt).toISOString(), AGE_CLASSES_HOURS])).rows;
}

async function applyChanges(
  { client }: Transaction,
  table: RecordTable,
  { stamp, restatedAt }: { stamp: FetchStamp; restatedAt: string },
): Promise<number> {
  const restated = await client.query(table.keepRestatements, [stamp.fetchNumber, restatedAt]);
  await client.query(table.mergeChanges);
  return restated.rowCount ?? 0;
}

async function replaceCoverage(
  db: Database,
  { window, stamp, settleAfterMs }: WholeAnswer,
  { proven, overlapped }: { proven: readonly number[]; overlapped: readonly ScopeInterval[] },
): Promise<boolean> {
  const replaced = overlapped.filter((fragment) => proven.includes(fragment.scopeId));
  if (replaced.length > 0) {
    await sql`
      delete from usage.coverage c
      using unnest(
        ${replaced.map((f) => f.scopeId)}::integer[], ${replaced.map((f) => new Date(f.start))}::timestamptz[]
      ) r (scope_id, period_start)
      where c.scope_id = r.scope_id and c.period_start = r.period_start
    `.execute(db);
  }
  const fragments = [
    ...cutOut(replaced, window),
    ...proven.flatMap((scopeId) => {
      const settledBefore = replaced.filter((f) => f.scopeId === scopeId && f.settled);
      return loadedIntervalsOf(window, stamp, { settleAfterMs, settledBefore }).map((f) => ({
        ...f,
        scopeId,
      }));
    }),
  ];
  await db
    .insertInto("coverage")
    .values(
      fragments.map((fragment) => ({
        scope_id: fragment.scopeId,
        period_start: new Date(fragment.start),
        period_end: new Date(fragment.end),
        settled: fragment.settled,
        fetch_number: fragment.fetchNumber,
        fetched_at: new Date(fragment.fetchedAt),
      })),
    )
    .execute();
  return fragments.some((fragment) => fragment.settled);
}
