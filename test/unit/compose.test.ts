import { execFile, execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readConfig } from "../../src/core/base/config.ts";
import { withEnvFile } from "../../src/core/base/env-file.ts";
import { isSecret, SETTINGS } from "../../src/core/base/settings.ts";
import { createMetrics } from "../../src/web/metrics.ts";
import { listenInTest } from "../support/listen.ts";
import { temporaryFolder } from "../support/temporary.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

interface Service {
  readonly environment?: Record<string, string>;
  readonly healthcheck?: { readonly test?: string[] };
  readonly volumes?: string[];
}

const servicesOf = (path: string) =>
  (parse(read(path), { merge: true }) as { services: Record<string, Service> }).services;
const services = servicesOf("docker-compose.yml");
const changed = servicesOf("docs/deploy/compose-secrets.yml");

function environmentOf(name: string, given: Record<string, string> = {}, more: Service = {}) {
  const interpolate = (text: string) =>
    text.replaceAll(/\$(\$|\{(\w+):-([^}]*)\})/g, (_, all: string, variable: string, otherwise: string) =>
      all === "$" ? "$" : given[variable] || otherwise,
    );
  const environment = { ...services[name]?.environment, ...more.environment };
  return Object.fromEntries(Object.entries(environment).map(([key, text]) => [key, interpolate(text)]));
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
    const requested: string[] = [];
    const server = createServer(({ url = "" }, response) => {
      requested.push(url);
      response.writeHead(url === "/livez" ? livez : readyz).end();
    });
    const port = await listenInTest(server);
    const [, program = "", ...args] = services.worker?.healthcheck?.test ?? [];
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
    expect(requested.filter((url) => url === "/livez").length).toBe(killed === "" ? 1 : 3);
  });
});

describe("docs/deploy/compose-secrets.yml", () => {
  const given = { POSTGRES_PASSWORD: "sesame", REDIS_PASSWORD: "sesame", USAGE_API_KEY: "sesame" };

  test.each(["migrate", "scheduler", "worker"])("%s reads every secret setting from a file", (name) => {
    const { CREDENTIALS_DIRECTORY, ...environment } = environmentOf(name, given, changed[name]);
    const { volumes } = { ...services[name], ...changed[name] };
    expect(volumes).toEqual([`./secrets:${CREDENTIALS_DIRECTORY}:ro`]);
    const folder = temporaryFolder();
    const read = () => withEnvFile({ ...environment, CREDENTIALS_DIRECTORY: folder });
    const { databaseUrl, sources, redis } = readConfig(read());
    expect([databaseUrl, sources, redis?.access().password]).toEqual([undefined, [], undefined]);
    for (const secret of Object.keys(SETTINGS).filter(isSecret)) {
      writeFileSync(join(folder, secret), "sesame\n");
      expect(read()).toMatchObject({ [`${secret}_FILE`]: join(folder, secret) });
      expect(read()).not.toHaveProperty(secret);
    }
  });
});

const none = async () => [];
const exposed = () => createMetrics(undefined as never, none, none).text();

test("metrics have names by which Prometheus knows counters, and a text", async () => {
  const text = await exposed();
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  expect(types.length).toBeGreaterThan(40);
  const wrong = types.filter(([, name = "", type]) => name.endsWith("_total") !== (type === "counter"));
  expect(wrong.map(([line]) => line)).toEqual([]);
  const helped = new Set([...text.matchAll(/^# HELP (\S+) \S/gm)].map(([, name]) => name));
  expect(types.map(([, name]) => name).filter((name) => !helped.has(name))).toEqual([]);
});

test.skipIf(!isThere("promtool"))("promtool accepts the metrics", async () => {
  const input = await exposed();
  const { status, stdout, stderr } = spawnSync("promtool", ["check", "metrics"], { input, encoding: "utf8" });
  expect([status, stdout, stderr]).toEqual([0, "", ""]);
});

test.skipIf(!isThere("promtool"))(
  "promtool accepts the configuration, and the alerts fire when they should",
  () => {
    const promtool = (...args: string[]) =>
      execFileSync("promtool", args, { cwd: join(ROOT, "docs/deploy/monitoring"), encoding: "utf8" });
    expect(promtool("check", "config", "prometheus.yml")).toContain("SUCCESS");
    expect(promtool("test", "rules", "rules.test.yml")).toContain("SUCCESS");
  },
);
