import { systemClock } from "../../core/base/clock.ts";
import type { Config } from "../../core/base/config.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { type Notes, noteProxy, problemOf } from "../../terminal/check.ts";
import type { CheckedSource } from "../feature.ts";
import { nameOfDatabase } from "./database-name.store.ts";
import { foreignFiles, isForeign, readManifest } from "./manifest.ts";
import { openPlace } from "./place.ts";

/** Files are written every night. */
const LATE_AFTER_MS = 1.5 * DAY_MS;

export async function checkFilesPlace(
  { files }: Config,
  { source: { slug }, store, signal }: CheckedSource,
  notes: Notes,
): Promise<void> {
  if (files.address === undefined) return;
  try {
    const place = await openPlace(files.address, { signal });
    if (place.endpoint !== undefined) noteProxy(place.endpoint, notes);
    const manifest = await readManifest(place, slug);
    const next = "`usage-etl runs list --kind files` shows why. Write them now: `usage-etl files write`";
    if (manifest === undefined) {
      const message = `No files were written to ${place.address} yet.`;
      notes.warn("files", { code: "files_manifest_missing", message, next });
    } else if (store !== undefined && isForeign(manifest, await nameOfDatabase(store.db))) {
      notes.fail("files", foreignFiles(place, manifest));
    } else if (Date.parse(manifest.as_of) < systemClock.now() - LATE_AFTER_MS) {
      const message = `The files in ${place.address} are as of ${manifest.as_of}.`;
      notes.warn("files", { code: "files_late", message, next });
    } else {
      notes.pass("files", `${place.address}, as of ${manifest.as_of}`);
    }
  } catch (error) {
    notes.fail("files", problemOf(error));
  }
}
