import { expect, test } from "vitest";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { workMessage } from "../../../../src/core/pipeline/extract/work-task.ts";
import type { OpenSource } from "../../../../src/core/pipeline/source/source.ts";
import { planSync } from "../../../../src/core/pipeline/sync/sync.ts";
import { storeNow } from "../../../../src/core/store/work/fetch-ledger.ts";
import { takeTasksToQueue } from "../../../../src/core/store/work/tasks.ts";
import { cellFacts } from "../../../../src/features/coverage/cell-facts.store.ts";
import { syncByQueue } from "../../../support/by-queue.ts";
import { beginProject, senderOn, setup } from "../../../support/source.ts";

const MINUTE_MS = 60_000;
const SETTINGS = { syncEveryMs: 15 * MINUTE_MS, refreshAfterMs: 60 * MINUTE_MS, settleAfterMs: 30 * DAY_MS };

const [BUSY, IDLE] = [0, 4];

async function setupLoaded(workspace = BUSY) {
  const bench = await setup({ workspaces: [workspace], days: 3, hourlyForMs: DAY_MS });
  const hour = floorToGrid(bench.now, HOUR_MS);
  const quiet = { workspace: IDLE, at: hour - HOUR_MS, traces: 7 };
  const project = workspace === IDLE ? beginProject(bench.standin, quiet) : null;
  const created = () =>
    bench.sql<{ by: string; stride: string; at: Date }>(
      `SELECT group_by AS by, stride, created_at AS at FROM usage.fetch_task WHERE group_by <> 'workspace' ORDER BY stride, group_by`,
    );
  const requests = async () =>
    bench.sql<{ by: string; stride: string; requests: number }>(
      `SELECT group_by AS by, stride, count(*)::integer AS requests FROM usage.fetch
       WHERE purpose = 'load' AND group_by <> 'workspace' GROUP BY 1, 2 ORDER BY 2, 1`,
    );
  const workCreated = async (source: OpenSource) => {
    const messages = await bench.store.transaction(({ db }) =>
      takeTasksToQueue(db, { sourceId: source.sourceId, most: 1000 }),
    );
    const work = messages.map(
      (one) => () => workMessage({ ...source, attempts: 1 }, { ...one, isLastAttempt: true }),
    );
    for (const one of work) await one();
  };
  await syncByQueue(bench, undefined, SETTINGS);
  return {
    ...bench,
    bench,
    hour,
    project,
    created,
    requests,
    workCreated,
    source: await bench.open({ settings: SETTINGS }),
  };
}

const OTHERS = ["api_key", "project", "user"];

test("what changed by workspace is entered with its response, as if the sync had entered it", async () => {
  const { standin, today, store, source, created, workCreated } = await setupLoaded();
  await planSync(source);
  expect(await created()).toEqual([]);
  await workCreated(source);
  expect(await created()).toEqual([]);

  standin.ledger.change(senderOn(standin, BUSY, today - DAY_MS), 1);
  await planSync(source);
  const before = await storeNow(store.db);
  expect(await planSync(source)).toMatchObject({ planned: 0, created: 0 });
  await workCreated(source);
  const tasks = await created();
  expect(tasks.filter(({ stride }) => stride === "day").map(({ by }) => by)).toEqual(OTHERS);
  for (const { at } of tasks) expect(at.getTime()).toBeLessThanOrEqual(before);
});

test("a worker that dies after its load by workspace leaves a task that enters the others all the same", async () => {
  const { bench, standin, today, source, created, workCreated } = await setupLoaded();
  standin.ledger.change(senderOn(standin, BUSY, today - DAY_MS), 1);
  await planSync(source);
  await bench.sql("CREATE TABLE usage.task_before AS SELECT * FROM usage.fetch_task");
  await workCreated(source);
  const tasks = await created();
  expect(tasks.map(({ stride }) => stride)).toContain("day");
  // As if it had died between the two: what it loaded is here, and its task is as it was.
  await bench.sql("DELETE FROM usage.fetch_task");
  await bench.sql("INSERT INTO usage.fetch_task OVERRIDING SYSTEM VALUE SELECT * FROM usage.task_before");
  await workCreated(source);
  expect(await created()).toEqual(tasks);
});

test("where the response by workspace fails, the others are entered; one whose own failure is not due is not", async () => {
  const { bench, standin, today, source, created, workCreated } = await setupLoaded();
  await bench.sql(
    `INSERT INTO usage.failure (scope_id, period_start, period_end, fetch_number, state, code, message, attempts, failed_at, retry_at)
     SELECT scope_id, $1, $2, nextval('usage.fetch_number'), 'failed', 'x', 'x', 1, now(), now() + interval '1 hour' FROM usage.trace_scope
     WHERE group_by = 'user' AND stride = 'day'`,
    [new Date(today), new Date(today + DAY_MS)],
  );
  await planSync(source);
  await bench.sql("DELETE FROM usage.fetch_task WHERE group_by <> 'workspace'");
  const match = { path: "granular-usage", query: { group_by: "workspace" } };
  standin.faults.script({ fault: { kind: "status", status: 500 }, times: 100, match });
  await workCreated(source);
  const days = (await created()).filter(({ stride }) => stride === "day");
  expect(days.map(({ by }) => by)).toEqual(["api_key", "project"]);
});

test("a bucket that has begun without traces takes no request beside that by workspace", async () => {
  const { bench, standin, hour, project, requests } = await setupLoaded(IDLE);
  if (project === null) throw new Error("no project");
  const before = await requests();
  // As if the hour had begun just now: no figure of it is loaded, and no trace has come.
  const begin = async () => {
    await bench.sql(
      `UPDATE usage.coverage SET period_end = $1, traced = traced * tstzmultirange(tstzrange(null, $1)), digest = null
       WHERE period_end > $1 AND period_start < $1 AND scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE stride = 'hour')`,
      [new Date(hour)],
    );
    await bench.sql(
      "DELETE FROM usage.coverage USING usage.trace_scope c WHERE c.scope_id = coverage.scope_id AND c.stride = 'hour' AND period_start >= $1",
      [new Date(hour)],
    );
  };
  await begin();
  await syncByQueue(bench, undefined, SETTINGS);
  expect(await requests()).toEqual(before);
  const [loaded] = await bench.sql<{ loaded: boolean }>(
    `SELECT bool_and(loaded) AS loaded FROM (
       SELECT max(period_end) > $1 AS loaded FROM usage.coverage JOIN usage.trace_scope c USING (scope_id) WHERE c.stride = 'hour' GROUP BY scope_id
     ) s`,
    [new Date(hour)],
  );
  expect(loaded).toEqual({ loaded: true });
  await begin();
  standin.ledger.change({ project, user: null, key: null, at: hour }, 3);
  await syncByQueue(bench, undefined, SETTINGS);
  const added = (await requests()).filter(({ stride }) => stride === "hour");
  for (const [n, { by, requests: sent }] of added.entries())
    expect([by, sent]).toEqual([
      OTHERS[n],
      (before.find((one) => one.stride === "hour" && one.by === by)?.requests ?? 0) + 1,
    ]);
});

test("coverage says when a day was asked for, and until when it was unchanged in sum", async () => {
  const { bench, today } = await setupLoaded();
  await bench.sql("UPDATE usage.coverage SET fetched_at = fetched_at - interval '20 minutes'");
  await syncByQueue(bench, undefined, SETTINGS);
  const ages = () =>
    bench.sql<{ by: string; requested: boolean; confirmed: boolean }>(
      `SELECT group_by AS by, fetched_at > now() - interval '19 minutes' AS requested, sum_confirmed_at > now() - interval '19 minutes' AS confirmed
       FROM reporting_detail.usage_coverage_daily WHERE stride = 'day' AND usage_date = ($1::timestamptz AT TIME ZONE 'UTC')::date ORDER BY 1`,
      [new Date(today - DAY_MS)],
    );
  const shown = async () => {
    const scopes = await bench.sql<{ id: number }>(
      "SELECT scope_id AS id FROM usage.trace_scope WHERE stride = 'day'",
    );
    const { responses } = await cellFacts(bench.store.db, {
      source: "default",
      workspaceId: bench.workspaceIds[0] as string,
      scopeIds: scopes.map(({ id }) => id),
      range: { start: today - DAY_MS, end: today },
    });
    return Object.fromEntries(
      responses.map(({ groupBy, fetchedAt, sumConfirmedAt }) => [
        groupBy,
        sumConfirmedAt !== null && sumConfirmedAt > fetchedAt,
      ]),
    );
  };
  expect(await shown()).toEqual({ workspace: false, project: true, user: true, api_key: true });
  const kept = OTHERS.map((by) => ({ by, requested: false, confirmed: true }));
  expect(await ages()).toEqual([...kept, { by: "workspace", requested: true, confirmed: true }]);
  await bench.sql(
    `UPDATE usage.dated_record SET traces = traces + 1 FROM usage.series e JOIN usage.trace_scope c USING (scope_id)
     WHERE e.series_id = dated_record.series_id AND c.group_by = 'user' AND bucket_start = ($1::timestamptz AT TIME ZONE 'UTC')::date`,
    [new Date(today - DAY_MS)],
  );
  expect((await ages()).map(({ confirmed }) => confirmed)).toEqual([true, true, false, true]);
  expect(await shown()).toMatchObject({ project: true, user: false });
});
