import { expect, test } from "vitest";
import { poll } from "../../support/poll.ts";
import { setupReplica } from "../../support/replica.ts";
import { lateUsageArrives, logOf, metricsOf, setupService, startRedis } from "../../support/service.ts";

test("a service with a replica serves pages and metrics from it, and loads on without it", async () => {
  const { primary, standby, store } = await setupReplica();
  const servers = { store, databaseUrl: primary.url, redisUrl: await startRedis() };
  const environment = { DATABASE_READ_URL: standby.url };
  const bench = await setupService({ servers, workspaces: 1, days: 3, environment });
  const service = await bench.serve();
  const untilUsed = (used: 0 | 1) =>
    poll(async () => (await metricsOf(service)).includes(`usage_etl_replica_used ${used}\n`), {
      deadlineMs: 60_000,
      everyMs: 200,
    });
  const [, url = ""] = /health and metrics on (\S+);/.exec(service.said.stderr) ?? [];
  const overview = async () => (await fetch(url)).text();

  await untilUsed(1);
  await bench.loaded();
  expect(await overview()).toMatch(/As of .*, from a replica/);
  await standby.kill();
  await untilUsed(0);
  expect(await overview()).not.toContain("from a replica");
  await lateUsageArrives(bench);
  await standby.start();
  await untilUsed(1);
  expect(logOf(service).filter(({ code }) => code === "replica_unreachable")).toHaveLength(1);
  const { password } = new URL(standby.url);
  expect(`${service.said.stdout}${service.said.stderr}`).not.toContain(password);
  // Its heartbeat goes with it.
  expect(
    await bench.count("SELECT count(*) FROM usage.heartbeat WHERE beat_at > now() - interval '9 s'"),
  ).toBe(2);
  service.process.kill("SIGTERM");
  await service.ended;
  expect(await bench.count("SELECT count(*) FROM usage.heartbeat")).toBe(1);
});
