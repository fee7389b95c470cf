import { sql } from "kysely";
import { dimensionOf } from "../../domain/usage/record.ts";
import type { ResponseCollector } from "../../domain/usage/response.ts";
import type { RunRule } from "../../domain/usage/run-rule.ts";
import { invalidateZerosOf } from "../access/invalidate-zeros.ts";
import { noteNamedAccess, splitByAccess } from "../access/workspace-access.ts";
import { noteFailures } from "../catalog/failures.ts";
import { learnKeys } from "../catalog/learn-keys.ts";
import { learnRunRules } from "../catalog/run-rules.ts";
import { clearTime, multirange } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { copyRows } from "../db/copy.ts";
import type { Store, Transaction } from "../db/database.ts";
import type { Database } from "../db/query.ts";
import { type OverlappedRow, ResponseDigests, readStored, suspectRows } from "./digests.ts";
import {
  type Changes,
  countChanges,
  countLateChanges,
  createStage,
  findLateChanges,
  keepInvalidated,
  keepRestatements,
  type LateChange,
  mergeChanges,
  type RequestedWindow,
  recordTable,
  stageChanges,
  storedIn,
} from "./load-statements.ts";
import { addToMonths } from "./month-totals.ts";
import { replaceCoverage } from "./replace-coverage.ts";

export interface Load extends RequestedWindow {
  /** When the response was received, epoch ms. Default: now, by Postgres's clock. */
  readonly receivedAt?: number;
  readonly scopeIds: readonly number[];
  readonly response: ResponseCollector;
  readonly rules?: readonly RunRule[];
  readonly settleAfterMs: number;
  /** True: does not trust digests, and compares all rows with the stored records. */
  readonly isRepair?: boolean | undefined;
  /** Set on a second fetch: deletions that the first fetch found, and when it was sent (rule 3). */
  readonly confirms?: { readonly fullyDeleted: readonly number[]; readonly since: number } | undefined;
}

export interface LoadResult extends Changes {
  /** `unconfirmed`: a full-window deletion needs confirmation by a second fetch, and nothing has changed. */
  readonly outcome: "loaded" | "discarded" | "unconfirmed" | "unverified";
  readonly unchanged: number;
  readonly restated: number;
  readonly unverified: readonly number[];
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
 * Replaces a window's records and coverage in one transaction (rules 2 to 6 of docs/rules.md). Locks the scopes in key order
 * first. If any coverage in the window is as new as the response, discards the response. A scope without records or proof of
 * access stays unchanged and is noted as unverified. If the response would retire every non-zero row of a scope in the window,
 * nothing changes and the result is `unconfirmed`, unless a first fetch found the same.
 */
export async function loadResponse(store: Store, load: Load): Promise<LoadResult> {
  const { sourceId, meter, groupBy, response, rules = [], scopeIds, fetchToken } = load;
  const seriesOf = await learnKeys(store, {
    sourceId,
    dimension: dimensionOf(meter, groupBy),
    scopeIds,
    keys: response.keys,
    fetchToken,
  });
  // Rules are learned before the load, because a final window is not requested again.
  if (groupBy === "project")
    await learnRunRules(store, { sourceId, rules, fetchNumber: fetchToken.fetchNumber });
  await store.statement((db) => noteNamedAccess(db, load));
  let earlier: LoadResult | undefined;
  return store.transaction(async (transaction) => {
    earlier = await replaceWindow(transaction, load, { seriesOf, earlier });
    return earlier;
  });
}

async function replaceWindow(
  transaction: Transaction,
  load: Load,
  { seriesOf, earlier }: { seriesOf: readonly number[]; earlier: LoadResult | undefined },
): Promise<LoadResult> {
  const { db } = transaction;
  const { window, fetchToken, scopeIds, response } = load;
  const locked = await lockScopes(db, scopeIds);
  // A forgotten workspace has lost its series too, so the records would belong to nothing.
  if (locked.length < new Set(scopeIds).size) return { outcome: "discarded", ...NOTHING };
  const { epoch, overlapped, ...stored } = await readStored(db, load);
  // An earlier run of this transaction has committed, but its outcome was lost.
  if (earlier !== undefined && overlapped.some((row) => row.fetch_number === fetchToken.fetchNumber)) {
    return earlier;
  }
  if (overlapped.some((row) => row.fetch_number >= fetchToken.fetchNumber)) {
    return { outcome: "discarded", ...NOTHING };
  }
  if (stored.isBeforeDataStart) return { outcome: "discarded", ...NOTHING };
  const since = load.confirms?.since;
  const { proven, unverified } = await splitByAccess(db, { response, scopeIds, fetchToken, since });
  if (unverified.length > 0) await noteUnverified(db, load, unverified);
  if (proven.length === 0) return { outcome: "unverified", ...NOTHING, unverified };

  const digests = new ResponseDigests(window, scopeIds);
  const replaced = overlapped.filter((row) => proven.includes(row.scope_id));
  const hasInvalidated = proven.some((id) => stored.withdrawn.includes(id));
  const replacing: Replacing = { seriesOf, proven, replaced, hasInvalidated, digests };
  // Records exist only inside coverage: without coverage there is nothing to compare with.
  const isFirst = replaced.length === 0 && !hasInvalidated;
  const done = await (isFirst ? storeFirst : storeChanges)(transaction, load, replacing);
  if ("fullyDeleted" in done) {
    return { outcome: "unconfirmed", ...NOTHING, fullyDeleted: done.fullyDeleted };
  }
  const { isKnown, late, ...counts } = done;
  await replaceCoverage(db, load, { scopeIds: proven, replaced, digests, epoch, isKnown });
  const failed = proven.filter((id) => stored.failed.includes(id));
  if (failed.length > 0)
    await clearTime(db, "failure", { scopeIds: failed, period: window, olderThan: fetchToken.fetchNumber });
  // Comes last: all loads of a source share these few rows, which are locked until the commit.
  await countLateChanges(db, load, late);
  return { outcome: "loaded", ...NOTHING, ...counts, unverified };
}

/** Notes scopes without proof of access. Views no longer show their zeros, but still show their records. */
async function noteUnverified(
  db: Database,
  { window, fetchToken }: Load,
  scopeIds: readonly number[],
): Promise<void> {
  await noteFailures(db, {
    scopeIds,
    period: window,
    fetchToken,
    state: "unverified",
    code: "workspace_unverified",
    message:
      "The response has no records, and no recent response named this workspace: the key may have no access to it.",
  });
  const time = sql`select unnest(${scopeIds}::integer[]), ${multirange(window)}, '-infinity'::timestamptz`;
  await invalidateZerosOf(db, { time, noticedAt: fetchToken.fetchedAt });
}

interface Replacing {
  readonly seriesOf: readonly number[];
  readonly proven: readonly number[];
  readonly replaced: readonly OverlappedRow[];
  readonly hasInvalidated: boolean;
  readonly digests: ResponseDigests;
}

type Counts = Omit<LoadResult, "outcome" | "unverified" | "fullyDeleted">;

interface Stored extends Partial<Counts> {
  readonly isKnown: boolean;
  readonly late: readonly LateChange[];
}

/** The window has no stored rows, so the response's rows go straight into the table. */
async function storeFirst(
  { db, client }: Transaction,
  { window, response }: Load,
  { seriesOf, proven, digests }: Replacing,
): Promise<Stored> {
  const table = recordTable(window.stride);
  const { name, bucketType } = table;
  const rows = response.rows(seriesOf);
  const inserted = await copyRows(client, { table: name, bucketType, passing: digests, rows });
  // Without coverage there were no records, so all that are stored now are new.
  if (inserted > 0 && bucketType === "date")
    await addToMonths(db, storedIn(table, { scopeIds: proven, period: window }));
  return { inserted, isKnown: false, late: [] };
}

/** `fullyDeleted`: scopes that would lose all records, which a second fetch must confirm. */
async function storeChanges(
  transaction: Transaction,
  load: Load,
  replacing: Replacing,
): Promise<Stored | Pick<LoadResult, "fullyDeleted">> {
  const { db } = transaction;
  const { window, fetchToken, response, confirms } = load;
  const { seriesOf, digests } = replacing;
  const table = recordTable(window.stride);
  for (const row of response.rows(seriesOf)) digests.add(row);
  const { isKnown, fullyDeleted, ...changes } = await findChanges(transaction, load, replacing);
  if (fullyDeleted.some((scopeId) => !confirms?.fullyDeleted.includes(scopeId))) return { fullyDeleted };
  const { inserted, updated, retired } = changes;
  const unchanged = digests.rows - inserted - updated;
  if (inserted + updated + retired === 0) return { unchanged, isKnown, late: [] };
  const late = await findLateChanges(db, table, fetchToken);
  const ofStored = await keepRestatements(db, table, fetchToken);
  const ofInvalidated = replacing.hasInvalidated ? await keepInvalidated(db, table, fetchToken) : 0;
  await mergeChanges(db, table);
  return { ...changes, unchanged, restated: ofStored + ofInvalidated, isKnown, late };
}

const NO_CHANGES: Changes = { inserted: 0, updated: 0, retired: 0, fullyDeleted: [] };

/** Stages the rows whose digests differ from the stored ones, and compares only these with the stored records. */
async function findChanges(
  { db, client }: Transaction,
  { window, meter, scopeIds, response, isRepair = false }: Load,
  { seriesOf, proven, replaced, digests }: Replacing,
): Promise<Changes & { readonly isKnown: boolean }> {
  const suspect = digests.suspect(proven, isRepair ? [] : replaced);
  if (suspect === undefined) return { ...NO_CHANGES, isKnown: true };
  const table = recordTable(window.stride);
  await createStage(db, table);
  await copyRows(client, {
    table: table.stage,
    bucketType: table.bucketType,
    rows: suspectRows(response.rows(seriesOf), suspect, scopeIds),
  });
  if ((await stageChanges(db, table, suspect)) === 0) return { ...NO_CHANGES, isKnown: false };
  const zerosDelete = meter !== "traces";
  const changes = await countChanges(db, table, { scopeIds: proven, period: window, zerosDelete });
  return { ...changes, isKnown: false };
}
