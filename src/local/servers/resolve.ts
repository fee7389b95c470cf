import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readRedis } from "../../config/config.ts";
import { readSetting } from "../../config/variables.ts";
import { reasonOf, UnreachableError, UsageError } from "../../errors.ts";
import { askRedis } from "../../redis-connect.ts";
import { shownUrl } from "../../url.ts";
import { CLUSTER_OPTIONS, pingPostgres, SERVER_SETTINGS, startLocalPostgres } from "./local-postgres.ts";
import { startLocalRedis } from "./local-redis.ts";
import type { Service, StartInput } from "./start-server.ts";

/** Servers for demo, tests and benchmarks: those of the settings, else a container, else a local process. */

const DEFAULTS: StartInput = { say: (line) => void process.stderr.write(`${line}\n`), env: process.env };

/** Errors: those of the servers, and `postgres_unreachable`. */
export async function resolvePostgres(given: Partial<StartInput> = {}): Promise<Service> {
  const input = { ...DEFAULTS, ...given };
  const found =
    (await namedPostgres(input.env)) ??
    (await startDockerPostgres(input)) ??
    (await startLocalPostgres(input));
  if (found !== undefined) return found;
  throw new UnreachableError({
    code: "postgres_unreachable",
    message: `No Postgres to use: DATABASE_URL is not set, Docker does not answer, and npm has none for ${process.platform}-${process.arch}.`,
    next: "Set DATABASE_URL=postgresql://user:password@host:5432/database.",
  });
}

/** Errors: those of the servers, and `redis_unreachable`. */
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

/** Errors: `configuration_invalid`, `postgres_refused`, `postgres_unreachable`. */
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
      message: `Postgres at ${shownUrl(url)} ${isRefused ? "refuses the connection" : "does not answer"}: ${reasonOf(cause)}`,
      next: "Correct DATABASE_URL, or leave it out: then a local server is started.",
      retryable: !isRefused,
      cause,
    });
  }
  return { url, origin: "named", close: async () => {} };
}

/** Errors: those of `askRedis`. */
export async function namedRedis(env: NodeJS.ProcessEnv): Promise<Service | undefined> {
  const redis = readRedis(env);
  if (redis === undefined) return undefined;
  await askRedis(redis, (connection) => connection.ping());
  const url = readSetting(env, "REDIS_URL")?.reveal() ?? "";
  return { url, origin: "named", close: async () => {} };
}

/** Testcontainers' reaper removes the server if this process is killed. */
function startDockerPostgres(input: StartInput): Promise<Service | undefined> {
  return inDocker(input, "postgres:18", async (image) => {
    const { GenericContainer, Wait } = await import("testcontainers");
    const password = randomBytes(16).toString("hex");
    const settings = [...SERVER_SETTINGS, ...(input.settings ?? [])];
    const container = await new GenericContainer(image)
      .withEnvironment({ POSTGRES_PASSWORD: password, POSTGRES_INITDB_ARGS: CLUSTER_OPTIONS.join(" ") })
      .withCommand(["postgres", ...settings.flatMap((setting) => ["-c", setting])])
      .withExposedPorts(5432)
      // The first server only makes the cluster.
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
      .start();
    const url = `postgresql://postgres:${password}@${container.getHost()}:${container.getMappedPort(5432)}/postgres`;
    return { url, stop: () => container.stop() };
  });
}

function startDockerRedis(input: StartInput): Promise<Service | undefined> {
  return inDocker(input, "redis:8", async (image) => {
    const { GenericContainer } = await import("testcontainers");
    // Docker publishes its port on every address of this machine.
    const password = randomBytes(16).toString("hex");
    const settings = ["--save", "", "--maxmemory-policy", "noeviction", "--requirepass", password];
    const container = await new GenericContainer(image)
      .withCommand(["redis-server", ...settings])
      .withExposedPorts(6379)
      .start();
    const url = `redis://default:${password}@${container.getHost()}:${container.getMappedPort(6379)}`;
    return { url, stop: () => container.stop() };
  });
}

/** Undefined, with the reason printed, if Docker does not start the container. */
async function inDocker(
  { say, env }: StartInput,
  image: string,
  start: (image: string) => Promise<{ url: string; stop(): Promise<unknown> }>,
): Promise<Service | undefined> {
  try {
    // A package from npm lacks testcontainers. Docker's client is asked first because it knows contexts.
    import.meta.resolve("testcontainers");
    execFileSync("docker", ["version"], { env, timeout: 2_500, killSignal: "SIGKILL", stdio: "ignore" });
  } catch {
    return undefined;
  }
  say(`Starting ${image} in Docker (the first time, this downloads it).`);
  try {
    const { url, stop } = await start(image);
    return { url, origin: "docker", close: async () => void (await stop()) };
  } catch (error) {
    say(`Docker answers but did not start ${image}: ${reasonOf(error)}`);
    return undefined;
  }
}
