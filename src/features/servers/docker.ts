import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { reasonOf } from "../../core/base/errors.ts";
import type { Service, StartInput } from "./start-server.ts";

/** Password of all containers, because Docker publishes ports on every address of this machine. */
export const PASSWORD = randomBytes(16).toString("hex");

interface Image {
  readonly image: string;
  readonly environment: Record<string, string>;
  readonly command: string[];
  readonly port: number;
  /** Number of log lines about readiness until the server accepts connections. */
  readonly starts: number;
  readonly url: (address: string) => string;
}

/**
 * If Docker cannot start a container, prints the reason and returns undefined. Testcontainers' reaper removes the container if
 * this process is killed.
 */
export async function startInDocker({ say, env }: StartInput, server: Image): Promise<Service | undefined> {
  try {
    // The npm package of this program lacks testcontainers. Docker's client comes first, because it knows contexts.
    import.meta.resolve("testcontainers");
    execFileSync("docker", ["version"], { env, timeout: 2_500, killSignal: "SIGKILL", stdio: "ignore" });
  } catch {
    return undefined;
  }
  const { image, environment, command, port, starts } = server;
  say(`Starting ${image} in Docker (the first time, this downloads it).`);
  try {
    const { GenericContainer, Wait } = await import("testcontainers");
    const container = await new GenericContainer(image)
      .withEnvironment(environment)
      .withCommand(command)
      .withExposedPorts(port)
      .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/i, starts))
      .start();
    const url = server.url(`${container.getHost()}:${container.getMappedPort(port)}`);
    return { url, origin: "docker", close: async () => void (await container.stop()) };
  } catch (error) {
    say(`Docker responds but did not start ${image}: ${reasonOf(error)}`);
    return undefined;
  }
}
