import { expect, onTestFinished, test } from "vitest";
import { fetchQueueOf, openQueue, producerConnection } from "../../../jobs/queues.ts";
import { enqueueSlices } from "../../../src/pipeline/sync/enqueue.ts";
import { usageEtl } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";
import { logOf, type ServiceBench, setupService } from "../../support/service.ts";

/** Backfills on demand, done by several processes through the queue. */

const DAY_MS = 86_400_000;
const LONG = 240_000;
/** What `enqueueSlices` keeps in Redis, and a few that are done in Postgres and not yet in Redis. */
const MOST_IN_REDIS = 1_010;

/** The date so many days before today, UTC. */
function daysAgo(days: number): string {
  return new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
}

interface Shown {
  readonly backfillId: number;
  readonly state: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly waiting: number;
  readonly failedSlices: { groupBy: string; from: string; code: string; message: string }[];
}

/** Runs `usage-etl backfill ...` and reads what it says. */
async function backfill(bench: ServiceBench, ...args: string[]) {
  const { code, stdout, stderr } = await usageEtl(["backfill", ...args, "--json"], bench.environment);
  const said = stdout.trim() === "" ? undefined : JSON.parse(stdout);
  return { code, stderr, said: (Array.isArray(said) ? said[0] : said) as Shown };
}

function openFetchQueue(bench: ServiceBench) {
  const connection = producerConnection(bench.redisUrl);
  onTestFinished(async () => connection.disconnect());
  return openQueue("fetch", "default", connection);
}

/** Extract jobs that a process has done. */
function slicesDoneBy(worker: Parameters<typeof logOf>[0]): number {
  return logOf(worker).filter((line) => line.msg === "job" && line.name === "extract-slice").length;
}

test("1,400 slices by two workers: exit 0, both did some, Redis held 1,000 at most", {
  timeout: LONG,
}, async () => {
  const bench = await setupService({ days: 90 });
  const queue = openFetchQueue(bench);
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
    { deadlineMs: LONG, everyMs: 50 },
  );
  const { code, said } = await backfill(
    bench,
    ...["--from", daysAgo(86), "--to", daysAgo(5), "--stride", "hour", "--wait"],
  );
  isOver = true;
  await sampling;
  expect(code).toBe(0);
  expect(said).toMatchObject({ state: "done", failed: 0, waiting: 0, failedSlices: [] });
  expect(said.total).toBeGreaterThan(1_200);
  expect(said.done).toBe(said.total);
  expect(Math.max(...held)).toBeGreaterThan(500);
  expect(Math.max(...held)).toBeLessThanOrEqual(MOST_IN_REDIS);
  for (const worker of workers) expect(slicesDoneBy(worker)).toBeGreaterThan(said.total / 10);
});

test("several that feed at once keep to 1,000 together", { timeout: LONG }, async () => {
  const bench = await setupService({ days: 90 });
  const entered = await backfill(
    bench,
    ...["--from", daysAgo(86), "--to", daysAgo(5), "--stride", "hour", "--detach"],
  );
  expect(entered).toMatchObject({ code: 0, said: { state: "running", done: 0 } });
  const queue = openFetchQueue(bench);
  await queue.waitUntilReady();
  const sourceId = await bench.value<number>("SELECT source_id FROM usage.source");
  await Promise.all(
    Array.from({ length: 6 }, () => enqueueSlices(bench.store, { sourceId, queue: fetchQueueOf(queue) })),
  );
  expect(Number(await bench.value("SELECT count(*) FROM usage.slice WHERE state = 'queued'"))).toBe(1_000);
  expect(await queue.getJobCountByTypes("waiting", "prioritized")).toBe(1_000);
});

test("paused it stands still, resumed it goes on, cancelled it stays so", { timeout: LONG }, async () => {
  const bench = await setupService({ days: 40, environment: { USAGE_RATE_LIMIT: "600" } });
  const service = await bench.serve();
  const entered = await backfill(
    bench,
    ...["--from", daysAgo(38), "--to", daysAgo(5), "--stride", "hour", "--detach"],
  );
  const id = String(entered.said.backfillId);
  const done = async () =>
    Number(
      await bench.value(`SELECT count(*) FROM usage.slice WHERE backfill_id = ${id} AND state = 'done'`),
    );
  const grownBeyond = (before: number) =>
    poll(async () => (await done()) > before, { deadlineMs: 60_000, everyMs: 100 });
  await grownBeyond(0);

  expect(await backfill(bench, "pause", id)).toMatchObject({ code: 0, said: { state: "paused" } });
  const queued = `SELECT count(*) FROM usage.slice WHERE backfill_id = ${id} AND state = 'queued'`;
  await poll(async () => Number(await bench.value(queued)) === 0, { deadlineMs: 30_000, everyMs: 100 });
  const stood = await done();
  const rounds = () =>
    logOf(service).filter((line) => line.msg === "job" && line.name === "plan-round").length;
  const before = rounds();
  await poll(() => rounds() > before + 1, { deadlineMs: 30_000 });
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
