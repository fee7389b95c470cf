import { expect, test } from "vitest";
import {
  enqueueTasks,
  type FetchQueue,
  messageId,
  type QueueMessage,
  requeueLost,
} from "../../../../src/core/pipeline/sync/enqueue.ts";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { planSync } from "../../../../src/core/pipeline/sync/sync.ts";
import { createBackfill } from "../../../../src/core/store/work/backfills.ts";
import { claimTask, createTasks, endTask } from "../../../../src/core/store/work/tasks.ts";
import { EVERYTHING, setupMeters } from "../../../support/meters.ts";
import { setup } from "../../../support/source.ts";

/** Tasks in Postgres and messages in a queue that a test may lose, without Redis. */

async function setupQueue() {
  const bench = await setup({ workspaces: [0], days: 2 });
  const source = await bench.open();
  const { store, sourceId } = source;
  const range = { start: bench.dataStart, end: bench.today };
  const tasks = await planSource(source, { wanted: [{ stride: "day", range }], reprocess: "all" });
  const messages = new Map<string, QueueMessage>();
  const queue: FetchQueue = {
    add: async (some) => {
      for (const one of some) messages.set(messageId(one), one);
    },
    present: async () => new Set(messages.keys()),
    remove: async (ids) => ids.filter((id) => messages.delete(id)).length,
  };
  const states = () =>
    bench.sql<{ state: string; n: number }>(
      "SELECT state, count(*)::integer AS n FROM usage.fetch_task GROUP BY 1 ORDER BY 1",
    );
  const backfill = () =>
    createBackfill(store, {
      sourceId,
      meter: "traces",
      range,
      stride: "day",
      groupings: ["workspace"],
      reprocess: "all",
      workspaceIds: bench.workspaceIds,
      tasks,
      by: { name: "ada", role: "operator", via: "page" },
    });
  const about = { sourceId, queue };
  return { bench, store, sourceId, tasks, messages, states, backfill, about };
}

test("waiting tasks are enqueued once, and a message says whether it is of the routine", async () => {
  const { store, sourceId, tasks, messages, states, backfill, about } = await setupQueue();
  expect(tasks).toHaveLength(4);
  expect(await enqueueTasks(store, about)).toEqual({ fed: 0 });
  await createTasks(store.db, { sourceId, tasks });
  expect(await enqueueTasks(store, about)).toEqual({ fed: 4 });
  expect([...messages.values()]).toMatchObject(Array(4).fill({ generation: 1, routine: true }));
  expect(await states()).toEqual([{ state: "queued", n: 4 }]);
  expect(await enqueueTasks(store, about)).toEqual({ fed: 0 });
  messages.clear();
  await backfill();
  expect(await enqueueTasks(store, about)).toEqual({ fed: 4 });
  expect([...messages.values()]).toMatchObject(Array(4).fill({ routine: false }));
});

test("a message that is lost is enqueued again, and one whose task is not queued is removed", async () => {
  const { bench, store, sourceId, tasks, messages, states, about } = await setupQueue();
  await createTasks(store.db, { sourceId, tasks });
  await enqueueTasks(store, about);
  const [lost = ""] = messages.keys();
  const nothing = { requeued: 0, removed: 0, finishedBackfills: 0 };
  expect(await requeueLost(store, about)).toEqual(nothing);
  // Another process may be adding it right now, unless there is none.
  messages.delete(lost);
  expect(await requeueLost(store, about)).toEqual(nothing);
  expect(await requeueLost(store, { ...about, isAlone: true })).toEqual({ ...nothing, requeued: 1 });
  expect(await states()).toEqual([
    { state: "queued", n: 3 },
    { state: "waiting", n: 1 },
  ]);
  expect(await enqueueTasks(store, about)).toEqual({ fed: 1 });

  const second = [...messages.keys()].at(-1) ?? "";
  messages.delete(second);
  for (const [seconds, requeued] of [
    [9, 0],
    [11, 1],
  ] as const) {
    await bench.sql(
      "UPDATE usage.fetch_task SET leased_until = now() + interval '10 minutes' - make_interval(secs => $1) WHERE state = 'queued'",
      [seconds],
    );
    expect(await requeueLost(store, about)).toEqual({ ...nothing, requeued });
  }
  await enqueueTasks(store, about);

  // One whose lease ran out waits again though its message is there, and that message is of no use.
  const [expired = ""] = messages.keys();
  await bench.sql(
    "UPDATE usage.fetch_task SET leased_until = now() - interval '1 second' WHERE task_id = $1",
    [Number(expired.split("-")[0])],
  );
  messages.set("somebody's own", { taskId: 0, generation: 0, routine: false });
  expect(await requeueLost(store, about)).toEqual({ ...nothing, requeued: 1, removed: 1 });
  expect(messages.has(expired)).toBe(false);
  expect(messages.has("somebody's own")).toBe(true);
  expect(messages.size).toBe(4);
});

test("a backfill ends with its last task, whether somebody enqueues or requeues", async () => {
  const { bench, store, messages, backfill, about } = await setupQueue();
  const state = () => bench.sql("SELECT state FROM usage.backfill ORDER BY backfill_id");
  const work = async () => {
    for (const message of messages.values()) {
      const task = await claimTask(store.db, message);
      if (task !== undefined) await endTask(store.db, { task, state: "done" });
    }
    messages.clear();
  };
  await backfill();
  await enqueueTasks(store, about);
  await work();
  expect(await state()).toEqual([{ state: "running" }]);
  await enqueueTasks(store, about);
  expect(await state()).toEqual([{ state: "done" }]);
  await backfill();
  await enqueueTasks(store, about);
  await work();
  expect(await requeueLost(store, about)).toEqual({ requeued: 0, removed: 0, finishedBackfills: 1 });
  expect(await state()).toEqual([{ state: "done" }, { state: "done" }]);
});

test("a sync enters what is missing, of meters that it learns of too, and enters nothing twice", async () => {
  const bench = await setupMeters({ workspaces: [0], days: 3 });
  const source = await bench.open(EVERYTHING);
  const { created, planned } = await planSync(source);
  const byMeter = await bench.sql<{ meter: string; n: number }>(
    `SELECT concat_ws(' ', c.kind, c.trace_tier) AS meter, count(*)::integer AS n
     FROM usage.fetch_task s JOIN usage.scope c ON c.scope_id = s.scope_ids[1] GROUP BY 1 ORDER BY 1`,
  );
  expect(byMeter.map(({ meter }) => meter)).toEqual([
    "langsmith_deployments all",
    "traces all",
    "traces longlived",
  ]);
  expect(created).toBe(byMeter.reduce((all, { n }) => all + n, 0));
  const others = await bench.sql(
    `SELECT FROM usage.fetch_task t JOIN usage.scope c ON c.scope_id = t.scope_ids[1]
     WHERE c.kind = 'traces' AND t.group_by <> 'workspace'`,
  );
  expect([others, planned > created]).toEqual([[], true]);
  expect(await planSync(source)).toMatchObject({ created: 0, planned: 0 });
});
