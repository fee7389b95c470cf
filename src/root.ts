import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A clone runs these files. A package from npm runs what they were compiled to, which is a folder deeper: `dist/src`. */
const isClone = import.meta.url.endsWith(".ts");

/** Address of the clone or package: `package.json`, `sql/`. It ends in a slash. */
export const ROOT = new URL(isClone ? "../" : "../../", import.meta.url);

/**
 * Folder for what a demo keeps: its data, and a Postgres that it installed. In a clone it is the clone's own. A package may
 * belong to another user, and an update replaces it, so there it is a folder of the user's.
 */
export const DATA_DIR = dataDirOf(isClone ? {} : process.env);

/** Without a home, such as in a container, it is in the package. */
function dataDirOf({ XDG_DATA_HOME, HOME }: NodeJS.ProcessEnv): string {
  if (XDG_DATA_HOME) return join(XDG_DATA_HOME, "usage-etl");
  return HOME ? join(HOME, ".local/share/usage-etl") : fileURLToPath(new URL(".usage-etl", ROOT));
}

/** The version of this release. */
export function releaseOf(): string {
  const { version } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  return version;
}
