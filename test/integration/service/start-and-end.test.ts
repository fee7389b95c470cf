import { connect, createServer } from "node:net";
import { pipeline } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/features/servers/start-server.ts";
import { type Running, start } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { openRelay, type Relay } from "../../support/relay.ts";
import { end, logOf, request, setupService } from "../../support/service.ts";

/** A process of the service always ends: when it cannot start, and when a server is silent. */

test("the service waits for Redis at its start", async () => {
  const bench = await setupService({ days: 2, workspaces: 1 });
  const url = new URL(bench.redisUrl);
  const server = Number(url.port);
  const door = createServer((near) => void pipeline(near, connect(server, "127.0.0.1"), near, () => {}));
  const port = await freePort();
  url.port = `${port}`;
  const service = start(["serve"], { ...bench.environment, REDIS_URL: url.href });
  await poll(() => service.said.stderr.includes("Waiting for it. [redis_unreachable]"), {
    deadlineMs: 20_000,
  });
  door.listen(port, "127.0.0.1");
  onTestFinished(() => void door.close());
  await bench.loaded();
  expect(service.said.stderr).toContain("serving as all");
});

test("a route that waits after failures is tried again after a restart, which may bring its setting", async () => {
  const bench = await setupService({ days: 2, workspaces: 1 });
  const service = await bench.serve();
  await bench.loaded();
  await end(service, "SIGTERM");
  const waiting = await bench.count(
    `WITH waits AS (INSERT INTO usage.route_state (source_id, route, problem, failures, next_try_at)
                    SELECT source_id, 'default', 'responded with 503', 9, now() + interval '1 hour' FROM usage.source RETURNING 1)
     SELECT count(*) FROM waits`,
  );
  expect(waiting).toBe(1);
  await bench.serve();
  const isTried = async () => (await bench.count("SELECT count(next_try_at) FROM usage.route_state")) === 0;
  await poll(isTried, { deadlineMs: 120_000 });
});

const HELD_OPEN = "--import=data:text/javascript,setInterval(()=>{},1000)";

test("serve ends within 25 s of SIGTERM although Postgres is silent, waited for, or something never closes", async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  const proxy = await openRelay(bench.databaseUrl);
  const environment = { ...bench.environment, DATABASE_URL: proxy.through(bench.databaseUrl) };
  const working = await bench.serve({ environment });
  await bench.loaded();
  const held = await bench.serve({ role: "http", environment: { NODE_OPTIONS: HELD_OPEN } });
  proxy.silence({ newOnes: true });
  const waiting = start(["serve"], environment);
  await poll(async () => (await request(working, "/readyz")).status === 503, {
    deadlineMs: 30_000,
    everyMs: 100,
  });
  const requested = performance.now();
  const responses = await Promise.all([request(working, "/metrics"), request(working, "/readyz")]);
  const texts = await Promise.all(responses.map((response) => response.text()));
  expect(performance.now() - requested).toBeLessThan(30_000);
  expect(texts[0]).toContain("usage_etl_database_up 0");
  expect(texts[1]).toContain("no response within 3000 ms");
  const ended = await Promise.all([working, waiting, held].map((one) => end(one, "SIGTERM")));
  for (const { ms } of ended) expect(ms).toBeLessThan(45_000);
  expect(ended[2]?.code).toBe(1);
  expect(held.said.stderr).toContain("It did not end within 25 s");
});

test.each([
  ["is away", (proxy: Relay) => proxy.cut({ newOnes: true })],
  ["is silent", (proxy: Relay) => proxy.silence({ newOnes: true })],
])(
  "serve ends with code 0 after SIGTERM although Redis %s, at rest and while it fetches",
  async (_how, lose) => {
    const bench = await setupService({ days: 2, workspaces: 2, environment: { USAGE_SYNC_EVERY: "PT5S" } });
    const proxy = await openRelay(bench.redisUrl);
    const environment = { REDIS_URL: proxy.through(bench.redisUrl) };
    const atRest = await bench.serve({ environment: { ...environment, USAGE_SYNC_EVERY: "PT1H" } });
    const fetching = await bench.serve({ environment });
    await bench.loaded();
    bench.standin.faults.script({
      fault: { kind: "slow", ms: 4_000 },
      times: 100,
      match: { path: "granular-usage" },
    });
    await poll(() => bench.standin.faults.fired > 2, { deadlineMs: 30_000 });
    lose(proxy);
    // The responses come and cannot be acknowledged; the next attempt to reach Redis is seconds away. How many were under way differs.
    const ended = (running: Running) => logOf(running).filter(({ name }) => name === "extract").length;
    const before = ended(atRest) + ended(fetching);
    await poll(() => ended(atRest) + ended(fetching) > before, { deadlineMs: 30_000 });
    const ends = await Promise.all([atRest, fetching].map((one) => end(one, "SIGTERM")));
    // After 25 s it would be 1.
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
  },
);
