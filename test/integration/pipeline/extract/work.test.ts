import { expect, test } from "vitest";
import { EtlError } from "../../../../src/core/base/errors.ts";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { extractTask } from "../../../../src/core/pipeline/extract/extract.ts";
import { LOCK_LOST, workMessage } from "../../../../src/core/pipeline/extract/work-task.ts";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { noteRefusal } from "../../../../src/core/store/catalog/sources.ts";
import {
  claimTask,
  createTasks,
  releaseTasks,
  takeTasksToQueue,
} from "../../../../src/core/store/work/tasks.ts";
import { setup } from "../../../support/source.ts";

/** What becomes of a task whose worker ended between its load and saying so. */

async function setupTask(range: { from: number; to: number } = { from: 0, to: 2 }) {
  const bench = await setup({ workspaces: [0] });
  const source = await bench.open();
  const { store, sourceId } = source;
  const start = bench.dataStart + range.from * DAY_MS;
  const end = bench.dataStart + range.to * DAY_MS;
  const [planned] = (
    await planSource(source, { wanted: [{ stride: "day", range: { start, end } }], reprocess: "all" })
  ).filter(({ groupBy }) => groupBy === "project");
  if (planned === undefined) throw new Error("no task");
  await createTasks(store.db, { sourceId, tasks: [planned] });
  const feed = async () => {
    const [ticket] = await store.transaction(({ db }) => takeTasksToQueue(db, { sourceId, most: 1 }));
    if (ticket === undefined) throw new Error("nothing to feed");
    return ticket;
  };
  return {
    ...bench,
    source,
    planned,
    feed,
    claimAndDie: async (work: () => Promise<unknown>) => {
      const ticket = await feed();
      expect(await claimTask(store.db, ticket)).toBeDefined();
      await work();
      await releaseTasks(store.db, [ticket.taskId]);
    },
    work: async () => workMessage(source, { ...(await feed()), isLastAttempt: false }),
    tasks: () => bench.sql("SELECT state FROM usage.fetch_task"),
    /** Ends as failed, with `signal` where it is given, so many times; each time the next worker takes it. */
    failTimes: async (times: number, signal?: AbortSignal) => {
      const { taskId } = await feed();
      const codes = new Set<unknown>();
      for (let n = 0; n < times; n++) {
        const [row] = await bench.sql<{ generation: number }>("SELECT generation FROM usage.fetch_task");
        const message = { taskId, generation: row?.generation ?? 0, isLastAttempt: false };
        // The queue tries again, so a request is sent once.
        const own = { ...source, attempts: 1, ...(signal === undefined ? {} : { signal }) };
        await workMessage(own, message).then(
          (result) => codes.add(result.outcome),
          (error) => codes.add(error.code ?? error),
        );
      }
      await releaseTasks(store.db, [taskId]);
      await noteRefusal(store.db, sourceId, undefined);
      return [...codes];
    },
    openClaims: async () =>
      (await bench.sql<{ open_claims: number }>("SELECT open_claims FROM usage.fetch_task"))[0]?.open_claims,
    loads: async () => (await bench.sql("SELECT FROM usage.fetch WHERE outcome = 'loaded'")).length,
  };
}

test("a task that was loaded by a worker that died is not fetched again", async () => {
  const bench = await setupTask();
  await bench.claimAndDie(() => extractTask(bench.source, bench.planned));
  expect(await bench.work()).toMatchObject({ outcome: "loaded_already" });
  expect(await bench.tasks()).toEqual([]);
  expect(await bench.loads()).toBe(1);
});

test("a task that was not loaded, or only in part, is fetched whole", async () => {
  const bench = await setupTask();
  await bench.claimAndDie(async () => {});
  const [first] = await planSource(bench.source, {
    wanted: [{ stride: "day", range: { start: bench.dataStart, end: bench.dataStart + DAY_MS } }],
    reprocess: "all",
  }).then((tasks) => tasks.filter(({ groupBy }) => groupBy === "project"));
  if (first === undefined) throw new Error("no task");
  await bench.claimAndDie(() => extractTask(bench.source, first));
  expect(await bench.work()).toMatchObject({ outcome: "loaded", requests: 1 });
  expect(await bench.tasks()).toEqual([]);
});

test("a task of two workspaces, of which one was loaded, is fetched whole", async () => {
  const bench = await setup({ workspaces: [0, 1] });
  const source = await bench.open();
  const { store, sourceId } = source;
  const range = { start: bench.dataStart, end: bench.dataStart + 2 * DAY_MS };
  const tasks = await planSource(source, { wanted: [{ stride: "day", range }], reprocess: "all" });
  const both = tasks.find(({ members }) => members.length === 2);
  if (both === undefined) throw new Error("no task of two workspaces");
  await createTasks(store.db, { sourceId, tasks: [both] });
  await extractTask(source, { ...both, members: both.members.slice(0, 1) });
  const [ticket] = await store.transaction(({ db }) => takeTasksToQueue(db, { sourceId, most: 1 }));
  if (ticket === undefined) throw new Error("nothing to feed");
  expect(await workMessage(source, { ...ticket, isLastAttempt: false })).toMatchObject({
    outcome: "loaded",
    requests: 1,
  });
});

test.each([
  ["the ledger of fetches", "UPDATE ON usage.fetch"],
  ["the task's row", "DELETE ON usage.fetch_task"],
])("where %s cannot be written after a load, neither is, and nothing is fetched again", async (_, write) => {
  const bench = await setupTask();
  await bench.sql(`CREATE FUNCTION usage.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '53100'; END $$`);
  await bench.sql(`CREATE TRIGGER refuse BEFORE ${write} FOR EACH ROW EXECUTE FUNCTION usage.refuse()`);
  expect(await bench.failTimes(1)).toEqual(["53100"]);
  expect(await bench.tasks()).toEqual([{ state: "waiting" }]);
  expect(await bench.sql("SELECT outcome FROM usage.fetch WHERE purpose = 'load'")).toEqual([
    { outcome: "running" },
  ]);
  await bench.sql(`DROP TRIGGER refuse ON ${write.split(" ON ")[1]}`);
  expect(await bench.work()).toMatchObject({ outcome: "loaded_already" });
  expect(await bench.tasks()).toEqual([]);
});

test("a load from before the task was entered does not count", async () => {
  const bench = await setupTask();
  await extractTask(bench.source, bench.planned);
  await bench.sql("UPDATE usage.fetch_task SET created_at = now()");
  await bench.claimAndDie(async () => {});
  expect(await bench.work()).toMatchObject({ outcome: "loaded", requests: 1 });
});

/** More often than a task may be taken without being handed back. */
const OFTEN = 25;

const DRAINING = new EtlError({ code: "draining", message: "The process ends.", next: "Nothing." });

test.each([
  ["rate_limited", 429],
  ["server_error", 503],
  ["unauthorized", 401],
] as const)("a task whose every response is %s is handed back, and is not poisoned", async (code, status) => {
  const bench = await setupTask();
  bench.standin.faults.script({
    fault: { kind: "status", status, retry_after: 1 },
    times: OFTEN,
    match: { path: "granular-usage" },
  });
  expect(await bench.failTimes(OFTEN)).toEqual([code]);
  expect(await bench.openClaims()).toBe(0);
  expect(await bench.work()).toMatchObject({ outcome: "loaded" });
});

test("a task that ending processes hand back is not poisoned, however many restarts there are", async () => {
  const bench = await setupTask();
  expect(await bench.failTimes(OFTEN, AbortSignal.abort(DRAINING))).toEqual(["draining"]);
  expect(await bench.openClaims()).toBe(0);
  expect(await bench.work()).toMatchObject({ outcome: "loaded" });
});

test.each(["53100", "40P01"])(
  "a task that Postgres cannot keep (%s) is handed back, and is not poisoned",
  async (state) => {
    const bench = await setupTask();
    await bench.sql(`CREATE FUNCTION usage.refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '${state}'; END $$`);
    await bench.sql(
      `CREATE TRIGGER refuse BEFORE INSERT ON usage.dated_record EXECUTE FUNCTION usage.refuse()`,
    );
    expect(await bench.failTimes(OFTEN)).toEqual([state]);
    expect(await bench.openClaims()).toBe(0);
    await bench.sql("DROP TRIGGER refuse ON usage.dated_record");
    expect(await bench.work()).toMatchObject({ outcome: "loaded" });
  },
);

test("a task that cannot be handed back while Postgres is away is handed back later", async () => {
  const bench = await setupTask();
  const later: (() => Promise<void>)[] = [];
  const message = { ...(await bench.feed()), isLastAttempt: false };
  const source = {
    ...bench.source,
    signal: AbortSignal.abort(DRAINING),
    gate: { check: () => {}, onceWritable: async (write: () => Promise<void>) => void later.push(write) },
  };
  await expect(workMessage(source, message)).rejects.toMatchObject({ code: "draining" });
  await releaseTasks(bench.store.db, [message.taskId]);
  expect(await claimTask(bench.store.db, await bench.feed())).toMatchObject({ openClaims: 2 });
  for (const write of later) await write();
  expect(await bench.openClaims()).toBe(1);
});

test.each([
  [
    "whose workers were killed",
    async (bench: Awaited<ReturnType<typeof setupTask>>) => {
      for (let n = 0; n < 20; n++) await bench.claimAndDie(async () => {});
    },
  ],
  [
    "whose workers stood still until their lock was lost",
    async (bench) => {
      await bench.failTimes(20, AbortSignal.abort(LOCK_LOST));
    },
  ],
  [
    "that fails by an error that nobody expects",
    async (bench) => {
      await bench.sql("ALTER TABLE usage.dated_record ADD CONSTRAINT odd CHECK (traces < 0) NOT VALID");
      expect(await bench.failTimes(20)).toEqual(["23514"]);
    },
  ],
] as [string, (bench: Awaited<ReturnType<typeof setupTask>>) => Promise<void>][])(
  "a task %s is poisoned when twenty workers have taken it",
  async (_, wear) => {
    const bench = await setupTask();
    await wear(bench);
    expect(await bench.work()).toEqual({ outcome: "poisoned" });
    expect(await bench.sql("SELECT code FROM usage.failure")).toMatchObject([{ code: "task_poisoned" }]);
  },
);
