import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Standin, startStandin } from "../../../src/standin/server.ts";
import { poll } from "../../support/poll.ts";
import { type ServiceBench, setupService } from "../../support/service.ts";

/** Several sources in one service. */

const DAY_MS = 86_400_000;

/** Serves the bench's stand-in as `sound` and another organisation's as `ill`. */
async function serveBoth(bench: ServiceBench, ill: Standin) {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-sources-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "sources.json");
  const { USAGE_BASE_URL, USAGE_API_KEY, USAGE_DATA_START: dataStart, ...rest } = bench.environment;
  const shared = { dataStart, rateLimit: 1_000 };
  writeFileSync(
    file,
    JSON.stringify([
      { slug: "ill", baseUrl: ill.url, apiKey: ill.apiKey, ...shared },
      { slug: "sound", baseUrl: USAGE_BASE_URL, apiKey: USAGE_API_KEY, ...shared },
    ]),
  );
  const environment = { ...rest, USAGE_SOURCES_FILE: file, USAGE_BASE_URL: "", USAGE_API_KEY: "" };
  return bench.serve({ environment: { ...environment, USAGE_DATA_START: "" } });
}

/** Every day and hour of the source is loaded. */
function loaded(bench: ServiceBench, source: string): Promise<unknown> {
  const gaps = `SELECT count(*) FILTER (WHERE status NOT IN ('ok', 'empty', 'provisional')) = 0 AND count(*) > 0
    FROM reporting.usage_coverage_daily WHERE source_id = '${source}'`;
  return poll(() => bench.value(gaps), { deadlineMs: 60_000, everyMs: 500 });
}

/** Usage that arrives late shows up: rounds and fetches of the source go on. */
async function lateUsageArrives(bench: ServiceBench): Promise<void> {
  const [stream] = bench.standin.organisation.streams;
  if (stream === undefined) throw new Error("the stand-in has no streams");
  const { project, user, key } = stream;
  const total = async () =>
    Number(
      await bench.value(
        `SELECT coalesce(sum(traces), 0) FROM reporting.fct_usage_workspace_daily
         WHERE source_id = 'sound' AND workspace_id = '${project.workspace.id}'
           AND usage_date = (now() AT TIME ZONE 'UTC')::date - 1`,
      ),
    );
  const before = await total();
  const at = Math.floor(Date.now() / DAY_MS - 1) * DAY_MS;
  bench.standin.ledger.change({ project, user, key, at }, 17);
  await poll(async () => (await total()) === before + 17, { deadlineMs: 20_000, everyMs: 200 });
}

test.each([
  ["never answers for usage", { kind: "hang" }, "granular-usage"],
  ["answers slowly", { kind: "slow", ms: 20_000 }, "granular-usage"],
  ["is broken altogether", { kind: "status", status: 500 }, ""],
  ["limits every request", { kind: "status", status: 429, retry_after: 300 }, ""],
] as const)("a source that %s does not hold up another", { timeout: 120_000 }, async (_, fault, path) => {
  const bench = await setupService({ days: 5 });
  const ill = await startStandin({ seed: 2, dataStart: bench.environment.USAGE_DATA_START ?? "" });
  onTestFinished(() => ill.close());
  ill.faults.script({ fault, times: 100_000, match: { path } });
  const service = await serveBoth(bench, ill);
  await loaded(bench, "sound");
  await lateUsageArrives(bench);
  // It was asked, and in vain.
  expect(ill.requests.count).toBeGreaterThan(0);
  const ofIll =
    "SELECT count(*) FROM usage.coverage JOIN usage.scope USING (scope_id) JOIN usage.source USING (source_id)";
  expect(Number(await bench.value(`${ofIll} WHERE slug = 'ill'`))).toBe(0);
  expect(service.process.exitCode).toBeNull();
});
