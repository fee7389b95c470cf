import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { readRedis } from "../../config/config.ts";
import { readSetting } from "../../config/variables.ts";
import { reasonOf, UnreachableError, UsageError } from "../../errors.ts";
import { askRedis } from "../../redis-connect.ts";
import { withoutPassword } from "../../url.ts";
import { pingPostgres, startLocalPostgres, TEST_CLUSTER_OPTIONS, TEST_SETTINGS } from "./local-postgres.ts";
import { pingRedis, startLocalRedis } from "./local-redis.ts";
import {
  type ServerInput,
  type Service,
  type StartInput,
  startServer,
  temporaryHome,
} from "./start-server.ts";

/** Servers for demo, tests and benchmarks: those of the settings, else a container, else a local process. */

const DEFAULTS: StartInput = { say: (line) => void process.stderr.write(`${line}\n`), env: process.env };

/** Errors: those of the servers, and `postgres_unreachable` if no server answers or can be started. */
export async function resolvePostgres(given: Partial<StartInput> = {}): Promise<Service> {
  const input = { ...DEFAULTS, ...given };
  // Kept data are served by a local process: Postgres cannot see across containers that its folder is in use.
  const inDocker = input.dataDir === undefined ? () => startDockerPostgres(input) : () => undefined;
  const found = (await namedPostgres(input.env)) ?? (await inDocker()) ?? (await startLocalPostgres(input));
  if (found !== undefined) return found;
  throw new UnreachableError({
    code: "postgres_unreachable",
    message: `No Postgres to use: DATABASE_URL is not set, Docker does not answer, and npm has none for ${process.platform}-${process.arch}.`,
    next: "Set DATABASE_URL=postgresql://user:password@host:5432/database.",
  });
}

/** Errors: those of the servers, and `redis_unreachable` if no server answers or can be started. */
export async function resolveRedis(given: Partial<StartInput> = {}): Promise<Service> {
  const input = { ...DEFAULTS, ...given };
  const found =
    (await namedRedis(input.env)) ?? (await startDockerRedis(input)) ?? (await startLocalRedis(input));
  if (found !== undefined) return found;
  throw new UnreachableError({
    code: "redis_unreachable",
    message:
      "No Redis to use: REDIS_URL is not set, Docker does not answer, and neither redis-server nor valkey-server is on PATH.",
    next: "Set REDIS_URL=redis://host:6379, or install redis-server or valkey-server.",
  });
}

/** The Postgres of DATABASE_URL. Errors: `configuration_invalid`, `postgres_refused`, `postgres_unreachable`. */
export async function namedPostgres(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const url = readSetting(env, "DATABASE_URL")?.reveal();
  if (url === undefined) return undefined;
  try {
    await pingPostgres(url);
  } catch (cause) {
    // Class 28 is a refused login, 3D000 a missing database.
    const isRefused = /^(28|3D)/.test(String((cause as { code?: unknown }).code));
    throw new (isRefused ? UsageError : UnreachableError)({
      code: isRefused ? "postgres_refused" : "postgres_unreachable",
      message: `Postgres at ${withoutPassword(url)} ${isRefused ? "refuses the connection" : "does not answer"}: ${reasonOf(cause)}`,
      next: "Correct DATABASE_URL, or leave it out: then a local server is started.",
      retryable: !isRefused,
      cause,
    });
  }
  return { url, origin: "named", close: async () => {} };
}

/** The Redis of REDIS_URL. Errors: those of `askRedis`. */
export async function namedRedis(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const redis = readRedis(env);
  if (redis === undefined) return undefined;
  await askRedis(redis, (connection) => connection.ping());
  const url = readSetting(env, "REDIS_URL")?.reveal() ?? "";
  return { url, origin: "named", close: async () => {} };
}

function startDockerPostgres(input: StartInput): Promise<Service | undefined> {
  return inDocker(input, (home) => ({
    name: "Postgres",
    home,
    signal: "INT",
    command: (port) => [
      ...[
        "-e",
        `POSTGRES_PASSWORD=${home.password}`,
        "-e",
        `POSTGRES_INITDB_ARGS=${TEST_CLUSTER_OPTIONS.join(" ")}`,
      ],
      ...["-p", `127.0.0.1:${port}:5432`, "postgres:18"],
      ...TEST_SETTINGS.flatMap((setting) => ["-c", setting]),
    ],
    url: (port) => `postgresql://postgres:${home.password}@127.0.0.1:${port}/postgres`,
    ping: pingPostgres,
  }));
}

function startDockerRedis(input: StartInput): Promise<Service | undefined> {
  return inDocker(input, (home) => ({
    name: "Redis",
    home,
    signal: "TERM",
    command: (port) => [
      "-p",
      `127.0.0.1:${port}:6379`,
      "redis:8",
      "redis-server",
      "--save",
      "",
      "--requirepass",
      home.password,
    ],
    url: (port) => `redis://default:${home.password}@127.0.0.1:${port}`,
    ping: pingRedis,
  }));
}

/**
 * A temporary server in a container. Docker's client stays in the foreground and passes signals on, so the container ends as a local
 * server does. Undefined if Docker does not answer, or does not start it: the reason is printed.
 */
async function inDocker(
  { say, env }: StartInput,
  serverIn: (home: ReturnType<typeof temporaryHome>) => ServerInput,
): Promise<Service | undefined> {
  // The ports of another machine are not those of this one.
  if (/^(tcp|ssh):/.test(env.DOCKER_HOST ?? "")) return undefined;
  try {
    execFileSync("docker", ["version"], { env, timeout: 2_500, killSignal: "SIGKILL", stdio: "ignore" });
  } catch {
    return undefined;
  }
  const home = temporaryHome("docker", tmpdir());
  const server = serverIn(home);
  say(`Starting ${server.name} in Docker (the first time, this downloads it).`);
  try {
    const command = (port: number) => ["docker", "run", "--rm", ...server.command(port)];
    return { ...(await startServer({ ...server, command })), origin: "docker" };
  } catch (error) {
    home.release();
    say(`Docker answers but did not start ${server.name}: ${reasonOf(error)}`);
    return undefined;
  }
}
