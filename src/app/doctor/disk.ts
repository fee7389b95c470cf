import { statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import type { Notes } from "../../terminal/check.ts";
import { EXIT } from "../../terminal/exit.ts";

/** An export of a million rows takes about 120 MB (docs/proof.md). */
const LEAST_FREE_BYTES = 256 * 1_048_576;

/** Exports are kept in the folder for temporary files while they are read. */
export async function checkDisk(notes: Notes): Promise<void> {
  const folder = tmpdir();
  const next = "Free disk space, or set TMPDIR to another folder.";
  try {
    const { bavail, bsize } = await statfs(folder);
    const free = bavail * bsize;
    const shown = `${Math.floor(free / 1_048_576).toLocaleString("en-US")} MiB free in ${folder}`;
    if (free >= LEAST_FREE_BYTES) return notes.pass("disk", shown);
    notes.warn("disk", {
      code: "spool_failed",
      message: `Only ${shown}: too little for a large export.`,
      next,
    });
  } catch (error) {
    const message = `${folder} cannot be used for temporary files: ${(error as Error).message}.`;
    notes.fail("disk", { code: "spool_failed", message, next }, EXIT.usage);
  }
}
