import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Standin, startStandin } from "../../../src/features/standin/server.ts";
import { poll } from "../../support/poll.ts";
import { lateUsageArrives, type ServiceBench, setupService } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary.ts";

async function serveBoth(bench: ServiceBench, broken: Standin) {
  const folder = temporaryFolder();
  const file = join(folder, "sources.json");
  const { USAGE_BASE_URL, USAGE_API_KEY, USAGE_DATA_START: dataStart, ...rest } = bench.environment;
  const shared = { dataStart, rateLimit: 1_000 };
  writeFileSync(
    file,
    JSON.stringify([
      { slug: "broken", baseUrl: broken.url, apiKey: broken.apiKey, ...shared },
      { slug: "sound", baseUrl: USAGE_BASE_URL, apiKey: USAGE_API_KEY, ...shared },
    ]),
  );
  const environment = { ...rest, USAGE_SOURCES_FILE: file, USAGE_BASE_URL: "", USAGE_API_KEY: "" };
  return bench.serve({ environment: { ...environment, USAGE_DATA_START: "" } });
}

function loaded(bench: ServiceBench, source: string): Promise<unknown> {
  const gaps = `SELECT count(*) FILTER (WHERE status NOT IN ('ok', 'empty', 'provisional')) = 0 AND count(*) > 0
    FROM reporting_detail.usage_coverage_daily WHERE source_id = '${source}'`;
  return poll(() => bench.value(gaps), { deadlineMs: 60_000, everyMs: 500 });
}

test.each([
  ["never responds for usage", { kind: "hang" }, "granular-usage"],
  ["answers slowly", { kind: "slow", ms: 20_000 }, "granular-usage"],
  ["is broken altogether", { kind: "status", status: 500 }, ""],
  ["limits every request", { kind: "status", status: 429, retry_after: 300 }, ""],
] as const)("a source that %s does not delay another", async (_, fault, path) => {
  const bench = await setupService({ days: 5 });
  const broken = await startStandin({ seed: 2, dataStart: bench.environment.USAGE_DATA_START ?? "" });
  onTestFinished(() => broken.close());
  broken.faults.script({ fault, times: 100_000, match: { path } });
  const service = await serveBoth(bench, broken);
  await loaded(bench, "sound");
  await lateUsageArrives(bench, { source: "sound", deadlineMs: 20_000 });
  expect(broken.requests.count).toBeGreaterThan(0);
  const ofBroken =
    "SELECT count(*) FROM usage.coverage JOIN usage.trace_scope USING (scope_id) JOIN usage.source USING (source_id)";
  expect(await bench.count(`${ofBroken} WHERE slug = 'broken'`)).toBe(0);
  expect(service.process.exitCode).toBeNull();
});
