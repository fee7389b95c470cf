import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { beginFetch, finishFetch } from "../../../src/core/store/work/fetch-ledger.ts";
import { claimTask, createTasks, endTask, takeTasksToQueue } from "../../../src/core/store/work/tasks.ts";
import { poll } from "../../support/poll.ts";
import { untilLockWaits } from "../../support/store.ts";
import { createSource, FIRST_DAY, setupStore } from "./setup.ts";

const SEED = 107;
const day = (at: number) => ({
  stride: "day" as const,
  start: FIRST_DAY + at * DAY_MS,
  end: FIRST_DAY + (at + 1) * DAY_MS,
});

async function setup() {
  const bundle = await setupStore();
  const sourceId = await createSource(bundle, { workspaceIds: ["a"], dataStart: FIRST_DAY });
  const { rows } = await bundle.reader.query<{ scope_id: number }>(
    "SELECT scope_id FROM usage.trace_scope WHERE group_by = 'project' AND stride = 'day'",
  );
  const members = [{ workspaceId: "a", scopeId: rows[0]?.scope_id as number }];
  const backfill = async (state: string, age: number) => {
    const { rows: added } = await bundle.reader.query<{ backfill_id: number }>(
      `INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspace_ids, reprocess, state, created_at)
       VALUES ($1, 'day', '2026-02-01Z', '2026-02-02Z', '{project}', '{a}', 'all', $2, '2026-06-01Z'::timestamptz - $3 * interval '1 day')
       RETURNING backfill_id`,
      [sourceId, state, age],
    );
    return added[0]?.backfill_id as number;
  };
  const take = (most: number) =>
    bundle.store.transaction(({ db }) => takeTasksToQueue(db, { sourceId, most }));
  return { ...bundle, sourceId, members, backfill, take };
}

interface Drawn {
  readonly of: "routine" | "running" | "other" | "paused";
  readonly groupBy: string;
  readonly stride: string;
  readonly isIdle: boolean;
  readonly age: number;
  readonly from: number;
  readonly due: number | null;
}

const drawn: fc.Arbitrary<Drawn> = fc
  .record({
    of: fc.constantFrom("routine", "routine", "running", "other", "paused"),
    groupBy: fc.constantFrom("workspace", "project", "user"),
    stride: fc.constantFrom("day", "hour"),
    isIdle: fc.boolean(),
    age: fc.nat(3),
    from: fc.nat(40),
    due: fc.option(fc.constantFrom(-3, -2, -1, 1)),
  })
  .map((one) => (one.of === "routine" && one.groupBy !== "workspace" ? one : { ...one, due: null }));

/** A backfill has waited since it began, whatever its tasks. */
const AGES = { running: 2.5, other: 0.5, paused: 5 };

const byRule = (a: Drawn, b: Drawn) =>
  Number(a.groupBy !== "workspace") - Number(b.groupBy !== "workspace") ||
  Number(a.stride === "hour") - Number(b.stride === "hour") ||
  Number(a.isIdle) - Number(b.isIdle) ||
  b.from - a.from;

const turnOf = ({ groupBy, due }: Drawn) => (groupBy === "workspace" ? 0 : due !== null && due < 0 ? 1 : 2);
const byTurn = (a: Drawn, b: Drawn) =>
  turnOf(a) - turnOf(b) ||
  (turnOf(a) === 1
    ? Number(a.stride === "hour") - Number(b.stride === "hour") || (a.due ?? 0) - (b.due ?? 0)
    : byRule(a, b));

test("what is taken is the quarter that waited longest, the routine by workspace, what is due, the rest of the routine, then running backfills, each by the rule", async () => {
  const bundle = await setup();
  const { reader, sourceId, backfill, take } = bundle;
  const backfills = {
    routine: null,
    running: await backfill("running", AGES.running),
    other: await backfill("running", AGES.other),
    paused: await backfill("paused", AGES.paused),
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(drawn, { maxLength: 40 }),
      fc.nat(10),
      fc.nat(4),
      async (tasks, fours, full) => {
        await reader.query("DELETE FROM usage.fetch_task");
        const { rows } = await reader.query<{ task_id: string; n: number }>(
          `WITH s AS (
           SELECT n, d.* FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY e (one, n),
             jsonb_to_record(one) d ("backfillId" integer, "groupBy" text, stride text, "isIdle" boolean, age integer, "from" integer, due integer)
         ), i AS (
           -- The scope tells them apart: a task of the routine is there once.
           INSERT INTO usage.fetch_task (source_id, backfill_id, group_by, stride, is_idle, period_start, period_end, scope_ids, workspace_ids, created_at, due_from)
           SELECT $1, "backfillId", "groupBy", stride, "isIdle", '2026-02-01Z'::timestamptz + "from" * interval '1 day',
             '2026-02-02Z'::timestamptz + "from" * interval '1 day', ARRAY[n::integer], '{a}', '2026-06-01Z'::timestamptz - age * interval '1 day',
             now() + due * interval '1 day'
           FROM s ORDER BY n RETURNING task_id, scope_ids[1] AS n
         ) SELECT task_id, n FROM i ORDER BY n`,
          [sourceId, JSON.stringify(tasks.map((one) => ({ ...one, backfillId: backfills[one.of] })))],
        );
        const waiting = tasks.map((one, i) => ({ ...one, id: Number(rows[i]?.task_id) }));
        await reader.query(
          `INSERT INTO usage.fetch_task (source_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids, state, leased_until)
         SELECT $1, 'user', 'day', '2026-01-01Z', '2026-01-02Z', ARRAY[1000 + n], '{a}', 'queued', now() FROM generate_series(1, $2::integer) n`,
          [sourceId, full],
        );
        const taken = (await take(full + 4 * fours)).map(({ taskId }) => taskId);

        const inTurn = (some: readonly (Drawn & { id: number })[]) =>
          some.toSorted((a, b) => byTurn(a, b) || a.id - b.id);
        const ageOf = ({ of, age }: Drawn) => (of === "routine" ? age : AGES[of]);
        const oldest = waiting
          .filter(({ of }) => of !== "paused")
          .toSorted((a, b) => ageOf(b) - ageOf(a) || byRule(a, b) || a.id - b.id)
          .slice(0, fours);
        const [rest = [], left = []] = [["routine"], ["running", "other"]].map((whose) =>
          inTurn(waiting.filter((one) => whose.includes(one.of) && !oldest.includes(one))),
        );
        const expected = [...oldest, ...rest, ...left].slice(0, 4 * fours);
        const kindOf = (id: number) => {
          const { of, groupBy, stride, isIdle, from, due } = waiting.find((one) => one.id === id) ?? {};
          const rest = (due ?? 0) < 0 ? due : `${isIdle} ${from}`;
          return `${of === "routine"} ${groupBy === "workspace"} ${stride} ${rest}`;
        };
        expect(taken.map(kindOf)).toEqual(expected.map(({ id }) => kindOf(id)));
        expect(new Set(taken).size).toBe(taken.length);
        const { rows: queued } = await reader.query<{ task_id: string }>(
          "SELECT task_id FROM usage.fetch_task WHERE state = 'queued' AND generation = 1 ORDER BY 1",
        );
        expect(queued.map((row) => Number(row.task_id))).toEqual(taken.toSorted((a, b) => a - b));
      },
    ),
    { seed: SEED, numRuns: 60 },
  );
});

test("whatever comes and however few places there are, nothing waits for ever, and nothing is taken before what the rule puts first", async () => {
  const bundle = await setup();
  const { reader, sourceId, backfill, take } = bundle;
  const running = await backfill("running", 0);
  let scope = 0;
  const create = async (tasks: readonly Drawn[], at: number) => {
    const rows = tasks.map((one) => ({
      ...one,
      scope: ++scope,
      backfill: one.of === "running" ? running : null,
    }));
    await reader.query(
      `INSERT INTO usage.fetch_task (source_id, backfill_id, group_by, stride, is_idle, period_start, period_end, scope_ids, workspace_ids, created_at, due_from)
       SELECT $1, backfill, "groupBy", stride, "isIdle", '2026-02-01Z'::timestamptz + "from" * interval '1 day',
         '2026-02-02Z'::timestamptz + "from" * interval '1 day', ARRAY[scope], '{a}', '2026-06-01Z'::timestamptz + $3 * interval '15 minutes',
         now() + due * interval '1 day'
       FROM jsonb_to_recordset($2) d (backfill integer, "groupBy" text, stride text, "isIdle" boolean, "from" integer, due integer, scope integer)`,
      [sourceId, JSON.stringify(rows), at],
    );
  };
  const waiting = async () => {
    const { rows } = await reader.query<Drawn & { id: number; at: number }>(
      `SELECT task_id::integer AS id, CASE WHEN backfill_id IS NULL THEN 'routine' ELSE 'running' END AS of, t.group_by AS "groupBy", t.stride,
         t.is_idle AS "isIdle", extract(epoch FROM t.period_start)::float8 AS "from", round(extract(epoch FROM t.due_from - now()) / 86400)::integer AS due,
         extract(epoch FROM coalesce(b.created_at, t.created_at))::float8 AS at
       FROM usage.fetch_task t LEFT JOIN usage.backfill b USING (backfill_id) WHERE t.state = 'waiting'`,
    );
    return rows;
  };
  const sync = fc.record({
    load: fc.array(drawn, { minLength: 10, maxLength: 20 }),
    fours: fc.integer({ min: 1, max: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(sync, { minLength: 3, maxLength: 10 }),
      fc.boolean(),
      async (syncs, isRoutine) => {
        await reader.query("DELETE FROM usage.fetch_task");
        for (const [at, { load, fours }] of syncs.entries()) {
          await create(isRoutine ? load.filter(({ of }) => of !== "running") : load, at);
          const before = await waiting();
          const taken = new Set((await take(4 * fours)).map(({ taskId }) => taskId));
          const after = await waiting();
          // Those before a task that waits become fewer each time, by a quarter of the places: so its turn comes.
          for (const one of after) {
            const ahead = (some: typeof after) => some.filter((other) => other.at <= one.at).length;
            expect(ahead(after)).toBeLessThanOrEqual(ahead(before) - fours);
          }
          const routine = before.filter(({ of }) => of === "routine");
          const late = routine.filter(
            (one) =>
              taken.has(one.id) && after.some((other) => other.of === "routine" && byTurn(other, one) < 0),
          );
          expect(late.length).toBeLessThanOrEqual(fours);
          await reader.query("DELETE FROM usage.fetch_task WHERE state = 'queued'");
        }
      },
    ),
    { seed: SEED, numRuns: 20 },
  );
});

test("a task is due from when its oldest provisional figure is too old; hours are as old as their days", async () => {
  const { store, reader, sourceId } = await setup();
  const { rows: scopes } = await reader.query<{ id: number; of: string }>(
    `SELECT scope_id AS id, group_by || ' ' || stride AS of FROM usage.trace_scope WHERE stride IN ('hour', 'day')`,
  );
  const idOf = (of: string) => scopes.find((one) => one.of === of)?.id as number;
  const loaded = async (of: string, from: number, final: boolean, minutesAgo: number) =>
    reader.query(
      `INSERT INTO usage.coverage (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced)
       VALUES ($1, $2, $3, $4, 1, date_trunc('minute', now()) - $5 * interval '1 minute', '{}')`,
      [idOf(of), new Date(day(from).start), new Date(day(from).end), final, minutesAgo],
    );
  const ages = async (dueAfterMs: number | undefined) => {
    const tasks = scopes.map(({ id, of }) => {
      const [groupBy, stride] = of.split(" ") as ["project", "day"];
      const window = { stride, start: day(0).start, end: day(2).end };
      return { meter: "traces", groupBy, window, members: [{ workspaceId: "a", scopeId: id }] } as const;
    });
    await createTasks(store.db, { sourceId, tasks, dueAfterMs });
    const { rows } = await reader.query<{ of: string; ago: number | null }>(
      `DELETE FROM usage.fetch_task RETURNING group_by || ' ' || stride AS of,
         (extract(epoch FROM date_trunc('minute', now()) + interval '45 minutes' - due_from) / 60)::float8 AS ago`,
    );
    return Object.fromEntries(rows.flatMap(({ of, ago }) => (ago === null ? [] : [[of, Math.round(ago)]])));
  };
  await loaded("workspace day", 0, false, 90);
  await loaded("project day", 0, true, 900);
  await loaded("project day", 1, false, 30);
  await loaded("project day", 2, false, 20);
  await loaded("project hour", 1, false, 50);
  await loaded("user day", 1, false, 80);
  await loaded("user hour", 1, false, 50);
  await loaded("api_key day", 1, false, 10);
  expect(await ages(undefined)).toEqual({});
  // A minute may end meanwhile.
  const due = await ages(45 * 60_000);
  expect(Object.keys(due).sort()).toEqual([
    "api_key day",
    "project day",
    "project hour",
    "user day",
    "user hour",
  ]);
  for (const [of, ago] of Object.entries({
    "project day": 30,
    "project hour": 30,
    "user day": 80,
    "user hour": 50,
    "api_key day": 10,
  })) {
    expect(due[of]).toBeGreaterThanOrEqual(ago);
    expect(due[of]).toBeLessThan(ago + 10);
  }
});

test("nothing is taken of a source whose key is refused", async () => {
  const { store, reader, sourceId, members, take } = await setup();
  const tasks = [{ meter: "traces", groupBy: "project", window: day(0), members }] as const;
  await createTasks(store.db, { sourceId, tasks });
  await reader.query(
    "UPDATE usage.source SET refused_at = now(), refused_code = 'unauthorized', refused_message = 'no'",
  );
  expect(await take(10)).toEqual([]);
  await reader.query(
    "UPDATE usage.source SET refused_at = NULL, refused_code = NULL, refused_message = NULL",
  );
  expect(await take(10)).toHaveLength(1);
});

test("taking a thousand of a hundred thousand reads some thousands", async () => {
  const { reader, sourceId, take } = await setup();
  await reader.query(
    `INSERT INTO usage.fetch_task (source_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids, created_at, due_from)
     SELECT $1, 'user', 'day', '2026-01-01Z', '2026-01-02Z', ARRAY[n], '{a}', now() + n / 500 * interval '1 ms',
       now() - n * 7919 % 100000 * interval '1 ms'
     FROM generate_series(1, 100000) n`,
    [sourceId],
  );
  await reader.query("ANALYZE usage.fetch_task");
  const read = async () => {
    const { rows } = await reader.query<{ n: string }>(
      `SELECT coalesce(sum(idx_tup_read), 0) + (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'usage.fetch_task'::regclass) AS n
       FROM pg_stat_user_indexes WHERE relid = 'usage.fetch_task'::regclass`,
    );
    return Number(rows[0]?.n);
  };
  const before = await read();
  expect(await take(1000)).toHaveLength(1000);
  await poll(async () => (await read()) > before);
  expect((await read()) - before).toBeLessThan(20_000);
});

test.each(["alone", "with its fetch"])(
  "a worker that ends a task %s while it is queued anew does not end that",
  async (how) => {
    const { store, reader, sourceId, members, take } = await setup();
    const tasks = [{ meter: "traces", groupBy: "project", window: day(0), members }] as const;
    await createTasks(store.db, { sourceId, tasks });
    const [message] = await take(1);
    const task = await claimTask(store.db, message as { taskId: number; generation: number });
    if (task === undefined) throw new Error("no task");
    const fetch = {
      sourceId,
      purpose: "load",
      meter: "traces",
      groupBy: "project",
      window: day(0),
      workspaces: 1,
    } as const;
    const fetchToken = await beginFetch(store.db, fetch);
    const ending = { task, state: "done" } as const;

    await reader.query("BEGIN");
    await reader.query("UPDATE usage.fetch_task SET generation = generation + 1");
    const ended =
      how === "alone"
        ? endTask(store.db, ending)
        : finishFetch(store.db, fetchToken, { outcome: "loaded", task: ending });
    await untilLockWaits(store);
    await reader.query("COMMIT");
    await ended;
    const { rows } = await reader.query("SELECT state, generation FROM usage.fetch_task");
    expect(rows).toEqual([{ state: "queued", generation: 2 }]);
    const { rows: ledger } = await reader.query("SELECT outcome FROM usage.fetch");
    expect(ledger).toEqual([{ outcome: how === "alone" ? "running" : "loaded" }]);
    await endTask(store.db, { task: { ...task, generation: 2 }, state: "done" });
    expect((await reader.query("SELECT FROM usage.fetch_task")).rows).toEqual([]);
  },
);
