import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./temporary.ts";

export function secretFolder() {
  const folder = temporaryFolder();
  return {
    path: (name: string) => join(folder, name),
    put: (name: string, text: string) => {
      writeFileSync(join(folder, `${name}.new`), `${text}\n`);
      renameSync(join(folder, `${name}.new`), join(folder, name));
    },
  };
}
