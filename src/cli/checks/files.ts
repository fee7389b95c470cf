import { statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import type { Config } from "../../config/config.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import { foreignFiles, isForeign, readManifest } from "../../pipeline/export/manifest.ts";
import type { Store } from "../../store/db/database.ts";
import { nameOfDatabase } from "../../store/db/database-name.ts";
import { openPlace } from "../../warehouse/place.ts";
import { EXIT } from "../session/exit.ts";
import { type Notes, problemOf } from "./check.ts";

/** They are written nightly. */
const LATE_AFTER_MS = 1.5 * DAY_MS;

/** Checks nothing if no place for files is configured. */
export async function checkFilesPlace(
  { files }: Config,
  given: { source: string; store: Store | undefined; now: number; signal: AbortSignal },
  notes: Notes,
): Promise<void> {
  if (files.address === undefined) return;
  const { source, store, now, signal } = given;
  try {
    const place = await openPlace(files.address, { signal });
    const manifest = await readManifest(place, source);
    const next = "`usage-etl runs list --kind files` shows why. Write them now: `usage-etl files write`";
    if (manifest === undefined) {
      const message = `No files were written to ${place.address} yet.`;
      notes.warn("files", { code: "files_manifest_missing", message, next });
    } else if (store !== undefined && isForeign(manifest, await nameOfDatabase(store.db))) {
      notes.fail("files", foreignFiles(place, manifest));
    } else if (Date.parse(manifest.as_of) < now - LATE_AFTER_MS) {
      const message = `The files in ${place.address} are as of ${manifest.as_of}.`;
      notes.warn("files", { code: "files_late", message, next });
    } else {
      notes.pass("files", `${place.address}, as of ${manifest.as_of}`);
    }
  } catch (error) {
    notes.fail("files", problemOf(error));
  }
}

/** An export of a million rows takes about 120 MB (docs/proof.md). */
const LEAST_FREE_BYTES = 256 * 1_048_576;

/** Exports are kept in the folder for temporary files while they are read. */
export async function checkDisk(notes: Notes): Promise<void> {
  const folder = tmpdir();
  const next = "Make room, or set TMPDIR to another folder.";
  try {
    const { bavail, bsize } = await statfs(folder);
    const free = bavail * bsize;
    const shown = `${Math.floor(free / 1_048_576).toLocaleString("en-US")} MiB free in ${folder}`;
    if (free >= LEAST_FREE_BYTES) return notes.pass("disk", shown);
    notes.warn("disk", { code: "spool_failed", message: `Only ${shown}: a large export may not fit.`, next });
  } catch (error) {
    const message = `${folder} cannot be used for temporary files: ${(error as Error).message}.`;
    notes.fail("disk", { code: "spool_failed", message, next }, EXIT.usage);
  }
}
