import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { listenInTest } from "../support/listen.ts";
import { poll } from "../support/poll.ts";
import { setupService } from "../support/service.ts";
import { skipThis } from "../support/services.ts";

/** The official SDK, installed as docs/monitoring.md says, sends spans of the service to a receiver of OTLP over HTTP. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: {
      readonly attributes: readonly {
        readonly key: string;
        readonly value: { readonly stringValue?: string };
      }[];
    };
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans: readonly Span[];
    }[];
  }[];
}

function installSdk(version: string): string {
  const [, script = ""] =
    /## Traces[\s\S]*?```sh\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, "docs/monitoring.md"), "utf8")) ??
    [];
  const folder = join(ROOT, "node_modules/.cache", `otel-${version}`);
  if (!existsSync(folder)) {
    const part = `${folder}.part`;
    rmSync(part, { recursive: true, force: true });
    const own = script.replaceAll("/opt/otel", part).replace(/sdk-node$/m, `sdk-node@${version}`);
    try {
      mkdirSync(join(ROOT, "node_modules/.cache"), { recursive: true });
      execFileSync("bash", ["-ec", own], {
        stdio: "pipe",
        env: { ...process.env, npm_config_ignore_scripts: "true" },
      });
    } catch (error) {
      skipThis(`the SDK ${version} cannot be installed: ${(error as Error).message}`);
    }
    renameSync(part, folder);
  }
  return join(folder, "register.mjs");
}

test.each(["0.223.0", "0.301.0"])(
  "the official SDK %s sends the spans of jobs and of their way there",
  async (version) => {
    const register = installSdk(version);
    const exports: Export[] = [];
    const receiver = createServer(async (request, response) => {
      const body = (await json(request)) as Export;
      if (request.url === "/v1/traces") exports.push(body);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    const port = await listenInTest(receiver);
    const bench = await setupService({ days: 2, workspaces: 1 });
    const service = await bench.serve({
      environment: {
        USAGE_TELEMETRY: "on",
        OTEL_SERVICE_NAME: "usage-etl",
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        NODE_OPTIONS: `--import=${register}`,
      },
    });
    await bench.loaded();
    const spans = () =>
      exports.flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }) =>
          scopeSpans.filter(({ scope }) => scope.name === "usage-etl").flatMap((one) => one.spans),
        ),
      );
    const jobs = () => spans().filter(({ name }) => name.includes("fetch-default"));
    const pair = await poll(
      () => {
        const child = jobs().find(({ parentSpanId }) => jobs().some(({ spanId }) => spanId === parentSpanId));
        return child === undefined
          ? undefined
          : [child, jobs().find(({ spanId }) => spanId === child.parentSpanId)];
      },
      { deadlineMs: 60_000 },
    );
    expect(new Set(pair?.map((span) => span?.traceId)).size).toBe(1);
    const names = exports.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ resource }) => resource.attributes),
    );
    expect(names).toContainEqual({ key: "service.name", value: { stringValue: "usage-etl" } });
    expect(service.said.stdout).not.toContain("telemetry_unreceived");
    expect(JSON.stringify(exports)).not.toContain(bench.standin.apiKey);
  },
);
