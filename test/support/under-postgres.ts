import { spawnSync } from "node:child_process";
import pg from "pg";
import { startLocalPostgres } from "../../src/features/servers/postgres.ts";
import { TEST_SETTINGS } from "./test-postgres.ts";

/**
 * `npm run test:postgres -- [--postgres MAJOR ...] [--managed] [vitest arguments]`: runs tests on other versions of Postgres.
 * They come from npm. `--managed`: the login is no superuser and may not create roles, and the
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
  const version = VERSIONS[major];
  if (version === undefined) throw new Error(`No Postgres ${major}: choose of ${Object.keys(VERSIONS)}.`);
  const settings = [...TEST_SETTINGS, ...(isManaged ? MANAGED : [])];
  const server = await startLocalPostgres({ say: console.error, env: process.env, version, settings });
  try {
    const DATABASE_URL = isManaged ? await managedLogin(server.url) : server.url;
    process.stderr.write(`\nPostgres ${version}${isManaged ? ", managed" : ""}\n`);
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

/** A login that may create databases for the tests, which are then its own. */
async function managedLogin(url: string): Promise<string> {
  await query(url, "CREATE ROLE managed LOGIN CREATEDB PASSWORD 'managed'");
  await query(url, "CREATE ROLE usage_reader NOLOGIN");
  await query(url, "CREATE ROLE usage_reader_masked NOLOGIN");
  await query(url, "GRANT usage_reader, usage_reader_masked, pg_monitor TO managed");
  return Object.assign(new URL(url), { username: "managed", password: "managed" }).href;
}

async function query(connectionString: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  try {
    await client.connect();
    await client.query(text);
  } finally {
    await client.end();
  }
}
