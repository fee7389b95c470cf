import { expect, test } from "vitest";
import { fetchQueueOf } from "../../../jobs/queues.ts";
import { enqueueTasks } from "../../../src/core/pipeline/sync/enqueue.ts";
import { start, usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { daysAgo, jobsDone, type ServiceBench, setupService, syncsGoOn } from "../../support/service.ts";

const MOST_IN_REDIS = 1_010;

interface Shown {
  readonly state: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly waiting: number;
  readonly failedTasks: object[];
}

async function backfill(bench: ServiceBench, ...args: string[]) {
  const { code, stdout, stderr } = await usageEtl(["backfill", ...args, "--json"], bench.environment);
  const said = stdout.trim() === "" ? undefined : JSON.parse(stdout);
  return { code, stderr, said: (Array.isArray(said) ? said[0] : said) as Shown };
}

test("two workers share a backfill of 1,200 tasks, and Redis holds 1,000 at most", async () => {
  const bench = await setupService({ days: 80, environment: { USAGE_SYNC_EVERY: "PT10M" } });
  const queue = await bench.openQueue("fetch");
  const [, ...workers] = await Promise.all([
    bench.serve({ role: "scheduler" }),
    bench.serve({ role: "worker" }),
    bench.serve({ role: "worker" }),
  ]);
  const held: number[] = [];
  let isOver = false;
  const sampling = poll(
    async () => {
      held.push(await queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized"));
      return isOver;
    },
    { deadlineMs: 300_000, everyMs: 50 },
  );
  const range = ["--from", daysAgo(76), "--to", daysAgo(5), "--stride", "hour"];
  const { code, said } = await backfill(bench, ...range, "--wait");
  isOver = true;
  await sampling;
  expect(code).toBe(0);
  expect(said).toMatchObject({ state: "done", failed: 0, waiting: 0, failedTasks: [] });
  expect(said.total).toBeGreaterThan(1_100);
  expect(said.done).toBe(said.total);
  expect(Math.max(...held)).toBeGreaterThan(500);
  expect(Math.max(...held)).toBeLessThanOrEqual(MOST_IN_REDIS);
  for (const worker of workers) {
    expect(jobsDone(worker, "extract")).toBeGreaterThan(said.total / 10);
  }
});

test("several processes that enqueue at once keep to 1,000 messages together", async () => {
  const bench = await setupService({ days: 90 });
  await bench.createBackfill("--from", daysAgo(86), "--to", daysAgo(5), "--stride", "hour");
  const queue = await bench.openQueue("fetch");
  const sourceId = await bench.value<number>("SELECT source_id FROM usage.source");
  await Promise.all(
    Array.from({ length: 6 }, () => enqueueTasks(bench.store, { sourceId, queue: fetchQueueOf(queue) })),
  );
  expect(await bench.count("SELECT count(*) FROM usage.fetch_task WHERE state = 'queued'")).toBe(1_000);
  expect(await queue.getJobCountByTypes("waiting", "prioritized")).toBe(1_000);
});

test("waiting for a backfill ends with 5 if the platform refuses the key, and the backfill goes on once it is accepted", async () => {
  const bench = await setupService({ days: 20, workspaces: 1 });
  const args = ["backfill", "--from", daysAgo(20), "--to", daysAgo(0), "--wait"];
  const waiting = start(args, bench.environment);
  const created = "SELECT count(*) FROM usage.fetch_task WHERE backfill_id IS NOT NULL";
  await poll(async () => (await bench.count(created)) > 0, { deadlineMs: 30_000, everyMs: 50 });
  bench.standin.access.revoked = true;
  await bench.serve();
  const { code, stderr } = await waiting.ended;
  expect([code, stderr]).toEqual([5, expect.stringMatching(/refuses the key[\s\S]*backfill show 1/)]);

  // Each command that contacts the platform notes that it accepts the key; the service would try again after an hour.
  bench.standin.access.revoked = false;
  expect((await usageEtl(["doctor"], bench.environment)).code).toBe(0);
  const state = "SELECT state FROM usage.backfill WHERE backfill_id = 1";
  await poll(async () => (await bench.value(state)) === "done", { deadlineMs: 90_000, everyMs: 100 });
  expect((await backfill(bench, "show", "1")).code).toBe(0);
});

test("a paused backfill stops, a resumed one goes on, a cancelled one stays cancelled", async () => {
  const environment = { USAGE_RATE_LIMIT: "200" };
  const bench = await setupService({ days: 40, workspaces: 2, environment });
  const service = await bench.serve();
  const range = ["--from", daysAgo(38), "--to", daysAgo(5), "--stride", "hour"];
  const id = String(await bench.createBackfill(...range));
  const done = () =>
    bench.count(`SELECT count(*) FROM usage.fetch_task WHERE backfill_id = ${id} AND state = 'done'`);
  const grownBeyond = (before: number) =>
    poll(async () => (await done()) > before, { deadlineMs: 60_000, everyMs: 100 });
  await grownBeyond(0);

  expect(await backfill(bench, "pause", id)).toMatchObject({ code: 0, said: { state: "paused" } });
  const queued = `SELECT count(*) FROM usage.fetch_task WHERE backfill_id = ${id} AND state = 'queued'`;
  await poll(async () => (await bench.count(queued)) === 0, { deadlineMs: 30_000, everyMs: 100 });
  const stood = await done();
  await syncsGoOn(service, 2);
  expect(await done()).toBe(stood);

  expect(await backfill(bench, "resume", id)).toMatchObject({ code: 0, said: { state: "running" } });
  await grownBeyond(stood);
  const cancelled = await backfill(bench, "cancel", id);
  expect(cancelled).toMatchObject({ code: 0, said: { state: "cancelled", waiting: 0 } });
  expect(cancelled.said.done).toBeLessThan(cancelled.said.total);
  for (const action of ["resume", "pause", "cancel"]) {
    const refused = await backfill(bench, action, id);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("backfill_finished");
  }
  const unknown = await backfill(bench, "show", "4711");
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain("backfill_unknown");
});
