import { sql } from "kysely";
import type { FetchToken } from "../../src/core/domain/coverage/finality.ts";
import type { Window } from "../../src/core/domain/time/window.ts";
import { METER, type Meter } from "../../src/core/domain/usage/meter.ts";
import type { GroupBy, UsageRecord } from "../../src/core/domain/usage/record.ts";
import { ResponseCollector } from "../../src/core/domain/usage/response.ts";
import { noteAccess } from "../../src/core/store/access/workspace-access.ts";
import { scopesOf } from "../../src/core/store/catalog/scopes.ts";
import { openStore, type Store } from "../../src/core/store/db/database.ts";
import { type LoadResult, loadResponse } from "../../src/core/store/load/load.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { drawFetchToken, storeNow } from "../../src/core/store/work/fetch-ledger.ts";
import { createTestDatabase, ensureTemplate } from "./database.ts";
import { poll } from "./poll.ts";
import { atEnd } from "./share.ts";

export async function buildMigrated(url: string): Promise<void> {
  const store = openStore({ url });
  await migratePublished(store);
  await store.close();
}

export async function migratePublished(store: Store): Promise<void> {
  await migrate(store);
  // Only a superuser may publish all tables.
  const { rows } = await sql`select from pg_roles where rolname = current_user and rolsuper`.execute(
    store.db,
  );
  if (rows.length > 0) await sql`create publication cdc for all tables`.execute(store.db);
}

export async function setupMigrated(
  options: { maxConnections?: number } = {},
): Promise<{ store: Store; url: string }> {
  const { store, url, drop } = await openMigrated(options);
  atEnd(drop);
  return { store, url };
}

export async function openMigrated(
  options: { maxConnections?: number } = {},
): Promise<{ store: Store; url: string; drop: () => Promise<void> }> {
  await ensureTemplate("migrated", buildMigrated);
  const database = await createTestDatabase({ template: "migrated" });
  const store = openStore({ url: database.url, ...options });
  const drop = async () => {
    await store.close();
    await database.drop();
  };
  return { store, url: database.url, drop };
}

export async function proveAccess(
  store: Store,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  await noteAccess(store, {
    sourceId,
    requested: workspaceIds,
    named: workspaceIds,
    at: await storeNow(store.db),
  });
}

export type ResponseRow = readonly [bucket: string, id: string, traces: number, name?: string];

export type DeploymentRow = readonly [
  bucket: string,
  id: string,
  measures: readonly [nodes: number, runs: number, uptime: number],
  name?: string,
];

interface GivenResponse {
  sourceId: number;
  groupBy: GroupBy;
  workspaceId: string;
  window: Window;
  settleAfterMs?: number;
  fetchToken?: FetchToken;
}

/** Loads a whole response for one workspace, as if it had just been fetched, or under the number and time that are given. */
export async function loadRows(
  store: Store,
  given: GivenResponse & { meter?: Meter; rows: readonly ResponseRow[] },
): Promise<LoadResult> {
  const records = given.rows.map(([bucket, dimensionId, traces, name]) => ({
    bucketStart: Date.parse(bucket),
    workspaceId: null,
    dimensionId,
    dimensionName: name ?? null,
    traces,
  }));
  return loadRecords(store, { ...given, meter: given.meter ?? "traces" }, records);
}

export async function loadDeploymentRows(
  store: Store,
  given: GivenResponse & {
    meter?: "deployments" | "sandboxes" | "evaluators";
    rows: readonly DeploymentRow[];
  },
): Promise<LoadResult> {
  const { meter = "deployments" } = given;
  const records = given.rows.flatMap(([bucket, dimensionId, measures, name]) =>
    METER[meter].measures.map((measure, at) => ({
      bucketStart: Date.parse(bucket),
      workspaceId: null,
      dimensionId,
      dimensionName: name ?? null,
      traces: measures[at] ?? 0,
      measure,
    })),
  );
  return loadRecords(store, { ...given, meter }, records);
}

async function loadRecords(
  store: Store,
  given: GivenResponse & { meter: Meter },
  records: readonly UsageRecord[],
): Promise<LoadResult> {
  const { sourceId, meter, groupBy, workspaceId, window, settleAfterMs = 0 } = given;
  const response = new ResponseCollector({ window, groupBy, workspaceIds: [workspaceId] });
  response.add(records);
  const scopes = { sourceId, meter, groupBy, stride: window.stride, workspaceIds: [workspaceId] };
  return loadResponse(store, {
    sourceId,
    meter,
    groupBy,
    window,
    response,
    settleAfterMs,
    fetchToken: given.fetchToken ?? (await drawFetchToken(store.db)),
    scopeIds: await scopesOf(store.db, scopes),
  });
}

export function windowOf(stride: Window["stride"], from: string, to: string): Window {
  return { stride, start: Date.parse(from), end: Date.parse(to) };
}

export async function lockWaits({ db }: Store): Promise<number> {
  const { rows } = await sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
  `.execute(db);
  return rows.length;
}

export async function untilLockWaits(store: Store, sessions = 1): Promise<void> {
  await poll(async () => (await lockWaits(store)) >= sessions);
}
