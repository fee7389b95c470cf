import { expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { asRun } from "../../../src/core/pipeline/as-run.ts";
import { planSource } from "../../../src/core/pipeline/sync/plan.ts";
import { planSync } from "../../../src/core/pipeline/sync/sync.ts";
import { listRuns, requestsOfRun } from "../../../src/core/store/activity/run-history.ts";
import {
  createBackfill,
  failedTasks,
  finishBackfills,
  listBackfills,
} from "../../../src/core/store/work/backfills.ts";
import { beginRun, endRun, keepSeen } from "../../../src/core/store/work/runs.ts";
import { describeBackfills } from "../../../src/features/backfill/backfill.command.ts";
import { workAll } from "../../support/by-queue.ts";
import { poll } from "../../support/poll.ts";
import { setReadable, setup } from "../../support/source.ts";

const ADA = { name: "ada", role: "operator", via: "command" } as const;

test("a sync is running while its fetch tasks are left; at their end their requests and failures are its own", async () => {
  const bench = await setup({ workspaces: [0], days: 3, hourlyForMs: 3_600_000 });
  const source = await bench.open();
  const { db } = source.store;
  const sync = () =>
    asRun(
      source,
      "sync",
      async (runId) => planSync({ ...source, runId }),
      ({ created }) => ({ outcome: "done", tasks: created }),
    );
  const { created } = await sync();
  expect(await listRuns(db, { most: 5 })).toMatchObject([
    { kind: "sync", outcome: "running", left: created, finishedAt: null, requests: null },
  ]);

  const match = { path: "granular-usage", query: { group_by: "user" } };
  bench.standin.faults.script({ fault: { kind: "status", status: 400 }, times: 10_000, match });
  await workAll(source);
  const [first] = await listRuns(db, { most: 5 });
  expect(first).toMatchObject({ outcome: "partly_failed", left: 0, code: "request_refused" });
  expect(first?.reason).toContain("400");
  expect(first?.failed).toBeGreaterThan(0);
  const requests = await requestsOfRun(db, first?.runId ?? 0);
  expect(requests.reduce((sum, one) => sum + one.requests, 0)).toBe(first?.requests);
  const [{ sent } = { sent: 0 }] = await bench.sql<{ sent: number }>(
    "SELECT count(*)::integer AS sent FROM usage.fetch",
  );
  expect(first?.requests).toBe(sent);

  bench.standin.faults.set({ script: [] });
  await asRun(
    source,
    "sync",
    async () => {},
    () => ({ outcome: "done" }),
  );
  expect((await listRuns(db, { most: 5 })).map(({ outcome, requests: own }) => [outcome, own])).toEqual([
    ["done", null],
    ["partly_failed", sent],
  ]);
});

test("a backfill never says done alone where a fetch task failed, and each failed task has a reason", async () => {
  const bench = await setup({ workspaces: [0, 1] });
  await bench.sync();
  setReadable(bench.standin, 1, false);
  const lost = bench.workspaceIds.slice(1);
  const source = await bench.open();
  const { sourceId, store } = source;
  const range = { start: bench.dataStart, end: bench.dataStart + DAY_MS };
  const groupings = ["project" as const];
  const tasks = await planSource(source, {
    wanted: [{ stride: "day", range }],
    groupings,
    reprocess: "all",
    workspaceIds: lost,
  });
  const wanted = { sourceId, range, stride: "day" as const, groupings, workspaceIds: lost };
  const backfillId = await createBackfill(store, {
    meter: "traces",
    ...wanted,
    reprocess: "all",
    tasks,
    by: ADA,
  });
  await workAll(source);
  await finishBackfills(store);

  expect(await failedTasks(store.db, backfillId)).toMatchObject([
    { code: "workspace_unverified", message: expect.stringMatching(/proof of access/) },
  ]);
  expect(describeBackfills(await listBackfills(store.db))).toMatch(/^ *1 +done, 1 failed /m);
  const reason = expect.stringMatching(/proof of access/);
  expect(await listRuns(store.db, { kind: "backfill", most: 1 })).toMatchObject([
    { backfillId, outcome: "partly_failed", failed: 1, requests: 1, code: "workspace_unverified", reason },
  ]);
});

test("a run whose process was not at it for five minutes is lost, also with fetch tasks left", async () => {
  const bench = await setup({ workspaces: [0], days: 3, hourlyForMs: 3_600_000 });
  const source = await bench.open();
  const { db } = source.store;
  const runId = await beginRun(db, { sourceId: source.sourceId, kind: "sync" });
  const { created } = await planSync({ ...source, runId });
  expect(created).toBeGreaterThan(0);
  const after = async (startedAgo: string, seenAgo: string) => {
    await bench.sql(
      "UPDATE usage.run SET started_at = now() - $1::interval, seen_at = now() - $2::interval WHERE run_id = $3",
      [startedAgo, seenAgo, runId],
    );
    const [run] = await listRuns(db, { most: 1 });
    return [run?.outcome, run?.left, run?.finishedAt !== null];
  };
  expect(await after("2 hours", "4 min 50 s")).toEqual(["running", created, false]);
  expect(await after("2 hours", "5 min 1 s")).toEqual(["lost", created, true]);
  expect(await after("6 min", "6 min")).toEqual(["lost", created, true]);

  // It is seen again as soon as its process says so.
  const stop = keepSeen(db, runId, { everyMs: 5 });
  await poll(async () => (await listRuns(db, { most: 1 }))[0]?.outcome === "running");
  await stop();
  const [first] = await bench.sql("SELECT seen_at FROM usage.run");
  await endRun(db, runId, { outcome: "done" });
  expect(await bench.sql("SELECT seen_at FROM usage.run")).toEqual([first]);
});
