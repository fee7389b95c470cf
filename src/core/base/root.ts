import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A package from npm runs compiled files, which are a folder deeper: `dist/src`. */
const isClone = import.meta.url.endsWith(".ts");

/** Address of `package.json` and `sql/`. It ends in a slash. */
export const ROOT = new URL(isClone ? "../../../" : "../../../../", import.meta.url);

/**
 * Folder of the demo's data, and of a Postgres that it installed. A package may be replaced or belong to another user, so it
 * uses a folder of the user. A clone uses its own.
 */
export const DATA_DIR = dataDirOf(isClone ? {} : process.env);

/** Without a home, such as in a container, the folder is in the package. */
function dataDirOf({ XDG_DATA_HOME, HOME }: NodeJS.ProcessEnv): string {
  if (XDG_DATA_HOME) return join(XDG_DATA_HOME, "usage-etl");
  return HOME ? join(HOME, ".local/share/usage-etl") : fileURLToPath(new URL(".usage-etl", ROOT));
}

export function releaseOf(): string {
  const { version } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  return version;
}
