import { createHash } from "node:crypto";
import type { Place } from "../../warehouse/place.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import type { Manifest } from "./manifest.ts";

export interface CheckedFiles {
  readonly files: number;
  readonly rows: number;
  /** Files that are not as the manifest says. */
  readonly wrong: readonly { readonly path: string; readonly problem: "missing" | "differs" }[];
}

/** Reads every file that a manifest names, and compares its bytes with what the manifest says. */
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
