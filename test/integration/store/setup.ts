import pg from "pg";
import { onTestFinished } from "vitest";
import { DAY_MS, floorToGrid } from "../../../src/domain/time/stride.ts";
import { GROUPINGS } from "../../../src/domain/usage/record.ts";
import { ensureScopes } from "../../../src/store/catalog/scopes.ts";
import { registerSource } from "../../../src/store/catalog/sources.ts";
import { registerWorkspaces } from "../../../src/store/catalog/workspaces.ts";
import type { Store } from "../../../src/store/db/database.ts";
import { setupMigrated } from "../../support/store.ts";

/** The strides that the store's tests load. */
export const LOADED_STRIDES = ["hour", "day", "week"] as const;

export interface StoreBundle {
  readonly url: string;
  readonly store: Store;
  /** A connection apart from the store's pool: looks at what is committed, and ends backends. */
  readonly reader: pg.Client;
}

/** A store over a migrated database of one's own, and a reader beside it; both are gone when the test is. */
export async function setupStore(options: { maxConnections?: number } = {}): Promise<StoreBundle> {
  const { store, url } = await setupMigrated(options);
  const reader = new pg.Client({ connectionString: url, application_name: "reader", types, options: NO_JIT });
  await reader.connect();
  onTestFinished(() => reader.end());
  return { url, store, reader };
}

/** Compiling the views takes seconds where the server can; on the few rows here it pays for nothing. */
const NO_JIT = "-c jit=off";

/** Dates as their text: a Date would be shifted by the local offset. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === pg.types.builtins.DATE ? (text: string) => text : pg.types.getTypeParser(oid, format as "text"),
};

/** Empties every table and enters one source with its workspaces and scopes; returns its id. */
export async function enterSource(
  { store, reader }: StoreBundle,
  source: { workspaceIds: readonly string[]; dataStart: number },
): Promise<number> {
  // Not TRUNCATE: it would have every statement of every session planned again.
  await reader.query(EMPTIED.map((table) => `DELETE FROM usage.${table}`).join(";"));
  const sourceId = await registerSource(store, {
    slug: "default",
    baseUrl: "http://platform.test",
    dataStart: new Date(source.dataStart).toISOString().slice(0, 10),
    hourlyHours: 8 * 24,
    configurationDigest: "one",
  });
  await registerWorkspaces(store.db, { sourceId, workspaceIds: source.workspaceIds });
  await ensureScopes(store.db, { sourceId, groupings: GROUPINGS, strides: LOADED_STRIDES });
  return sourceId;
}

/** The UTC day, six before today, that the tests' data starts on: the views count days up to the real today. */
export const FIRST_DAY = floorToGrid(Date.now(), DAY_MS) - 6 * DAY_MS;

/** In an order that foreign keys let pass. */
const EMPTIED = [
  ...["hourly_record", "dated_record", "monthly_total", "coverage", "failure", "restatement"],
  ...["reconciliation_difference", "reconciled", "settlement", "late_change", "control_difference"],
  ...["control_check", "closed_total", "month_close", "alert"],
  ...["series", "scope", "workspace", "entity_name", "entity", "fetch", "source_fact", "source"],
];
