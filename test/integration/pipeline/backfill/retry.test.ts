import fc from "fast-check";
import { expect, test } from "vitest";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { listRuns } from "../../../../src/core/store/activity/run-history.ts";
import {
  createBackfill,
  finishBackfills,
  listBackfills,
  type Steering,
  steerBackfill,
} from "../../../../src/core/store/work/backfills.ts";
import { claimTask, endTask, takeTasksToQueue } from "../../../../src/core/store/work/tasks.ts";
import { listActions } from "../../../support/actions.ts";
import { workAll } from "../../../support/by-queue.ts";
import { type Bench, setup } from "../../../support/source.ts";

const ADA = { name: "ada", role: "operator", via: "page" } as const;

async function setupBackfill(bench: Bench) {
  const source = await bench.open();
  const { sourceId, store } = source;
  const range = { start: bench.dataStart, end: bench.today };
  const tasks = await planSource(source, { wanted: [{ stride: "hour", range }], reprocess: "all" });
  const { workspaceIds } = source;
  const wanted = {
    sourceId,
    range,
    stride: "hour" as const,
    groupings: ["workspace" as const],
    workspaceIds,
  };
  const create = (some = tasks) =>
    createBackfill(store, { meter: "traces", ...wanted, reprocess: "all", tasks: some, by: ADA });
  const steer = (backfillId: number, action: Steering) =>
    steerBackfill(store, { backfillId, action, by: ADA });
  const of = async (id: number) => (await listBackfills(store.db, { backfillId: id }))[0];
  const take = (most: number) => store.transaction(({ db }) => takeTasksToQueue(db, { sourceId, most }));
  return { source, store, tasks, create, steer, of, take };
}

test("a finished backfill whose failed tasks are retried runs again, asks for them alone, and is done with nothing failed", async () => {
  const bench = await setup({ workspaces: [0], days: 2 });
  const { source, store, create, steer, of } = await setupBackfill(bench);
  const id = await create();
  const match = { path: "granular-usage", query: { group_by: "user" } };
  bench.standin.faults.script({ fault: { kind: "status", status: 503 }, times: 10_000, match });
  await workAll(source);
  await finishBackfills(store);
  const before = await of(id);
  expect(before).toMatchObject({ state: "done", waiting: 0 });
  expect(before?.failed).toBeGreaterThan(0);
  expect(await listRuns(store.db, { most: 1 })).toMatchObject([
    { outcome: "partly_failed", failed: before?.failed },
  ]);

  bench.standin.faults.clear();
  const requested = bench.standin.requests.count;
  const retried = await steer(id, "retry");
  expect(retried).toMatchObject({ state: "running", finishedAt: null, failed: 0, waiting: before?.failed });
  expect(retried).toMatchObject({ total: before?.total, done: before?.done });
  expect(await listRuns(store.db, { most: 1 })).toMatchObject([
    { outcome: "running", failed: 0, code: null, finishedAt: null },
  ]);
  await expect(steer(id, "retry")).rejects.toMatchObject({ code: "backfill_not_failed" });
  await workAll(source);
  await finishBackfills(store);
  expect(await of(id)).toMatchObject({
    state: "done",
    failed: 0,
    waiting: 0,
    done: before?.total,
    total: before?.total,
  });
  expect(bench.standin.requests.count - requested).toBe(before?.failed);
  expect(await listRuns(store.db, { most: 1 })).toMatchObject([
    { outcome: "done", failed: 0, code: null, reason: null },
  ]);
  expect(await bench.sql("SELECT FROM usage.failure")).toEqual([]);
  expect((await listActions(store.db, { most: 9 })).map(({ action, detail }) => [action, detail])).toEqual([
    ["backfill.retry", `backfill ${id}: ${before?.failed} fetch tasks`],
    [
      "backfill.start",
      expect.stringMatching(/^backfill 1: .* by hour, workspace, 1 workspaces, all, \d+ fetch tasks$/),
    ],
  ]);
  await expect(steer(id, "resume")).rejects.toMatchObject({ code: "backfill_finished" });
  await expect(steer(4711, "retry")).rejects.toMatchObject({ code: "backfill_unknown" });
});

test("whatever order workers and people act in, each task ends once and the counts are those of the tasks", async () => {
  const bench = await setup({ workspaces: [0], days: 1 });
  const { store, tasks, create, steer, of, take } = await setupBackfill(bench);
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant("work" as const) },
    fc.constantFrom("fail", "finish", "retry", "pause", "resume", "stale"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), fc.boolean(), async (steps, atOnce) => {
      const id = await create(tasks.slice(0, 6));
      const ended: number[] = [];
      let stale: { taskId: number; generation: number }[] = [];
      const end = async (how: "done" | "failed") => {
        const messages = await take(2);
        for (const message of messages) {
          const task = await claimTask(store.db, message);
          if (task === undefined) continue;
          await endTask(store.db, { task, state: how, code: "test", message: "test" });
          if (how === "done") ended.push(message.taskId);
        }
        stale = messages;
      };
      const acts: Record<string, () => Promise<unknown>> = {
        work: () => end("done"),
        fail: () => end("failed"),
        finish: () => finishBackfills(store),
        stale: async () => {
          for (const message of stale) expect(await claimTask(store.db, message)).toBeUndefined();
        },
      };
      const act = (name: string) => (acts[name] ?? (() => steer(id, name as Steering).catch(() => {})))();
      if (atOnce) await Promise.all(steps.filter((name) => name !== "stale").map(act));
      else for (const name of steps) await act(name);
      for (const name of ["resume", "retry", "work", "work", "work", "finish"]) await act(name);
      expect(await of(id)).toMatchObject({ state: "done", total: 6, done: 6, failed: 0, waiting: 0 });
      expect([...new Set(ended)].length).toBe(6);
      expect(ended.length).toBe(6);
    }),
    { numRuns: 10 },
  );
});
