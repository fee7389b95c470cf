import { EtlError } from "../../core/base/errors.ts";
import type { Session } from "../../terminal/session.ts";
import type { KeptOutside } from "../feature.ts";
import { nameOfDatabase } from "./database-name.store.ts";
import { isForeign, manifestName, readManifest } from "./manifest.ts";
import { lockFiles } from "./month-rows.store.ts";
import { openPlace, type Place } from "./place.ts";
import { onReadingConnection } from "./reading-connection.store.ts";
import { interrupted, sourceOfPath } from "./write-months.ts";

export interface UnknownFiles {
  readonly source: string;
  readonly files: number;
}

/** Sources that have files or a manifest in a place, and that the database does not know. Those of another database are left out. */
export async function unknownFiles(
  place: Place,
  { stored, database }: { stored: readonly string[]; database: string },
): Promise<UnknownFiles[]> {
  const found: UnknownFiles[] = [];
  for (const [source, paths] of await pathsBySource(place)) {
    if (stored.includes(source)) continue;
    if (!isForeign(await readManifest(place, source), database)) found.push({ source, files: paths.length });
  }
  return found;
}

/** The files of a source that is about to be forgotten. Errors: those of a place, `files_not_removed`. */
export async function filesOfSource(session: Session, source: string): Promise<KeptOutside> {
  const { config, signal } = session;
  const { address } = config.files;
  if (address === undefined) return { count: 0, what: "files", remove: async () => {} };
  const place = await openPlace(address, { signal });
  const store = await session.migratedStore();
  const isOthers = isForeign(await readManifest(place, source), await nameOfDatabase(store.db));
  const paths = isOthers ? [] : ((await pathsBySource(place)).get(source) ?? []);
  return {
    count: paths.length,
    what: `files in ${place.address}`,
    async remove() {
      const access = { store, signal, isolation: "READ COMMITTED", errorOf: interrupted } as const;
      if (isOthers) return;
      await onReadingConnection(access, async (client) => {
        if (!(await lockFiles(client, source))) throw beingWritten(source);
        // The manifest goes first, so that no reader finds a set that lacks files.
        for (const path of (await pathsBySource(place)).get(source) ?? []) await place.remove(path);
      });
    },
  };
}

/** Manifests first. */
async function pathsBySource(place: Place): Promise<Map<string, string[]>> {
  const sourceOf = (path: string) => /^manifest\/([^/]+)\.json$/.exec(path)?.[1] ?? sourceOfPath(path);
  const paths = [...(await place.list("")).keys()].filter((path) => sourceOf(path) !== undefined);
  const isManifest = (path: string) => Number(path === manifestName(sourceOf(path) ?? ""));
  paths.sort((a, b) => isManifest(b) - isManifest(a));
  return Map.groupBy(paths, (path) => sourceOf(path) ?? "");
}

function beingWritten(source: string): EtlError {
  return new EtlError({
    code: "files_not_removed",
    message: `Source ${source} is forgotten, but another process is writing its files.`,
    next: `Run \`usage-etl source forget ${source}\` again when it has ended, to remove them.`,
    retryable: true,
  });
}
