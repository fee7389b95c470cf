import { expect, test } from "vitest";
import { end, lateUsageArrives, metricsOf, request, setupService } from "../support/service.ts";

test("the service syncs by itself, shows late usage and health, and ends cleanly on SIGTERM", async () => {
  const bench = await setupService();
  const service = await bench.serve();
  await bench.loaded();
  expect(service.said.stderr).toMatch(/^Pages: http:\/\/127\.0\.0\.1:\d+\/$/m);

  await lateUsageArrives(bench);
  expect((await request(service, "/livez")).status).toBe(200);
  expect(await (await request(service, "/readyz")).json()).toMatchObject({ ok: true });
  const metrics = await metricsOf(service);
  expect(metrics).toContain('usage_etl_queue_jobs{queue="fetch-default",state="waiting"} ');
  expect(metrics).toMatch(/usage_etl_rows_total\{source="default",outcome="inserted"\} [1-9]/);
  expect(metrics).toContain(
    'usage_etl_final_until_timestamp_seconds{source="default",group_by="user",stride="day"} ',
  );
  expect(metrics).not.toContain(bench.standin.apiKey);

  // After 25 s it would be 1.
  expect((await end(service, "SIGTERM")).code).toBe(0);
});
