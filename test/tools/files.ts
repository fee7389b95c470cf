import { checkFiles, type Manifest, readManifest } from "../../src/features/export/manifest.ts";
import { openPlace, type Place } from "../../src/features/export/place.ts";
import { writeFiles } from "../../src/features/export/write-files.ts";
import { createPrices } from "../support/charges.ts";
import { now } from "../support/clock.ts";
import { addSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, setupMigrated, windowOf } from "../support/store.ts";
import { temporaryFolder } from "../support/temporary.ts";

export const DAY_MS = 86_400_000;
/** Files are written up to today, so usage begins some weeks ago. The second day is in a later month. */
export const FIRST = dayAfter(now(), -40);
export const SECOND = dayAfter(Date.parse(FIRST), 32);
export const PROJECTS = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`);
/** Few, so that many writes take seconds. */
const SOME = ["fct_usage_workspace_daily", "fct_usage_project_daily", "fct_cost_by_id_daily", "dim_project"];
export const { signal } = new AbortController();

export async function setupFiles() {
  const { store, url } = await setupMigrated();
  const sourceId = await addSource(store, { slug: "default", workspaceIds: WORKSPACES, dataStart: FIRST });
  const folder = temporaryFolder();
  await createPrices(store, [{ unitPrice: "0.0000000003" }]);
  const place = await openPlace(folder, { signal });
  const write = (options: { place?: Place; views?: string[]; keepMs?: number } = {}) =>
    writeFiles({
      store,
      signal,
      source: "default",
      release: "test",
      place,
      views: SOME,
      keepMs: DAY_MS,
      ...options,
    });
  const load = (
    groupBy: "workspace" | "project",
    day: string,
    rows: [id: string, traces: number][],
    at = 0,
  ) =>
    loadRows(store, {
      sourceId,
      workspaceId: WORKSPACES[at] as string,
      groupBy,
      window: windowOf("day", day, dayAfter(Date.parse(day), 1)),
      rows: rows.map(([id, traces]) => [day, id, traces, `name of ${id}`]),
    });
  return { url, folder, place, write, load };
}

export function dayAfter(from: number, days: number): string {
  return new Date(from + days * DAY_MS).toISOString().slice(0, 10);
}

export async function manifestOf(place: Place): Promise<Manifest> {
  const manifest = await readManifest(place, "default");
  if (manifest === undefined) throw new Error("there is no manifest");
  return manifest;
}

export async function wrongFiles(place: Place) {
  return (await checkFiles(place, await manifestOf(place), { signal })).wrong;
}
