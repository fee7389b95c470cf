import { createHash } from "node:crypto";
import { z } from "zod";
import { UsageError } from "../../core/base/errors.ts";
import { parseJson } from "../../core/base/json.ts";
import type { OnProgress } from "../../core/pipeline/extract/sequentially.ts";
import type { Place } from "./place.ts";

const fileSchema = z.object({
  path: z.string().min(1),
  /** Calendar month of the rows in UTC, such as 2026-10. Null: the view has no days, or no rows. */
  month: z.string().nullable(),
  rows: z.int().nonnegative(),
  bytes: z.int().nonnegative(),
  sha256: z.string(),
  /** Digest of all rows, independent of their order. */
  digest: z.string(),
  /** Exact sums as texts. Null: no row has the amount. */
  sums: z.record(z.string(), z.string().nullable()),
  /** True if all figures of the file are final. Null: the view does not say. */
  is_final: z.boolean().nullable(),
  coverage: z.array(z.string()).nullable(),
  written_at: z.iso.datetime(),
});

const datasetSchema = z.object({
  key: z.array(z.string()),
  /** `precision` and `scale` of a numeric with bounds. */
  columns: z.array(
    z.object({
      name: z.string(),
      type: z.string(),
      precision: z.int().nullable(),
      scale: z.int().nullable(),
    }),
  ),
  /** Ascending, texts by their bytes, nulls last. */
  sorted_by: z.array(z.string()),
  files: z.array(fileSchema),
});

const manifestSchema = z.object({
  format: z.literal("usage-etl-files/1"),
  source_id: z.string(),
  database: z.string(),
  release: z.string(),
  /** Postgres's instant as of which all files are. */
  as_of: z.iso.datetime(),
  datasets: z.record(z.string(), datasetSchema),
  /** Files of earlier sets, which are deleted a week after they were replaced. */
  replaced: z.array(z.object({ path: z.string(), since: z.iso.datetime() })),
});

export type ManifestFile = z.infer<typeof fileSchema>;
export type Manifest = z.infer<typeof manifestSchema>;

export const FORMAT = "usage-etl-files/1";

export function manifestName(source: string): string {
  return `manifest/${source}.json`;
}

export async function readManifest(place: Place, source: string): Promise<Manifest | undefined> {
  const name = manifestName(source);
  const bytes = await place.read(name);
  if (bytes === undefined) return undefined;
  try {
    return manifestSchema.parse(parseJson(new TextDecoder().decode(bytes)));
  } catch (cause) {
    throw new UsageError({
      code: "files_manifest_invalid",
      message: `${name} in ${place.address} is not a manifest that this release can read.`,
      next: "If no other program writes there, delete the file: the next run writes all files again.",
      cause,
    });
  }
}

export function isForeign(manifest: Manifest | undefined, database: string): manifest is Manifest {
  return manifest !== undefined && manifest.database !== database;
}

export function foreignFiles(place: Place, { source_id, as_of }: Manifest): UsageError {
  return new UsageError({
    code: "files_of_another_database",
    message: `The files of source ${source_id} in ${place.address} were written by another database, as of ${as_of}. No file was changed.`,
    next: "Set USAGE_EXPORT_DIR to another folder or prefix. If this database replaces the other one, run `usage-etl files write --take-over`.",
  });
}

/**
 * Replaces the manifest in one step: a reader sees the old set or this one. `confirm` is called directly before, and may throw.
 */
export async function writeManifest(
  place: Place,
  manifest: Manifest,
  confirm: () => Promise<void>,
): Promise<void> {
  const file = await place.create(manifestName(manifest.source_id));
  try {
    await file.write(Buffer.from(`${JSON.stringify(manifest, undefined, 1)}\n`));
    await confirm();
    await file.commit();
  } finally {
    await file.abandon();
  }
}

export interface CheckedFiles {
  readonly files: number;
  readonly rows: number;
  readonly wrong: readonly { readonly path: string; readonly problem: "missing" | "differs" }[];
}

export async function checkFiles(
  place: Place,
  manifest: Manifest,
  { signal, onProgress = () => {} }: { signal: AbortSignal; onProgress?: OnProgress },
): Promise<CheckedFiles> {
  const files = Object.values(manifest.datasets).flatMap((dataset) => dataset.files);
  const wrong: { path: string; problem: "missing" | "differs" }[] = [];
  for (const [at, { path, bytes, sha256 }] of files.entries()) {
    signal.throwIfAborted();
    const found = await place.read(path);
    if (found === undefined) wrong.push({ path, problem: "missing" });
    else if (found.length !== bytes || createHash("sha256").update(found).digest("hex") !== sha256)
      wrong.push({ path, problem: "differs" });
    onProgress({ done: at + 1, total: files.length });
  }
  return { files: files.length, rows: files.reduce((sum, { rows }) => sum + rows, 0), wrong };
}
