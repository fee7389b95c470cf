import { createHash } from "node:crypto";
import PQueue from "p-queue";
import type pg from "pg";
import { type EtlError, reasonOf } from "../../core/base/errors.ts";
import { loadOptional } from "../../core/base/optional.ts";
import { type Dataset, type RowsOfDay, readDays } from "./day-rows.store.ts";
import { FORMAT, type ManifestFile } from "./manifest.ts";
import type { Place, PlaceFile } from "./place.ts";
import { interruption } from "./reading-connection.store.ts";

const ENDING_AT_ONCE = 8;

export type PlannedFile = RowsOfDay & { readonly path: string };

export function pathOf({ view, columns, day }: Dataset, source: string, rows: RowsOfDay): string {
  const shape = [FORMAT, columns.map(({ name, type }) => [name, type]), rows.rows, rows.digest];
  const name = createHash("sha256").update(JSON.stringify(shape)).digest("hex").slice(0, 32);
  const partition = day === undefined ? "" : `/${day.name}=${rows.day}`;
  return `${view.name}/source_id=${source}${partition}/${name}.parquet`;
}

const OURS = /^[a-z0-9_]+\/source_id=([^/]+)\/(?:usage_date=[0-9-]{10}\/)?[0-9a-f]{32}\.parquet$/;

/** Undefined: not a file that we wrote. */
export function sourceOfPath(path: string): string | undefined {
  return OURS.exec(path)?.[1];
}

/** Removes incomplete files. Errors: those of a place, `files_interrupted`. */
export async function writeDays(
  client: pg.Client,
  { place, source, signal }: { place: Place; source: string; signal: AbortSignal },
  { dataset, changed, asOf }: { dataset: Dataset; changed: readonly PlannedFile[]; asOf: string },
): Promise<ManifestFile[]> {
  if (changed.length === 0) return [];
  const { createParquet } = await loadOptional(() => import("./parquet.ts"));
  const files: ManifestFile[] = [];
  // A bucket takes tens of milliseconds for the smallest file.
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
  let open:
    | { planned: PlannedFile; file: PlaceFile; rows: ReturnType<typeof createParquet>; facts: Counted }
    | undefined;
  const finish = async () => {
    if (open === undefined) return;
    const { planned, file, rows, facts } = open;
    const { path, day, digest, sums, isFinal, coverage } = planned;
    // Both statements have one snapshot, so the numbers must agree.
    if ((await rows.end()) !== planned.rows)
      throw interrupted(new Error(`${path} has other rows than were counted`));
    // If this throws, `finally` abandons the file.
    await commit(file);
    open = undefined;
    files.push({
      path,
      usage_date: day,
      rows: planned.rows,
      bytes: facts.bytes,
      sha256: facts.hash.digest("hex"),
      digest,
      sums,
      is_final: isFinal,
      coverage,
      written_at: asOf,
    });
  };
  try {
    const days = changed.map(({ day }) => day);
    await readDays(client, dataset, { source, days, signal }, async (day, rows) => {
      if (open === undefined || open.planned.day !== day) {
        await finish();
        const planned = changed.find((one) => one.day === day);
        if (planned === undefined) throw interrupted(new Error(`rows of ${day} were not asked for`));
        const file = await place.create(planned.path);
        const facts: Counted = { bytes: 0, hash: createHash("sha256") };
        const write = async (chunk: Uint8Array) => {
          facts.bytes += chunk.length;
          facts.hash.update(chunk);
          await file.write(chunk);
        };
        open = { planned, file, facts, rows: createParquet(dataset.columns, write) };
      }
      await open.rows.add(rows);
    });
    await finish();
    await ending.onIdle();
    if (failures.length > 0) throw failures[0];
    return files;
  } finally {
    await open?.file.abandon();
    await ending.onIdle();
  }
}

interface Counted {
  bytes: number;
  readonly hash: ReturnType<typeof createHash>;
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
