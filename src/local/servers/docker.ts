import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { TEST_CLUSTER_OPTIONS, TEST_SETTINGS } from "./postgres-settings.ts";
import type { Service, StartInput } from "./service.ts";

/** Temporary servers in containers. Testcontainers' reaper removes them when their owner ends. */

const DOCKER_CHECK_MS = 2_500;
const POSTGRES_IMAGE = "postgres:18";
const REDIS_IMAGE = "redis:8";

export async function startDockerPostgres(input: StartInput): Promise<Service | undefined> {
  return await inDocker(input, POSTGRES_IMAGE, async () => {
    const { PostgreSqlContainer } = await import("@testcontainers/postgresql");
    const container = await new PostgreSqlContainer(POSTGRES_IMAGE)
      .withEnvironment({ POSTGRES_INITDB_ARGS: TEST_CLUSTER_OPTIONS.join(" ") })
      .withCommand(["postgres", ...TEST_SETTINGS.flatMap((setting) => ["-c", setting])])
      .start();
    return { url: container.getConnectionUri(), stop: () => container.stop() };
  });
}

export async function startDockerRedis(input: StartInput): Promise<Service | undefined> {
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
