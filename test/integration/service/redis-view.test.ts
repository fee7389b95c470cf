import { createServer } from "node:http";
import { expect, test } from "vitest";
import { lookAtRedis } from "../../../jobs/redis-view.ts";
import { redisServerOf } from "../../../src/core/base/redis-server.ts";
import { usageEtl } from "../../support/cli.ts";
import { now } from "../../support/clock.ts";
import { listenInTest } from "../../support/listen.ts";
import { poll } from "../../support/poll.ts";
import { type ServiceBench, setupService } from "../../support/service.ts";

/** Commands that look at a service: at a healthy one, and while a server of it is away. */

const DEAD_REDIS = "redis://127.0.0.1:1";

/** Responds with 404 to everything, as a host that is not the platform does. */
async function startNobody(): Promise<string> {
  const server = createServer((_, response) => void response.writeHead(404).end());
  return `http://127.0.0.1:${await listenInTest(server)}`;
}

interface Check {
  readonly source: string | null;
  readonly check: string;
  readonly status: string;
  readonly code: string | null;
  readonly finding: string;
}

async function doctor(bench: ServiceBench, changed: Record<string, string> = {}) {
  const { code, stdout } = await usageEtl(["doctor", "--json"], { ...bench.environment, ...changed });
  const checks = JSON.parse(stdout) as Check[];
  const of = (status: string) => checks.filter((one) => one.status === status).map(({ check }) => check);
  const find = (check: string) => checks.find((one) => one.check === check);
  return { code, checks, of, find };
}

async function status(bench: ServiceBench, changed: Record<string, string> = {}) {
  const { code, stdout } = await usageEtl(["status", "--json"], { ...bench.environment, ...changed });
  const [one] = JSON.parse(stdout) as [{ nextSync: string | null; lastSync: object | null }];
  return { code, one };
}

const widest = (text: string) => Math.max(...text.split("\n").map((line) => line.length));

test("doctor and status show a healthy service, one without workers, and which of its servers is away", async () => {
  const bench = await setupService({ workspaces: 2 });
  const [first = "", second = ""] = bench.standin.organisation.workspaces.map(({ id }) => id);
  const service = await bench.serve();
  await bench.loaded();
  const seenWorkers = (count: number) =>
    poll(
      async () =>
        (await lookAtRedis(redisServerOf({ url: bench.redisUrl }), ["default"])).sources.get("default")
          ?.workers === count,
      { deadlineMs: 30_000, everyMs: 100 },
    );
  await seenWorkers(1);

  const working = await doctor(bench);
  expect([working.code, working.of("fail"), working.of("skip")]).toEqual([0, [], []]);
  expect(working.find("redis_commands")?.status).toBe("pass");
  expect(working.find("workers")?.finding).toBe("1 worker seen");
  expect(working.find("schedules")?.finding).toContain("kept by 1 scheduler");
  expect(working.find("platform")?.finding).toContain("responded: info, organization, workspaces, usage");
  expect(working.find("workspaces")?.finding).toMatch(/^the listing has \d+; 2 are loaded$/);
  const seen = await status(bench);
  expect([seen.code, seen.one]).toMatchObject([
    0,
    { redis: null, workers: 1, schedulers: 1, lastSync: { kind: "sync", source: "default" }, alerts: [] },
  ]);
  expect(Date.parse(seen.one.nextSync ?? "")).toBeGreaterThan(now() - 60_000);

  const requested = await usageEtl(["sync"], bench.environment);
  expect([requested.code, requested.stderr]).toEqual([0, ""]);

  service.process.kill("SIGKILL");
  await service.ended;
  await seenWorkers(0);
  const idle = await usageEtl(["sync"], bench.environment);
  expect([idle.code, idle.stderr]).toEqual([
    0,
    "No worker is connected: start `usage-etl serve`, or use `--inline`.\n",
  ]);
  const left = await doctor(bench);
  expect([left.code, left.of("fail"), left.of("warn")]).toEqual([
    6,
    ["workers"],
    ["redis_eviction", "schedules"],
  ]);

  // What the database knows of the platform says nothing about the platform.
  const nobody = await doctor(bench, { USAGE_BASE_URL: await startNobody(), REDIS_URL: DEAD_REDIS });
  expect([nobody.code, nobody.of("fail")]).toEqual([2, ["redis", "platform"]]);
  expect(nobody.find("redis")).toMatchObject({ code: "redis_unreachable" });
  expect(nobody.find("platform")).toMatchObject({ code: "platform_not_found" });
  expect(nobody.of("skip")).toEqual(expect.arrayContaining(["redis_write", "key", "workspaces", "workers"]));
  expect(nobody.checks.map(({ finding }) => finding).join()).not.toMatch(/workspaces? (are )?loaded/);

  const outage = await usageEtl(["status"], { ...bench.environment, REDIS_URL: DEAD_REDIS });
  expect([outage.code, widest(outage.stdout) <= 80]).toEqual([6, true]);
  expect(outage.stdout).toMatch(/^service +Redis at 127\.0\.0\.1:1 does not respond/m);
  expect(outage.stdout).toMatch(/^last sync +\d{4}-.* ago: /m);
  expect(outage.stdout).toMatch(/^days +0 missing/m);

  const dead = { USAGE_BASE_URL: "http://127.0.0.1:1", DATABASE_URL: "postgres://x@127.0.0.1:1/y" };
  const away = await doctor(bench, dead);
  expect(away.of("fail")).toEqual(["postgres", "platform", "workers"]);
  expect([away.code, away.find("schema")?.status]).toEqual([6, "skip"]);

  await bench.redis.config("SET", "maxmemory-policy", "allkeys-lru");
  const ghost = "11111111-2222-4333-8444-555555555555";
  const text = await usageEtl(["doctor"], {
    ...bench.environment,
    USAGE_WORKSPACE_IDS: `${first},${second},${ghost}`,
  });
  expect([text.code, widest(text.stdout) <= 80]).toEqual([2, true]);
  expect(text.stdout).toMatch(/^fail {2}redis_eviction +Redis evicts keys/m);
  expect(text.stdout).toMatch(/^fail {2}workspaces +The platform does not list 1 of 3/m);
  expect(text.stdout).toContain(ghost);
  expect(text.stdout).toMatch(/\d+ passed, .*3 failed\.\n$/);
  // It only looks: the typo left nothing behind.
  expect(await bench.count(`SELECT count(*) FROM usage.entity WHERE external_id = '${ghost}'`)).toBe(0);
});
