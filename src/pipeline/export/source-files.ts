import type { Store } from "../../store/db/database.ts";
import type { RunEnd } from "../../store/work/runs.ts";
import { openPlace } from "../../warehouse/place.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import { asRun } from "../runs.ts";
import { type FilesWritten, writeFiles } from "./write-files.ts";

/** What the files of a source are written with. */
export interface FilesSettings {
  /** A folder, or `s3://bucket/prefix`. */
  readonly address: string;
  readonly views: readonly string[];
  readonly keepMs: number;
  /** Its slug. */
  readonly source: string;
  readonly release: string;
  /** Whether to replace a set of another database. Default: it is refused. */
  readonly takeOver?: boolean;
}

const ENDED_ELSEWHERE: RunEnd = {
  outcome: "skipped",
  code: "files_being_written",
  message: "Another process writes the files of this source.",
};

/** Writes the files of a source as one run of the history. Undefined: another process writes them. */
export function writeSourceFiles(
  { store, sourceId }: { store: Store; sourceId: number },
  { address, ...settings }: FilesSettings,
  signal: AbortSignal,
  onProgress?: OnProgress,
): Promise<FilesWritten | undefined> {
  return asRun(
    { store, sourceId },
    "files",
    async () => {
      const place = await openPlace(address, { signal });
      return writeFiles({ store, signal, place, ...settings }, onProgress);
    },
    (written) => (written === undefined ? ENDED_ELSEWHERE : { outcome: "done" }),
  );
}
