import { execFile, execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createMetrics } from "../../src/web/metrics.ts";
import { listenInTest } from "../support/listen.ts";

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

function isThere(program: string): boolean {
  return spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
}

describe("docker-compose.yml", () => {
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

test.skipIf(!isThere("promtool"))("promtool accepts the metrics", async () => {
  const none = async () => [];
  const input = await createMetrics(undefined as never, none, none).text();
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
