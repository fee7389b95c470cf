import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atEnd } from "./share.ts";

/** An empty folder, until the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-"));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A file with that content in a folder of its own, until the test ends. Returns its path. */
export function temporaryFile(content: string | Uint8Array, name = "file"): string {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, content);
  return path;
}
