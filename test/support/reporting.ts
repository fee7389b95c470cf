import pg from "pg";
import type { Stride } from "../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { registerWorkspaces } from "../../src/core/store/access/workspaces.ts";
import { ensureScopes } from "../../src/core/store/catalog/scopes.ts";
import { registerSource } from "../../src/core/store/catalog/sources.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { pastPooler } from "./database.ts";
import { atEnd } from "./share.ts";
import { proveAccess, setupMigrated } from "./store.ts";

export const WORKSPACES = [
  "00000000-0000-4000-8000-000000000001",
  "00000000-0000-4000-8000-000000000002",
] as const;

export async function setupSource(): Promise<{ store: Store; url: string; sourceId: number }> {
  const { store, url } = await setupMigrated();
  return { store, url, sourceId: await addSource(store, { slug: "default", workspaceIds: WORKSPACES }) };
}

/** One more source with proven access to its workspaces; hours are expected for a day back. Returns its id. */
export async function addSource(
  store: Store,
  {
    slug,
    workspaceIds,
    dataStart = "2026-03-01",
    strides = ["day", "hour"],
    ...names
  }: {
    slug: string;
    workspaceIds: readonly string[];
    dataStart?: string;
    strides?: readonly Stride[];
    providerName?: string;
    invoiceIssuerName?: string;
  },
): Promise<number> {
  const sourceId = await registerSource(store, {
    slug,
    baseUrl: "https://billing.platform.test/api",
    dataStart,
    hourlyHours: 24,
    configurationDigest: "one",
    ...names,
  });
  await registerWorkspaces(store.db, { sourceId, workspaceIds });
  await proveAccess(store, { sourceId, workspaceIds: workspaceIds });
  await ensureScopes(store.db, { sourceId, groupings: GROUPINGS, strides });
  return sourceId;
}

/** A connection until the test ends, in UTC. */
export async function connect(url: string, types: pg.CustomTypesConfig = pg.types): Promise<pg.Client> {
  const options = "-c jit=off -c timezone=UTC";
  const client = new pg.Client({ connectionString: await pastPooler(url), types, options });
  await client.connect();
  atEnd(() => client.end());
  return client;
}

export async function connectPlain(url: string, role?: string): Promise<pg.Client> {
  const client = await connect(url, { getTypeParser: () => (value: string) => value });
  if (role !== undefined) await client.query(`SET ROLE ${role}`);
  return client;
}
