import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { readConfig } from "../../src/config/config.ts";
import { withEnvFile } from "../../src/config/env-file.ts";
import { isSecret, SETTINGS } from "../../src/config/settings.ts";
import { digestOfKubernetes, RENDERED } from "../release/check-kubernetes.ts";
import { freePort, listenInTest } from "../support/listen.ts";
import { poll } from "../support/poll.ts";
import { temporaryFolder } from "../support/temporary.ts";

/** The files for containers fit the program; no container engine and no cluster is needed. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

interface Service {
  image: string;
  profiles?: string[];
  build?: string;
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  entrypoint?: string[];
  healthcheck?: { disable?: boolean; test?: string[] };
  mem_limit?: string;
  shm_size?: string;
  tmpfs?: string[];
  logging?: { driver: string; options: Record<string, string> };
  ports?: string[];
  volumes?: string[];
  restart: string;
  secrets?: string[];
  stop_grace_period?: string;
}

const compose = parse(read("docker-compose.yml"), { merge: true }) as {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
};
const services = Object.entries(compose.services);
const withFiles = parse(read("docs/deploy/compose-secrets.yml"), { merge: true }) as {
  services: Record<string, Partial<Service>>;
  secrets: Record<string, { file: string }>;
};
const ours = services.filter(([, service]) => service.build !== undefined);

const NAMES = Object.keys(SETTINGS);
const VARIABLES = NAMES.flatMap((name) => (isSecret(name) ? [name, `${name}_FILE`] : [name]));

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

/** MiB of a size such as `512m`, `128mb` or `1g`. */
function mebibytes(size = ""): number {
  const [, count, unit] = /^(\d+)([mg])b?$/.exec(size) ?? [];
  return Number(count) * (unit === "g" ? 1024 : 1);
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

  test("every setting can be set from outside, except files, which must be mounted too", () => {
    const settable = Object.keys(environmentOf("worker"));
    // Its Redis is its own: one server with a password.
    const isOfRedis = (name: string) => name.startsWith("REDIS_") && !/^REDIS_(URL|PASSWORD)$/.test(name);
    const names = NAMES.filter((name) => !isOfRedis(name));
    expect(names.filter((name) => !settable.includes(name))).toEqual([
      "USAGE_SOURCES_FILE",
      "USAGE_ENV_FILE",
    ]);
  });

  test("a service waits only for what has a health check or ends, and exists in its profile", () => {
    for (const [name, { depends_on = {}, profiles = [] }] of services) {
      for (const [other, { condition }] of Object.entries(depends_on)) {
        const awaited = compose.services[other];
        expect(awaited, `${name} waits for ${other}`).toBeDefined();
        if (condition === "service_healthy") expect(awaited?.healthcheck?.test, other).toBeDefined();
        else {
          expect(condition).toBe("service_completed_successfully");
          expect(awaited?.restart, other).toBe("no");
        }
        if (awaited?.profiles !== undefined) expect(awaited.profiles).toEqual(profiles);
      }
    }
  });

  test("a running service has a health check, restarts and listens on this machine alone; a one-off task does not restart", () => {
    for (const [name, { healthcheck, restart, ports = [] }] of services) {
      expect(healthcheck?.disable === true, name).toBe(restart === "no");
      if (restart !== "no") expect(healthcheck?.test, name).toBeDefined();
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
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

  test("logs of every service are bounded", () => {
    for (const [name, { logging }] of services) {
      expect(logging, name).toEqual({
        driver: "json-file",
        options: { "max-size": expect.stringMatching(/^\d+m$/), "max-file": expect.stringMatching(/^\d+$/) },
      });
    }
  });

  test("memory of every service is bounded, and what it may hold fits", () => {
    for (const [name, { mem_limit }] of services) expect(mebibytes(mem_limit), name).toBeGreaterThan(0);
    for (const [name, { mem_limit, tmpfs = [] }] of ours) {
      // As Node 24 does in a container.
      const heap = Math.max(256, mebibytes(mem_limit) / 2);
      const [, size] = /^\/tmp:size=(\w+)$/.exec(tmpfs.join()) ?? [];
      expect(heap + mebibytes(size), name).toBeLessThan(mebibytes(mem_limit) - 100);
    }
    const { postgres, redis } = compose.services;
    const started = redis?.command?.join(" ").replaceAll(/\s+/g, " ") ?? "";
    expect(mebibytes(postgres?.shm_size)).toBeLessThan(mebibytes(postgres?.mem_limit) / 4);
    const [, most] = / --maxmemory (\w+) --maxmemory-policy noeviction/.exec(started) ?? [];
    expect(2 * mebibytes(most)).toBeLessThan(mebibytes(redis?.mem_limit));
  });

  test("every mounted file and volume exists", () => {
    for (const mount of services.flatMap(([, { volumes = [] }]) => volumes)) {
      const [source = ""] = mount.split(":");
      if (source.startsWith("./")) expect(existsSync(join(ROOT, source)), source).toBe(true);
      else expect(Object.keys(compose.volumes)).toContain(source);
    }
  });

  test("our processes share an image and have time to hand their jobs back", () => {
    expect(ours.map(([name]) => name)).toEqual(["settings", "migrate", "scheduler", "worker", "standin"]);
    expect(new Set(ours.map(([, { image }]) => image)).size).toBe(1);
    for (const [, { command, stop_grace_period }] of ours) {
      if (command?.[0] === "serve") expect(stop_grace_period).toBe("30s");
    }
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

  describe("the check of settings", () => {
    /** Runs it as the container does, with a name service that finds the stand-in or does not. */
    async function check(given: { USAGE_BASE_URL?: string; USAGE_API_KEY?: string; standin: boolean }) {
      const { standin, ...settings } = given;
      const bin = temporaryFolder();
      for (const [name, code] of [
        ["getent", standin ? 0 : 2],
        ["sleep", 0],
      ] as const) {
        writeProgram(bin, name, `exit ${code}`);
      }
      const script = interpolate(compose.services.settings?.command?.[0] ?? "");
      return new Promise<{ code: number; said: string }>((resolve) => {
        const child = execFile(
          "/bin/sh",
          ["-c", script],
          { env: { PATH: bin, ...environmentOf("settings", settings) } },
          (_error, _stdout, said) => resolve({ code: child.exitCode ?? -1, said }),
        );
      });
    }

    test("passes if both settings are set, or if the stand-in runs", async () => {
      const both = { USAGE_BASE_URL: "https://platform.test", USAGE_API_KEY: "key" };
      expect(await check({ ...both, standin: false })).toEqual({ code: 0, said: "" });
      expect(await check({ standin: true })).toEqual({ code: 0, said: "" });
    });

    test.each([
      [{}, ["USAGE_BASE_URL is not set", "USAGE_API_KEY is not set"]],
      [{ USAGE_BASE_URL: "https://platform.test" }, ["USAGE_API_KEY is not set"]],
      [{ USAGE_API_KEY: "key" }, ["USAGE_BASE_URL is not set"]],
    ])("names the missing setting, given %o", async (settings, missing) => {
      const { code, said } = await check({ ...settings, standin: missing.length === 1 });
      expect(code).toBe(2);
      expect(said.match(/\w+ is not set/g)).toEqual(missing);
      expect(said).toContain("--profile demo up");
    });
  });
});

describe("docs/deploy/compose-secrets.yml", () => {
  const given = { POSTGRES_PASSWORD: "sesame", REDIS_PASSWORD: "sesame", USAGE_API_KEY: "sesame" };

  test("no environment holds a password or key, and every mounted secret is a file of the folder", () => {
    for (const name of Object.keys(withFiles.services)) {
      const texts = Object.values(environmentOf(name, given, "compose-secrets.yml"));
      expect(
        texts.filter((text) => text.includes("sesame")),
        name,
      ).toEqual([]);
      const mounted = JSON.stringify(serviceOf(name, "compose-secrets.yml")).matchAll(
        /\/run\/secrets\/(\w+)/g,
      );
      const secrets = new Set([...mounted].map(([, secret]) => secret));
      expect(secrets, name).toEqual(new Set(withFiles.services[name]?.secrets));
    }
    for (const [name, { file }] of Object.entries(withFiles.secrets)) expect(file).toBe(`./secrets/${name}`);
    const used = Object.values(withFiles.services).flatMap(({ secrets = [] }) => secrets);
    expect(new Set(used)).toEqual(new Set(Object.keys(withFiles.secrets)));
  });

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

describe("Dockerfile", () => {
  const lines = read("Dockerfile").replaceAll("\\\n", "").split("\n");

  test("every copied path exists and passes .dockerignore", () => {
    const wanted = lines
      .filter((line) => line.startsWith("COPY ") && !line.includes("--from"))
      .flatMap((line) => line.split(/\s+/).slice(1, -1));
    const admitted = read(".dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1));
    expect(new Set(wanted)).toEqual(new Set(admitted));
    for (const path of wanted) expect(existsSync(join(ROOT, path)), path).toBe(true);
  });

  test("the image runs as a user who is not root, with settings that the program knows", () => {
    expect(lines.findLast((line) => line.startsWith("USER "))).toBe("USER 1000:1000");
    const set = lines.filter((line) => line.startsWith("ENV ")).flatMap((line) => line.split(/\s+/).slice(1));
    const names = set.map((pair) => pair.split("=")[0]);
    expect(names.filter((name) => name !== "NODE_ENV" && !VARIABLES.includes(name ?? ""))).toEqual([]);
  });
});

interface Pod {
  enableServiceLinks: boolean;
  terminationGracePeriodSeconds: number;
  securityContext: { runAsNonRoot: boolean };
  initContainers: { args: string[] }[];
  containers: { args: string[]; livenessProbe: unknown; readinessProbe: unknown; startupProbe: unknown }[];
  volumes: { name: string }[];
}

interface Manifest {
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec?: {
    selector?: { matchLabels: object };
    template?: { metadata: { labels: object }; spec: Pod };
    scaleTargetRef?: { name: string };
    triggers?: { metadata: { query: string } }[];
  };
}

describe("Kubernetes", () => {
  const rendered = read(RENDERED);
  const manifests = parseAllDocuments(rendered).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Manifest;
  });
  const deployments = manifests.filter(({ kind }) => kind === "Deployment");

  test("what is checked here was rendered from the files of today (`npm run kubernetes:check`)", () => {
    expect(/^# sha256: (.*)$/m.exec(rendered)?.[1]).toBe(digestOfKubernetes());
  });

  test("the ConfigMap holds only settings that the program knows, and no secret", () => {
    const data = manifests.find(({ kind }) => kind === "ConfigMap")?.data ?? {};
    expect(Object.keys(data).filter((name) => !VARIABLES.includes(name))).toEqual([]);
    // Secrets come as files only.
    expect(NAMES.filter((name) => isSecret(name) && name in data)).toEqual([]);
  });

  test("scheduler and worker run after a migration, with health probes, not as root, without service links", () => {
    expect(deployments.map(({ metadata }) => metadata.name)).toEqual([
      "usage-etl-scheduler",
      "usage-etl-worker",
    ]);
    for (const { spec } of deployments) {
      expect(spec?.template?.metadata.labels).toMatchObject(spec?.selector?.matchLabels ?? { none: true });
      const pod = spec?.template?.spec as Pod;
      // A Service whose name begins with usage- would otherwise set USAGE_* variables, which are refused.
      expect(pod.enableServiceLinks).toBe(false);
      expect(pod.securityContext.runAsNonRoot).toBe(true);
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(25);
      expect(pod.initContainers.map(({ args }) => args)).toEqual([["migrate"]]);
      expect(pod.containers).toMatchObject([
        {
          startupProbe: { httpGet: { path: "/livez" } },
          livenessProbe: { httpGet: { path: "/livez" } },
          readinessProbe: { httpGet: { path: "/readyz" } },
        },
      ]);
    }
  });

  test("the pages ask for a token, and their Service leads to a process that serves them", () => {
    const config = manifests.find(({ kind }) => kind === "ConfigMap")?.data ?? {};
    expect(config).toMatchObject({ USAGE_WEB_TOKEN_FILE: "/etc/usage-etl/web-token" });
    const selector = manifests.find(({ kind }) => kind === "Service")?.spec?.selector;
    const served = deployments.filter(({ spec }) => {
      const labels = spec?.template?.metadata.labels as Record<string, string>;
      return Object.entries(selector ?? { none: "none" }).every(([name, value]) => labels[name] === value);
    });
    expect(served.map(({ metadata }) => metadata.name)).toEqual(["usage-etl-scheduler"]);
  });

  test("the autoscaler scales an existing deployment on the metric of due tasks", () => {
    const scaled = manifests.find(({ kind }) => kind === "ScaledObject")?.spec;
    expect(deployments.map(({ metadata }) => metadata.name)).toContain(scaled?.scaleTargetRef?.name);
    expect(scaled?.triggers?.[0]?.metadata.query).toContain("usage_etl_due_tasks");
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
