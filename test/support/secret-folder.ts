import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder for files with secrets, which a test replaces. */
export function secretFolder() {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-secrets-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return {
    path: (name: string) => join(folder, name),
    /** As Kubernetes and Vault replace a file: nobody sees half of it. */
    put: (name: string, text: string) => {
      writeFileSync(join(folder, `${name}.new`), `${text}\n`);
      renameSync(join(folder, `${name}.new`), join(folder, name));
    },
  };
}
