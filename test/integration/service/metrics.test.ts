import { expect, test } from "vitest";
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
  const bench = await setupService({ days: 5, workspaces: 2, environment: { USAGE_SYNC_EVERY: "PT2S" } });
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
