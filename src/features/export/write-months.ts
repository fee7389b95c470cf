import { createHash } from "node:crypto";
import PQueue from "p-queue";
import type pg from "pg";
import { type EtlError, reasonOf } from "../../core/base/errors.ts";
import { loadOptional } from "../../core/base/optional.ts";
import { FORMAT, type ManifestFile } from "./manifest.ts";
import { type Dataset, orderOf, type Range, type Rows, readRows } from "./month-rows.store.ts";
import type { Place, PlaceFile } from "./place.ts";
import { interruption } from "./reading-connection.store.ts";

const ENDING_AT_ONCE = 3;

export interface PlannedFile extends Rows {
  readonly path: string;
  /** Null: all rows of a view without days, or no row. */
  readonly month: string | null;
  readonly range: Range;
}

/** The name changes with the rows and with the types of their columns, so a file never changes under its name. */
export function pathOf(
  dataset: Dataset,
  source: string,
  { month, rows, digest }: Rows & { readonly month: string | null },
): string {
  const { view, columns } = dataset;
  const types = columns.map(({ name, type, precision, scale }) => [name, type, precision, scale]);
  const shape = [FORMAT, types, orderOf(dataset), rows, digest];
  const name = createHash("sha256").update(JSON.stringify(shape)).digest("hex").slice(0, 32);
  return `${view.name}/${source}/${month === null ? "" : `${month}-`}${name}.parquet`;
}

const OURS = /^[a-z0-9_]+\/([^/]+)\/(?:\d{4}-\d\d-)?[0-9a-f]{32}\.parquet$/;

/** Undefined: not a file that we wrote. */
export function sourceOfPath(path: string): string | undefined {
  return OURS.exec(path)?.[1];
}

export async function writeMonths(
  client: pg.Client,
  { place, source, signal }: { place: Place; source: string; signal: AbortSignal },
  { dataset, changed, asOf }: { dataset: Dataset; changed: readonly PlannedFile[]; asOf: string },
): Promise<ManifestFile[]> {
  if (changed.length === 0) return [];
  const { createParquet } = await loadOptional(() => import("./parquet.ts"));
  const files: ManifestFile[] = [];
  // A bucket takes tens of milliseconds for the smallest file, and a file for it is in memory.
  const ending = new PQueue({ concurrency: ENDING_AT_ONCE });
  const failures: unknown[] = [];
  const commit = async (file: PlaceFile) => {
    await ending.onSizeLessThan(1);
    if (failures.length > 0) throw failures[0];
    void ending.add(async () => {
      try {
        await file.commit();
      } catch (error) {
        failures.push(error);
        await file.abandon();
      }
    });
  };
  let open: PlaceFile | undefined;
  try {
    for (const { path, month, range, rows, digest, sums, isFinal, coverage } of changed) {
      const file = await place.create(path);
      open = file;
      const hash = createHash("sha256");
      let bytes = 0;
      const parquet = createParquet(
        dataset.columns,
        async (chunk) => {
          bytes += chunk.length;
          hash.update(chunk);
          await file.write(chunk);
        },
        { sortedBy: orderOf(dataset) },
      );
      if (rows > 0) await readRows(client, dataset, { source, range, signal }, parquet.add);
      // Both statements have one snapshot, so the numbers must agree.
      if ((await parquet.end()) !== rows)
        throw interrupted(new Error(`${path} has other rows than were counted`));
      // If this throws, `finally` abandons the file.
      await commit(file);
      open = undefined;
      files.push({
        path,
        month,
        rows,
        bytes,
        sha256: hash.digest("hex"),
        digest,
        sums,
        is_final: isFinal,
        coverage,
        written_at: asOf,
      });
    }
    await ending.onIdle();
    if (failures.length > 0) throw failures[0];
    return files;
  } finally {
    await open?.abandon();
    await ending.onIdle();
  }
}

export function interrupted(cause: unknown): EtlError {
  return interruption({
    code: "files_interrupted",
    message: `Writing the files was interrupted: ${reasonOf(cause)}. The files of the last manifest are complete.`,
    next: "Do nothing: the next run writes the missing files.",
    retryable: true,
    cause,
  });
}
