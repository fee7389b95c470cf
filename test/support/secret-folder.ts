import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./temporary.ts";

/** A folder for files with secrets, which a test replaces. */
export function secretFolder() {
  const folder = temporaryFolder();
  return {
    path: (name: string) => join(folder, name),
    /** As Kubernetes and Vault replace a file: nobody sees half of it. */
    put: (name: string, text: string) => {
      writeFileSync(join(folder, `${name}.new`), `${text}\n`);
      renameSync(join(folder, `${name}.new`), join(folder, name));
    },
  };
}
