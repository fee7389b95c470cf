import { spawn } from "node:child_process";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { start } from "../../support/cli.ts";
import { freePort } from "../../support/listen.ts";
import { poll } from "../../support/poll.ts";
import { lateUsageArrives, logOf, setupService, syncsGoOn } from "../../support/service.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";

/** After any trouble with Redis the service goes on by itself. */

/** An empty Redis without persistence on this port; ends with the test. */
async function startRedis(port: number): Promise<{ kill: () => Promise<unknown> }> {
  const child = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--save", ""], {
    stdio: "ignore",
  });
  const exited = new Promise((resolve) => child.on("exit", resolve).on("error", resolve));
  const kill = () => {
    child.kill("SIGKILL");
    return exited;
  };
  onTestFinished(async () => void (await kill()));
  const client = new Redis(port, "127.0.0.1", { maxRetriesPerRequest: null });
  client.on("error", () => {});
  try {
    await poll(() => client.ping(), { deadlineMs: 10_000 });
  } finally {
    client.disconnect();
  }
  return { kill };
}

test("the service goes on after a Redis was demoted (READONLY), and floods neither Redis nor the log", async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  const service = await bench.serve();
  await bench.loaded();
  await bench.redis.replicaof("127.0.0.1", await freePort());
  const before = service.said.stderr.split("\n").length;
  const refused = async () =>
    Number(/errorstat_READONLY:count=(\d+)/.exec(await bench.redis.info("errorstats"))?.[1] ?? 0);
  // Several scheduled runs and blocking reads meet it.
  const since = Date.now();
  await poll(async () => Date.now() - since > 6_000 && (await refused()) > 0, {
    deadlineMs: 20_000,
    everyMs: 100,
  });
  // Without pauses between reconnects it would be tens of thousands.
  expect(await refused()).toBeLessThan(300);
  await bench.redis.replicaof("NO", "ONE");
  expect(service.said.stderr.split("\n").length - before).toBeLessThan(100);
  await syncsGoOn(service, 2);
  await lateUsageArrives(bench, { deadlineMs: 45_000 });
});

test("a job whose lock is lost is cancelled, and its place is free for others", async () => {
  // Four windows by workspace: what they lead to waits for their answers.
  const bench = await setupService({ days: 5, workspaces: 1, environment: { USAGE_HOURLY_FOR: "P5D" } });
  // Each place of the worker waits two minutes for an answer.
  bench.standin.faults.script({ fault: { kind: "hang" }, times: 4, match: { stride: "hour" } });
  const service = await bench.serve();
  const locks = () => bench.redis.keys("{usage-etl}:fetch-default:*:lock");
  // Others may be at work before those that wait.
  const waiting = "SELECT count(*) FROM usage.fetch WHERE outcome = 'running' AND stride = 'hour'";
  const held = await poll(
    async () => ((await bench.count(waiting)) === 4 && (await locks()).length === 4 ? locks() : undefined),
    { deadlineMs: 60_000 },
  );
  await bench.redis.del(...(held ?? []));
  await bench.loaded(60_000);
  const reasons = logOf(service).map((line) => String(line.reason));
  expect(reasons.filter((reason) => reason.startsWith("could not renew lock"))).not.toEqual([]);
});

test("the service closes half-open connections to Redis after 30 s", async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  const proxy = await startTcpProxy(bench.redisUrl);
  const service = await bench.serve({ environment: { REDIS_URL: proxy.through(bench.redisUrl) } });
  await bench.loaded();
  const dead = proxy.freeze({ newOnes: true });
  expect(dead.length).toBeGreaterThan(2);
  // Only the service itself closes them.
  const since = performance.now();
  await poll(() => dead.some((socket) => socket.destroyed), { deadlineMs: 60_000, everyMs: 100 });
  proxy.thaw();
  await poll(() => dead.every((socket) => socket.destroyed), { deadlineMs: 60_000, everyMs: 100 });
  expect(performance.now() - since).toBeLessThan(60_000);
  await syncsGoOn(service, 2);
  await lateUsageArrives(bench, { deadlineMs: 45_000 });
});

test("the service waits for Redis at its start, and goes on after Redis was killed and came back empty", async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  const port = await freePort();
  const service = start(["serve"], { ...bench.environment, REDIS_URL: `redis://127.0.0.1:${port}` });
  await poll(() => service.said.stderr.includes("Waiting for it. [redis_unreachable]"), {
    deadlineMs: 20_000,
  });
  const first = await startRedis(port);
  await poll(() => service.said.stderr.includes("serving as all"), { deadlineMs: 20_000 });
  await bench.loaded();

  await first.kill();
  await poll(() => logOf(service).some((line) => String(line.reason).includes("ECONNREFUSED")), {
    deadlineMs: 20_000,
  });
  await startRedis(port);
  await syncsGoOn(service, 2, 60_000);
  await lateUsageArrives(bench, { deadlineMs: 45_000 });
  expect(service.process.exitCode).toBeNull();
});
