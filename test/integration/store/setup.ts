import pg from "pg";
import { onTestFinished } from "vitest";
import { DAY_MS, floorToGrid } from "../../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../../src/core/domain/usage/record.ts";
import { registerWorkspaces } from "../../../src/core/store/access/workspaces.ts";
import { ensureScopes } from "../../../src/core/store/catalog/scopes.ts";
import { registerSource } from "../../../src/core/store/catalog/sources.ts";
import type { Store } from "../../../src/core/store/db/database.ts";
import { now } from "../../support/clock.ts";
import { pastPooler } from "../../support/database.ts";
import { proveAccess, setupMigrated } from "../../support/store.ts";
import { expectTrueState } from "./state.ts";

export const LOADED_STRIDES = ["hour", "day", "week"] as const;

export interface StoreBundle {
  readonly url: string;
  readonly store: Store;
  readonly reader: pg.Client;
}

/**
 * A store over a new migrated database, and a reader beside it. Both are closed at the end of the test. By then the stored state of
 * all time has to be what the rules say, whatever the test did. `isStateTrue`: false for a test that enters what no load would.
 */
export async function setupStore({
  isStateTrue = true,
  ...options
}: {
  maxConnections?: number;
  isStateTrue?: boolean;
} = {}): Promise<StoreBundle> {
  const { store, url } = await setupMigrated(options);
  const reader = new pg.Client({
    connectionString: await pastPooler(url),
    application_name: "reader",
    types,
    options: NO_JIT,
  });
  await reader.connect();
  if (isStateTrue) await reader.query(PRICES);
  onTestFinished(async ({ task }) => {
    try {
      if (isStateTrue && task.result?.state === "pass") await expectTrueState(reader);
    } finally {
      await reader.end();
    }
  });
  return { url, store, reader };
}

export async function setupSource(
  source: { workspaceIds: readonly string[]; dataStart: number },
  options: { isStateTrue?: boolean } = {},
): Promise<StoreBundle & { sourceId: number }> {
  const bundle = await setupStore(options);
  const sourceId = await createSource(bundle, source);
  const { workspaceIds: requested } = source;
  await proveAccess(bundle.store, { sourceId, workspaceIds: requested });
  return { ...bundle, sourceId };
}

/** So that all usage costs something: tiers that all workspaces fill, tiers of each by itself, and a price without. */
const PRICES = `
  INSERT INTO usage.sku (name, measure) VALUES ('all', 'traces'), ('each', 'traces'), ('long', 'longlived'), ('runs', 'agent_runs');
  INSERT INTO usage.price (sku_id, unit_price, currency, valid_from, counted_over)
  SELECT sku_id, 0.5, 'USD', '2020-01-01', CASE name WHEN 'each' THEN 'workspace' ELSE 'source' END FROM usage.sku;
  INSERT INTO usage.price_tier
  SELECT price_id, 3, 0.25 FROM usage.price JOIN usage.sku USING (sku_id) WHERE name <> 'long'`;

const NO_JIT = "-c jit=off";

/** Dates as text: a Date would be shifted by the local offset. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === pg.types.builtins.DATE ? (text: string) => text : pg.types.getTypeParser(oid, format as "text"),
};

/** Empties every table and enters one source with its workspaces and scopes. Returns the source's id. */
export async function createSource(
  { store, reader }: StoreBundle,
  source: { workspaceIds: readonly string[]; dataStart: number },
): Promise<number> {
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

export const FIRST_DAY = floorToGrid(now(), DAY_MS) - 6 * DAY_MS;

const EMPTIED = [
  "hourly_record",
  "dated_record",
  "monthly_total",
  "coverage",
  "failure",
  "restatement",
  "difference",
  "reconciled",
  "became_final",
  "late_change",
  "matched_total",
  "control_check",
  "closed_total",
  "close",
  "notification",
  "withdrawal",
  "charge",
  "series",
  "scope",
  "workspace",
  "entity_name",
  "recent_naming",
  "entity",
  "fetch",
  "source_fact",
  "source_meter",
  "source",
];
