import { expect, test } from "vitest";
import { reconcileRangeJob } from "../../../jobs/reconcile-range.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { now } from "../../support/clock.ts";
import { poll } from "../../support/poll.ts";
import { metricsOf, setupService } from "../../support/service.ts";
import { senderOn } from "../../support/source.ts";

test("the scheduled reconciliation of a running service repairs what the platform restated", async () => {
  const bench = await setupService({ days: 6, standin: { scale: 1 } });
  const service = await bench.serve();
  await bench.loaded();
  const day = Math.floor(now() / DAY_MS) * DAY_MS - 5 * DAY_MS;
  bench.standin.ledger.change(senderOn(bench.standin, 0, day), 11);

  const queue = await bench.openQueue("control");
  await queue.add(reconcileRangeJob.name, { days: 45 }, { jobId: "by-hand", ...reconcileRangeJob.options });
  const done = await poll(async () => (await queue.getJob("by-hand"))?.returnvalue, {
    deadlineMs: 120_000,
    everyMs: 200,
  });
  expect(done).toMatchObject({ open: 0, platformDisagrees: 0, failed: 0, unverified: 0 });
  expect(done.repaired).toBeGreaterThanOrEqual(4);
  expect(done.compared).toBeGreaterThan(100);
  expect(
    await bench.value("SELECT count(*) FROM reporting_detail.usage_restatement WHERE stride = 'day'"),
  ).toBe(4);

  const metrics = await metricsOf(service);
  expect(metrics).toMatch(/usage_etl_last_reconciled_timestamp_seconds\{source="default"\} 1[0-9]{9}/);
  expect(metrics).not.toMatch(/usage_etl_reconciliation_differences\{/);
});
