import { expect, test } from "vitest";
import { fetchQueueOf } from "../../../jobs/queues.ts";
import { poll } from "../../support/poll.ts";
import { end, logOf, setupService } from "../../support/service.ts";

/** The service as separate processes, on a real Redis and a real Postgres. */

const SUMS = `SELECT string_agg(x::text, ' ' ORDER BY x) FROM (
    SELECT c.group_by, c.stride, w.external_id, sum(r.traces) FROM usage.trace_scope c
    JOIN usage.entity w ON w.entity_id = c.workspace_id
    JOIN usage.series s USING (scope_id)
    JOIN (SELECT series_id, bucket_start::timestamp AT TIME ZONE 'UTC' AS at, traces FROM usage.dated_record
          UNION ALL SELECT * FROM usage.hourly_record) r USING (series_id)
    WHERE r.at < date_trunc('day', now()) - interval '1 day'
    GROUP BY 1, 2, 3
  ) x`;

test("a Redis that is emptied during the first load changes no total, and nobody has to act", async () => {
  const undisturbed = await setupService({ days: 20 });
  const disturbed = await setupService({ days: 20 });
  for (const bench of [undisturbed, disturbed]) {
    const slow = bench === disturbed ? { USAGE_RATE_LIMIT: "300" } : {};
    await bench.serve({ environment: { ...slow, USAGE_SYNC_EVERY: "PT15S" } });
  }
  await undisturbed.loaded();
  await poll(async () => (await disturbed.count("SELECT count(*) FROM usage.coverage")) > 20, {
    deadlineMs: 30_000,
  });
  await disturbed.redis.flushall();
  await disturbed.loaded();
  expect(await disturbed.value(SUMS)).toBe(await undisturbed.value(SUMS));
});

test("another worker fetches the tasks of one that was killed with SIGKILL", async () => {
  const bench = await setupService({
    days: 20,
    environment: { USAGE_RATE_LIMIT: "300", USAGE_SYNC_EVERY: "PT15S" },
  });
  const [first] = await Promise.all([bench.serve(), bench.serve()]);
  await poll(async () => (await bench.count("SELECT count(*) FROM usage.coverage")) > 20, {
    deadlineMs: 30_000,
  });
  if (first !== undefined) await end(first, "SIGKILL");
  await bench.loaded();
});

test("a job whose data does not parse fails with its reason, and the others go on", async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  const queue = await bench.openQueue("fetch");
  await queue.add("extract", { task: "no number" }, { jobId: "old" });
  await queue.add("no-such-job", {}, { jobId: "unknown" });
  await queue.add("extract", {}, { jobId: "deep" });
  await bench.redis.hset(
    queue.toKey("deep"),
    "data",
    `{"taskId":${"[".repeat(30_000)}${"]".repeat(30_000)}}`,
  );
  await fetchQueueOf(queue).add([{ taskId: 999_999, generation: 1, routine: true }]);
  const service = await bench.serve();
  await bench.loaded();
  await poll(() => logOf(service).filter((line) => line.msg === "job failed").length >= 3, {
    deadlineMs: 20_000,
  });
  const failed = logOf(service).filter((line) => line.msg === "job failed");
  expect(new Set(failed.map(({ code }) => code))).toEqual(new Set(["job_data_invalid", "job_unknown"]));
  expect(failed.find(({ code }) => code === "job_data_invalid")?.reason).toContain("extract");
});
