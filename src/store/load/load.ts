import { sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/coverage.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval, Window } from "../../domain/time/window.ts";
import type { AnswerCollector, AnswerRow } from "../../domain/usage/answer.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { dimensionOf, type GroupBy } from "../../domain/usage/record.ts";
import { isBeforeDataStart } from "../catalog/data-start.ts";
import { learnKeys } from "../catalog/learn-keys.ts";
import { multirange, overlaps } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { withdrawZeros } from "../catalog/withdraw-zeros.ts";
import { noteNamedAccess, splitByAccess } from "../catalog/workspace-access.ts";
import { copyRows } from "../db/copy.ts";
import type { Database, Store, Transaction } from "../db/database.ts";
import { AnswerDigests, readOverlapped, type Suspect, suspectRows } from "./digests.ts";
import { clearFailures, noteFailures } from "./failures.ts";
import { type RecordTable, recordTable } from "./load-statements.ts";
import { MonthCounter } from "./month-totals.ts";
import { noteFinalDays, replaceCoverage } from "./replace-coverage.ts";

export interface WholeAnswer {
  readonly sourceId: number;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly window: Window;
  readonly stamp: FetchStamp;
  /** When it had come, epoch milliseconds; default: now, by Postgres's clock. */
  readonly receivedAt?: number;
  /** Scope of each requested workspace, by its index. */
  readonly scopeIds: readonly number[];
  /** The client has proven it whole and without a flaw. */
  readonly answer: AnswerCollector;
  readonly settleAfterMs: number;
  /** A repair: digests are not believed, so all is compared with what is stored. */
  readonly isRepair?: boolean | undefined;
  /** Set on a second fetch: what the first one would have deleted fully, and when it was sent (rule 3). */
  readonly confirms?: { readonly fullyDeleted: readonly number[]; readonly since: number } | undefined;
}

export interface LoadResult {
  /** `unconfirmed`: a full-window deletion needs confirmation by a second fetch, and nothing has changed. */
  readonly outcome: "loaded" | "discarded" | "unconfirmed" | "unverified";
  readonly inserted: number;
  readonly updated: number;
  readonly retired: number;
  readonly unchanged: number;
  readonly restated: number;
  /** Scopes left as they are, without proof of access. */
  readonly unverified: readonly number[];
  /** Scopes that would have lost all their non-zero rows of the window; of other meters than traces, to zeros too. */
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
 * Replaces a window's records and its coverage in one transaction (rules 2 to 6 of docs/architecture.md).
 *
 * It locks the scopes in key order, then reads the coverage that the window overlaps. If any of it is as new as the
 * answer, the whole answer is discarded. A scope that has no records and no proof of access stays as it is and is noted as
 * unverified. If the answer would retire every non-zero row that a scope has in the window, the result is `unconfirmed`
 * and nothing changes, unless a first fetch already found the same.
 */
export async function loadAnswer(store: Store, whole: WholeAnswer): Promise<LoadResult> {
  const { sourceId, meter, groupBy, answer, scopeIds, stamp } = whole;
  const series = await learnKeys(store, {
    sourceId,
    dimension: dimensionOf(meter, groupBy),
    scopeIds,
    keys: answer.keys,
    fetchNumber: stamp.fetchNumber,
  });
  await store.statement((db) => noteNamedAccess(db, whole));
  let earlier: LoadResult | undefined;
  return store.transaction(async (transaction) => {
    earlier = await replaceWindow(transaction, whole, series, earlier);
    return earlier;
  });
}

async function replaceWindow(
  transaction: Transaction,
  whole: WholeAnswer,
  seriesOf: Int32Array,
  earlier: LoadResult | undefined,
): Promise<LoadResult> {
  const { db, client } = transaction;
  const { sourceId, groupBy, window, stamp, scopeIds, answer } = whole;
  const locked = await lockScopes(db, scopeIds);
  // A workspace was forgotten meanwhile: its series are gone too, so the records would belong to nothing.
  if (locked.length < new Set(scopeIds).size) return { outcome: "discarded", ...NOTHING };
  const { epoch, overlapped } = await readOverlapped(db, { scopeIds, period: window });
  // Its own number: an earlier run of this transaction has committed, and its answer was lost.
  if (earlier !== undefined && overlapped.some((row) => row.fetch_number === stamp.fetchNumber)) {
    return earlier;
  }
  if (overlapped.some((row) => row.fetch_number >= stamp.fetchNumber)) {
    return { outcome: "discarded", ...NOTHING };
  }
  if (await isBeforeDataStart(db, whole)) return { outcome: "discarded", ...NOTHING };
  const since = whole.confirms?.since;
  const { proven, unverified } = await splitByAccess(db, { answer, scopeIds, stamp, since });
  if (unverified.length > 0) await noteUnverified(db, whole, unverified);
  if (proven.length === 0) return { outcome: "unverified", ...NOTHING, unverified };

  const table = recordTable(window.stride);
  const { bucketType } = table;
  const digests = new AnswerDigests(window, scopeIds);
  const replaced = overlapped.filter((row) => proven.includes(row.scope_id));
  const { rows: withdrawn } = await sql`
    select from usage.withdrawal where final and ${overlaps({ scopeIds: proven, period: window })} limit 1
  `.execute(db);
  let isKnown = false;
  let counts: typeof NOTHING = NOTHING;
  let late: readonly LateChange[] = [];
  // Records exist only inside coverage: without coverage there is nothing to compare with.
  if (replaced.length === 0 && withdrawn.length === 0) {
    const months = bucketType === "date" ? new MonthCounter() : undefined;
    const passing = {
      add(row: AnswerRow) {
        digests.add(row);
        months?.add(row);
      },
    };
    const inserted = await copyRows(client, {
      ...{ table: table.name, bucketType, passing },
      rows: answer.rows(seriesOf),
    });
    await months?.keep(client);
    counts = { ...NOTHING, inserted };
  } else {
    for (const row of answer.rows(seriesOf)) digests.add(row);
    const suspect = digests.suspect(proven, whole.isRepair ? [] : replaced);
    isKnown = suspect === undefined;
    const changes =
      suspect === undefined
        ? NO_CHANGES
        : await findChanges(transaction, table, {
            ...{ window, scopeIds: proven, zerosDelete: whole.meter !== "traces", suspect },
            rows: suspectRows(answer.rows(seriesOf), suspect, scopeIds),
          });
    if (changes.fullyDeleted.some((scopeId) => !whole.confirms?.fullyDeleted.includes(scopeId))) {
      return { outcome: "unconfirmed", ...NOTHING, fullyDeleted: changes.fullyDeleted };
    }
    const { inserted, updated, retired } = changes;
    let restated = 0;
    if (inserted + updated + retired > 0) {
      late = await findLateChanges(transaction, table, stamp);
      restated = await applyChanges(transaction, table, { stamp, hasWithdrawn: withdrawn.length > 0 });
    }
    const unchanged = digests.rows - inserted - updated;
    counts = { ...NOTHING, inserted, updated, retired, unchanged, restated };
  }
  const hasFinal = await replaceCoverage(db, whole, {
    scopeIds: proven,
    replaced,
    digests,
    epoch,
    isKnown,
  });
  await clearFailures(db, { scopeIds: proven, period: window, olderThan: stamp.fetchNumber });
  if (hasFinal && window.stride === "day") await noteFinalDays(db, proven);
  // Last: all loads of a source share these few rows, so they are locked only until the commit.
  await countLateChanges(db, { sourceId, groupBy, stride: window.stride, observedAt: stamp.fetchedAt }, late);
  return { outcome: "loaded", ...counts, unverified };
}

/** Keeps that an answer proved nothing about these scopes. Their zeros are no longer shown; their records are. */
async function noteUnverified(
  db: Database,
  { window, stamp }: WholeAnswer,
  scopeIds: readonly number[],
): Promise<void> {
  await noteFailures(db, {
    scopeIds,
    period: window,
    stamp,
    state: "unverified",
    code: "workspace_unverified",
    message:
      "The answer has no records, and no recent listing or answer named this workspace: the key may have no access to it.",
  });
  const time = sql`select unnest(${[...scopeIds]}::integer[]), ${multirange(window)}, '-infinity'::timestamptz`;
  await withdrawZeros(db, { time, noticedAt: stamp.fetchedAt });
}

interface Changes {
  readonly inserted: number;
  readonly updated: number;
  readonly retired: number;
  readonly fullyDeleted: readonly number[];
}

const NO_CHANGES: Changes = { inserted: 0, updated: 0, retired: 0, fullyDeleted: [] };

/** Stages the suspect rows and compares them with the stored records once. The differences wait in a table of the session. */
async function findChanges(
  { client }: Transaction,
  table: RecordTable,
  within: {
    readonly window: Window;
    readonly scopeIds: readonly number[];
    readonly zerosDelete: boolean;
    readonly suspect: Suspect;
    readonly rows: Iterable<AnswerRow>;
  },
): Promise<Changes> {
  const { window, scopeIds, zerosDelete, suspect, rows } = within;
  const valuesOf = (scopes: readonly number[], { start, end }: Interval) => [
    scopes,
    new Date(start).toISOString(),
    new Date(end).toISOString(),
  ];
  await client.query(table.createStage);
  await copyRows(client, { table: table.stage, bucketType: table.bucketType, rows });
  const changed = await client.query(table.stageChanges, valuesOf(suspect.scopeIds, suspect.period));
  if (changed.rowCount === 0) return NO_CHANGES;
  return (await client.query(table.countChanges, [...valuesOf(scopeIds, window), zerosDelete])).rows[0];
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
  { stamp, hasWithdrawn }: { stamp: FetchStamp; hasWithdrawn: boolean },
): Promise<number> {
  const values = [stamp.fetchNumber];
  const { rowCount: ofStored } = await client.query(table.keepRestatements, values);
  const ofWithdrawn = hasWithdrawn ? (await client.query(table.keepWithdrawn, values)).rowCount : 0;
  await client.query(table.mergeChanges);
  return (ofStored ?? 0) + (ofWithdrawn ?? 0);
}

/** Upper ends of the age classes, in hours. The last class takes everything older. */
export const AGE_CLASSES_HOURS: readonly number[] = [
  ...[1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 120, 144, 168, 240, 336, 504, 744, 1488, 2232, 8784, 876_000],
];

/** The late changes of one age class, separately for final and provisional buckets. */
export interface LateChange {
  readonly was_final: boolean;
  readonly age_hours: number;
  readonly changes: number;
  readonly traces_moved: number;
}

/** Adds to the distribution of ages, in key order, so that concurrent loads never wait for each other in a circle. */
export async function countLateChanges(
  db: Database,
  where: { sourceId: number; groupBy: GroupBy; stride: Stride; observedAt: number },
  late: readonly LateChange[],
): Promise<void> {
  if (late.length === 0) return;
  await sql`
    insert into usage.late_change as l
      (source_id, observed_on, group_by, stride, was_final, age_hours, changes, traces_moved)
    select ${where.sourceId}, (${new Date(where.observedAt)}::timestamptz at time zone 'UTC')::date, ${where.groupBy},
           ${where.stride}, n.*
    from json_to_recordset(${JSON.stringify(late)}::json)
      n (was_final boolean, age_hours integer, changes bigint, traces_moved bigint)
    order by n.was_final, n.age_hours
    on conflict (source_id, observed_on, group_by, stride, was_final, age_hours) do update
    set changes = l.changes + excluded.changes, traces_moved = l.traces_moved + excluded.traces_moved
  `.execute(db);
}
