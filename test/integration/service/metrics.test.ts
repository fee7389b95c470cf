import { expect, test } from "vitest";
import { type Running, usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { setupService } from "../../support/service.ts";

/** What several processes say of one source in their metrics. */

async function metricsOf(service: Running): Promise<string> {
  const [, url = ""] = /health and metrics on (\S+);/.exec(service.said.stderr) ?? [];
  return (await fetch(`${url}/metrics`)).text();
}

/** Requests by status, summed over processes as `sum by (status)` does. */
function requestsByStatus(texts: readonly string[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const text of texts) {
    const lines = text.matchAll(/^usage_etl_requests_total\{source="default",status="(\w+)"\} (\d+)$/gm);
    for (const [, status = "", count] of lines) sums[status] = (sums[status] ?? 0) + Number(count);
  }
  return sums;
}

test("every request of two workers is counted once, by its HTTP status", { timeout: 120_000 }, async () => {
  const bench = await setupService({ days: 5, environment: { USAGE_SYNC_EVERY: "PT2S" } });
  const match = { path: "granular-usage" };
  const fault = (status: number) => ({ kind: "status", status, retry_after: 0 }) as const;
  bench.standin.faults.script({ fault: fault(429), times: 3, match });
  bench.standin.faults.script({ fault: fault(503), times: 4, match });
  bench.standin.faults.script({ fault: { kind: "reset" }, times: 2, match });
  const workers = await Promise.all([bench.serve(), bench.serve()]);
  await bench.loaded();
  // The stand-in counts what it was sent. Workers go on meanwhile, so both sides are read until they are of one moment.
  await poll(
    async () => {
      const before = bench.standin.requests.count;
      const sums = requestsByStatus(await Promise.all(workers.map(metricsOf)));
      expect(sums).toMatchObject({ 429: 3, 503: 4, none: 2 });
      const sum = Object.values(sums).reduce((a, b) => a + b, 0);
      return sum === before && bench.standin.requests.count === before;
    },
    { deadlineMs: 30_000, everyMs: 50 },
  );
  const texts = await Promise.all(workers.map(metricsOf));
  // Both had a part in it, and neither counts the other's.
  for (const text of texts) expect(Number(requestsByStatus([text])[200])).toBeGreaterThan(0);
});

test("a rate budget that the rounds outgrow is told by metrics, status and doctor", {
  timeout: 120_000,
}, async () => {
  const bench = await setupService({ days: 5 });
  expect((await usageEtl(["sync", "--inline"], bench.environment)).code).toBe(0);
  const rounds = async (limit: string) => {
    const environment = { ...bench.environment, USAGE_RATE_LIMIT: limit, USAGE_SYNC_EVERY: "PT10S" };
    const text = await metricsOf(await bench.serve({ role: "http", environment }));
    const gauge = (name: string) =>
      Number(
        new RegExp(`^usage_etl_round_requests_${name}\\{source="default"\\} (\\d+)$`, "m").exec(text)?.[1],
      );
    const [status, doctor] = await Promise.all(
      ["status", "doctor"].map((command) => usageEtl([command], environment)),
    );
    return { needed: gauge("needed"), allowed: gauge("allowed"), status, doctor };
  };
  const enough = await rounds("5000");
  expect(enough.needed).toBeGreaterThan(10);
  // Nine tenths are the fetch queue's.
  expect(enough.allowed).toBe(4_500);
  expect(enough.status?.stdout).not.toContain("rate_budget_short");
  expect(enough.doctor).toMatchObject({ code: 0 });
  expect(enough.doctor?.stdout).toContain(`a sync needs ${enough.needed} requests`);

  const short = await rounds("10");
  expect(short).toMatchObject({ needed: enough.needed, allowed: 9 });
  for (const said of [short.status, short.doctor]) {
    expect(said?.stdout).toMatch(
      /needs \d+ requests.*Set USAGE_SYNC_EVERY to PT\d+M or more.*\[rate_budget_short\]/,
    );
  }
  expect(short.doctor?.code).toBe(2);
});
