import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { readConfig } from "../../src/config/config.ts";
import { withEnvFile } from "../../src/config/env-file.ts";
import { isSecret, SETTINGS } from "../../src/config/settings.ts";
import { freePort, listenInTest } from "../support/listen.ts";
import { poll } from "../support/poll.ts";
import { temporaryFolder } from "../support/temporary.ts";

/** The files for containers fit the program. No container engine is needed. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

interface Service {
  readonly command?: string[];
  readonly environment?: Record<string, string>;
  readonly entrypoint?: string[];
  readonly healthcheck?: { readonly test?: string[] };
  readonly volumes?: string[];
}

const compose = parse(read("docker-compose.yml"), { merge: true }) as { services: Record<string, Service> };
const withFiles = parse(read("docs/deploy/compose-secrets.yml"), { merge: true }) as {
  services: Record<string, Service>;
};

const NAMES = Object.keys(SETTINGS);

/** Compose's `${NAME:-default}` and `$$`, which are all that the file uses. */
function interpolate(text: string, given: Record<string, string> = {}): string {
  return text.replaceAll(/\$(\$|\{(\w+):-([^}]*)\})/g, (_, all: string, name: string, otherwise: string) =>
    all === "$" ? "$" : given[name] || otherwise,
  );
}

/** A service of docker-compose.yml, or as the second file changes it. */
function serviceOf(name: string, files: "docker-compose.yml" | "compose-secrets.yml"): Service {
  const service = compose.services[name] as Service;
  const own = files === "docker-compose.yml" ? {} : withFiles.services[name];
  return {
    ...service,
    ...own,
    environment: { ...service.environment, ...own?.environment },
    healthcheck: { ...service.healthcheck, ...own?.healthcheck },
  };
}

function environmentOf(
  name: string,
  given: Record<string, string> = {},
  files: Parameters<typeof serviceOf>[1] = "docker-compose.yml",
): Record<string, string> {
  const { environment = {} } = serviceOf(name, files);
  return Object.fromEntries(
    Object.entries(environment).map(([key, text]) => [key, interpolate(text, given)]),
  );
}

function writeProgram(folder: string, name: string, script: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
}

function isThere(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

describe("docker-compose.yml", () => {
  test.each(["scheduler", "worker"])("%s has an environment that the program accepts", (name) => {
    const config = readConfig(environmentOf(name));
    expect(config.sources).toMatchObject([{ baseUrl: "http://standin:8080" }]);
    expect(config.httpHost).toBe("0.0.0.0");
    const live = { USAGE_BASE_URL: "https://platform.test", USAGE_API_KEY: "key", USAGE_SYNC_EVERY: "PT5M" };
    expect(readConfig(environmentOf(name, live))).toMatchObject({
      sources: [{ baseUrl: "https://platform.test" }],
      syncEveryMs: 300_000,
    });
    const { redis } = readConfig(environmentOf(name, { REDIS_PASSWORD: "sesame" }));
    expect(redis?.access()).toMatchObject({ password: "sesame" });
  });

  test.each([
    { livez: 200, readyz: 200, exit: 0, killed: "" },
    { livez: 200, readyz: 503, exit: 1, killed: "" },
    { livez: 503, readyz: 200, exit: 1, killed: "1 SIGTERM\n" },
  ])("the health check of a process with livez $livez and readyz $readyz ends with $exit", async (given) => {
    const { livez, readyz, exit, killed } = given;
    const asked: string[] = [];
    const server = createServer(({ url = "" }, response) => {
      asked.push(url);
      response.writeHead(url === "/livez" ? livez : readyz).end();
    });
    const port = await listenInTest(server);
    const [, program = "", ...args] = compose.services.worker?.healthcheck?.test ?? [];
    expect(program).toBe("node");
    const script = args.pop()?.replace(":9464", `:${port}`).replace("3000", "1");
    // The signal must not leave the test.
    const harmless = `process.kill = (pid, signal) => console.log(pid, signal);\n${script}`;
    const ended = await new Promise((resolve) => {
      execFile(process.execPath, [...args, harmless], (error, said) =>
        resolve({ exit: error?.code ?? 0, said }),
      );
    });
    expect(ended).toEqual({ exit, said: killed });
    expect(asked.filter((url) => url === "/livez").length).toBe(killed === "" ? 1 : 3);
  });

  test.skipIf(!isThere("redis-server")).each(["docker-compose.yml", "compose-secrets.yml"] as const)(
    "Redis of %s wants the password, and no command line shows it",
    async (files) => {
      const { entrypoint = ["docker-entrypoint.sh"], command = [], healthcheck } = serviceOf("redis", files);
      const dir = temporaryFolder();
      const port = await freePort();
      // That of the image leaves root where it starts `redis-server`.
      const start = `echo "$@" > ${dir}/line; exec "$@" --port ${port} --dir ${dir}`;
      writeProgram(dir, "docker-entrypoint.sh", `[ "$1" = redis-server ] || exec "$@"; ${start}`);
      writeProgram(dir, "redis-cli", `PATH="\${PATH#*:}"; exec redis-cli -p ${port} "$@"`);
      const run = (parts: readonly string[], password: string) => {
        writeFileSync(join(dir, "REDIS_PASSWORD"), `${password}\n`);
        const [program = "", ...args] = parts.map((part) => interpolate(part).replace("/run/secrets", dir));
        const given = files === "docker-compose.yml" ? { REDIS_PASSWORD: password } : {};
        const env = { PATH: `${dir}:${process.env.PATH}`, ...environmentOf("redis", given, files) };
        return spawn(program, args, { env, stdio: "ignore" });
      };
      const server = run([...entrypoint, ...command], "sesame");
      const ended = once(server, "exit");
      onTestFinished(async () => {
        server.kill();
        await ended;
      });
      const [kind, ...check] = healthcheck?.test ?? [];
      const health = kind === "CMD-SHELL" ? ["sh", "-c", ...check] : check;
      const isHealthy = async (password: string) => (await once(run(health, password), "exit"))[0] === 0;
      // It reads its file once, at its start.
      await poll(() => existsSync(join(dir, "line")));
      await poll(() => isHealthy("sesame"));
      expect(await isHealthy("usage")).toBe(false);
      const line = readFileSync(join(dir, "line"), "utf8");
      expect(line).toMatch(/^redis-server - .*--maxmemory 128mb/);
      expect(line).not.toContain("sesame");
    },
  );
});

describe("docs/deploy/compose-secrets.yml", () => {
  const given = { POSTGRES_PASSWORD: "sesame", REDIS_PASSWORD: "sesame", USAGE_API_KEY: "sesame" };

  test.each(["migrate", "scheduler", "worker"])("%s reads every secret setting from a file", (name) => {
    const { CREDENTIALS_DIRECTORY, ...environment } = environmentOf(name, given, "compose-secrets.yml");
    const { volumes } = serviceOf(name, "compose-secrets.yml");
    expect(volumes).toEqual([`./secrets:${CREDENTIALS_DIRECTORY}:ro`]);
    const folder = temporaryFolder();
    const read = () => withEnvFile({ ...environment, CREDENTIALS_DIRECTORY: folder });
    // Without files nothing stands in for them.
    const { databaseUrl, sources, redis } = readConfig(read());
    expect([databaseUrl, sources, redis?.access().password]).toEqual([undefined, [], undefined]);
    for (const secret of NAMES.filter(isSecret)) {
      writeFileSync(join(folder, secret), "sesame\n");
      expect(read()).toMatchObject({ [`${secret}_FILE`]: join(folder, secret) });
      expect(read()).not.toHaveProperty(secret);
    }
  });
});

// Debian's package `prometheus` has it; without it the test is skipped.
test.skipIf(!isThere("promtool"))(
  "promtool accepts the configuration, and the alerts fire when they should",
  () => {
    const promtool = (...args: string[]) =>
      execFileSync("promtool", args, { cwd: join(ROOT, "docs/deploy/monitoring"), encoding: "utf8" });
    expect(promtool("check", "config", "prometheus.yml")).toContain("SUCCESS");
    expect(promtool("test", "rules", "rules.test.yml")).toContain("SUCCESS");
  },
);
