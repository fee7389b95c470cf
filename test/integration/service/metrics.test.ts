import { expect, test } from "vitest";
import { usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { metricsOf, setupService } from "../../support/service.ts";

function requestsByStatus(texts: readonly string[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const text of texts) {
    const lines = text.matchAll(/^usage_etl_requests_total\{source="default",status="(\w+)"\} (\d+)$/gm);
    for (const [, status = "", count] of lines) sums[status] = (sums[status] ?? 0) + Number(count);
  }
  return sums;
}

test("every request of two workers is counted once, by its HTTP status", async () => {
  const bench = await setupService({
    days: 5,
    workspaces: 2,
    environment: { USAGE_SYNC_EVERY: "PT2S" },
  });
  const match = { path: "granular-usage" };
  const fault = (status: number) => ({ kind: "status", status, retry_after: 0 }) as const;
  bench.standin.faults.script({ fault: fault(429), times: 3, match });
  bench.standin.faults.script({ fault: fault(503), times: 4, match });
  bench.standin.faults.script({ fault: { kind: "reset" }, times: 2, match });
  const workers = await Promise.all([bench.serve(), bench.serve()]);
  await bench.loaded();
  // The stand-in counts what it was sent. Workers go on meanwhile, so both sides are read until they show one moment.
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
  for (const text of texts) expect(Number(requestsByStatus([text])[200])).toBeGreaterThan(0);
});

test("metrics, status and doctor show that a sync needs more requests than the rate limit allows", async () => {
  const bench = await setupService({ days: 5 });
  expect((await usageEtl(["sync", "--inline"], bench.environment)).code).toBe(0);
  // Syncs send fewer as long as nothing changes: it is no problem before something waits for longer than a sync.
  await bench.value(
    `INSERT INTO usage.fetch_task (source_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids, created_at)
     SELECT 1, 'user', 'hour', now(), now() + interval '1 hour', '{1}', '{a}', now() - interval '11 seconds' RETURNING 1`,
  );
  const environment = { ...bench.environment, USAGE_RATE_LIMIT: "10", USAGE_SYNC_EVERY: "PT10S" };
  const text = await metricsOf(await bench.serve({ role: "http", environment }));
  expect(text).toMatch(/^usage_etl_round_requests_needed\{source="default"\} [1-9]\d+$/m);
  expect(text).toMatch(/^usage_etl_round_requests_allowed\{source="default"\} 9$/m);
  const [status, doctor] = [await usageEtl(["status"], environment), await usageEtl(["doctor"], environment)];
  for (const { stdout } of [status, doctor]) expect(stdout).toContain("[rate_budget_short]");
  expect(doctor.code).toBe(2);
});
