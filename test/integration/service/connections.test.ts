import { spawn } from "node:child_process";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { type Running, start } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { logOf, type ServiceBench, setupService } from "../../support/service.ts";

/** Redis in trouble: the service goes on by itself afterwards. */

const LONG = 240_000;

/** Finished rounds in a process's log: each took a schedule's tick, a worker's fetch and the producer's adding. */
function roundsOf(service: Running): number {
  return logOf(service).filter((line) => line.msg === "job" && line.name === "plan-round").length;
}

function roundsBeyond(service: Running, before: number, deadlineMs: number): Promise<unknown> {
  return poll(() => roundsOf(service) > before, { deadlineMs, everyMs: 100 });
}

/** Late usage of yesterday arrives in Postgres: fetches, not rounds alone. */
async function lateUsageArrives(bench: ServiceBench): Promise<void> {
  const [stream] = bench.standin.organisation.streams;
  if (stream === undefined) throw new Error("the stand-in has no streams");
  const { project, user, key } = stream;
  const at = Math.floor(Date.now() / 86_400_000 - 1) * 86_400_000;
  const total = async () =>
    Number(
      await bench.value(
        `SELECT coalesce(sum(traces), 0) FROM reporting.fct_usage_workspace_daily
         WHERE workspace_id = '${project.workspace.id}' AND usage_date = (now() AT TIME ZONE 'UTC')::date - 1`,
      ),
    );
  const before = await total();
  bench.standin.ledger.change({ project, user, key, at }, 17);
  await poll(async () => (await total()) === before + 17, { deadlineMs: 45_000, everyMs: 200 });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

/** A Redis without anything in it, without persistence, on this port; ends with the test. */
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
  const probe = new Redis(port, "127.0.0.1", { maxRetriesPerRequest: null });
  probe.on("error", () => {});
  try {
    await poll(() => probe.ping(), { deadlineMs: 10_000 });
  } finally {
    probe.disconnect();
  }
  return { kill };
}

/** Forwards to a port of this host; `freeze` makes what is connected dead for ever without closing it. */
async function startForwarder(port: number) {
  const open = new Set<Socket>();
  const isDead = new WeakSet<Socket>();
  let isFrozen = false;
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    open.add(near);
    if (isFrozen) isDead.add(near);
    near.on("close", () => {
      open.delete(near);
      far.destroy();
    });
    near.on("error", () => {});
    far.on("error", () => near.destroy());
    far.on("close", () => isDead.has(near) || near.destroy());
    near.on("data", (data) => isDead.has(near) || far.write(data));
    far.on("data", (data) => isDead.has(near) || near.write(data));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(async () => {
    server.close();
    for (const near of open) near.destroy();
  });
  return {
    port: (server.address() as AddressInfo).port,
    /** Connections that are dead from now on, new ones too until `thaw`; resolves to those of this moment. */
    freeze: () => {
      isFrozen = true;
      for (const near of open) isDead.add(near);
      return [...open];
    },
    thaw: () => {
      isFrozen = false;
    },
  };
}

test("a demoted Redis (READONLY) stops nothing for longer than it lasts, and floods no log", {
  timeout: LONG,
}, async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  const service = await bench.serve();
  await bench.loaded();
  await bench.redis.replicaof("127.0.0.1", await freePort());
  const before = service.said.stderr.split("\n").length;
  const refused = async () =>
    Number(/errorstat_READONLY:count=(\d+)/.exec(await bench.redis.info("errorstats"))?.[1] ?? 0);
  // Several schedules' ticks and blocking reads fall into it.
  const since = Date.now();
  await poll(async () => Date.now() - since > 6_000 && (await refused()) > 0, {
    deadlineMs: 20_000,
    everyMs: 100,
  });
  // Reconnecting is paced: without that it is tens of thousands.
  expect(await refused()).toBeLessThan(300);
  await bench.redis.replicaof("NO", "ONE");
  expect(service.said.stderr.split("\n").length - before).toBeLessThan(100);
  await roundsBeyond(service, roundsOf(service) + 1, 30_000);
  await lateUsageArrives(bench);
});

test("a job whose lock is lost is given up, and its place is free for others", {
  timeout: LONG,
}, async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  // Each place of the worker waits for an answer that does not come for two minutes.
  bench.standin.faults.script({ fault: { kind: "hang" }, times: 4, match: { path: "granular-usage" } });
  const service = await bench.serve();
  const locks = () => bench.redis.keys("{usage-etl}:fetch-default:*:lock");
  const held = await poll(async () => ((await locks()).length === 4 ? locks() : undefined), {
    deadlineMs: 20_000,
  });
  await bench.redis.del(...(held ?? []));
  await bench.loaded(60_000);
  const reasons = logOf(service).map((line) => String(line.reason));
  expect(reasons.filter((reason) => reason.startsWith("could not renew lock"))).not.toEqual([]);
});

test("half-open connections to Redis are given up after 30 s", { timeout: LONG }, async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  const url = new URL(bench.redisUrl);
  const forwarder = await startForwarder(Number(url.port));
  url.port = String(forwarder.port);
  const service = await bench.serve({ environment: { REDIS_URL: url.href } });
  await bench.loaded();
  const dead = forwarder.freeze();
  expect(dead.length).toBeGreaterThan(2);
  // Nobody but the service itself closes them.
  const since = performance.now();
  await poll(() => dead.some((socket) => socket.destroyed), { deadlineMs: 60_000, everyMs: 100 });
  forwarder.thaw();
  await poll(() => dead.every((socket) => socket.destroyed), { deadlineMs: 60_000, everyMs: 100 });
  expect(performance.now() - since).toBeLessThan(60_000);
  await roundsBeyond(service, roundsOf(service) + 1, 30_000);
  await lateUsageArrives(bench);
});

test("a start before Redis waits for it; Redis killed and back empty: the service goes on", {
  timeout: LONG,
}, async () => {
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
  const before = roundsOf(service);
  await startRedis(port);
  await roundsBeyond(service, before + 1, 60_000);
  await lateUsageArrives(bench);
  expect(service.process.exitCode).toBeNull();
});
