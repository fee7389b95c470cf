import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { extractTask } from "../../../../src/core/pipeline/extract/extract.ts";
import type { OpenSource } from "../../../../src/core/pipeline/source/source.ts";
import { exceedsWorkspaces } from "../../../../src/core/store/load/by-workspace.ts";
import { storeNow } from "../../../../src/core/store/work/fetch-ledger.ts";
import { describeRun } from "../../../../src/terminal/load-report.ts";
import { syncByQueue } from "../../../support/by-queue.ts";
import { seed, times } from "../../../support/drawn.ts";
import { type Bench, beginProject, senderOn, setup } from "../../../support/source.ts";
import { differences, type Figures, inLedger, inStore } from "../../../support/tables.ts";

/** A workspace without traces is asked for by workspace alone. What is stored is what it would be if all had been asked for. */

const [BUSY, IDLE] = [0, 4];
const DAYS = 5;

async function requests({ sql }: Pick<Bench, "sql">) {
  const rows = await sql<{ by: string; requests: number; again: number }>(
    `SELECT group_by AS by, count(*)::integer AS requests,
            (count(*) - count(DISTINCT (stride, period_start, period_end)))::integer AS again
     FROM usage.fetch WHERE purpose = 'load' GROUP BY 1 ORDER BY 1`,
  );
  return new Map(rows.map(({ by, ...counts }) => [by, counts]));
}

test("what still adds up to its workspaces is not asked for by a sync, until its time is over or it can be final", async () => {
  const bench = await setup({ workspaces: [BUSY], days: DAYS, settleAfterMs: 30 * DAY_MS });
  const settings = { syncEveryMs: 15 * MINUTE_MS, refreshAfterMs: 60 * MINUTE_MS };
  const first = await bench.sync({ settings });
  const again = await bench.sync({ settings });
  const [all, few] = [first.requests, again.requests];
  expect(all).toBeGreaterThan(few * 2);
  expect((await requests(bench)).get("user")?.again).toBe(0);
  expect(again.run.failures).toEqual([]);
  const unasked = again.run.counts.reduce((sum, one) => sum + one.unasked, 0);
  expect(unasked + few).toBe(all);
  expect(describeRun(again.run)).toContain("\nnot requested: stored figures still match");
  expect(describeRun(first.run)).not.toContain("not asked");

  const wanted = [{ stride: "day", range: { start: bench.today - DAY_MS, end: bench.today } }] as const;
  expect((await bench.fetch({ wanted, reprocess: "missing" }, { settings })).requests).toBeGreaterThan(3);
  expect((await bench.sync({ settings: { ...settings, refreshAfterMs: 0 } })).requests).toBe(all);
  standinChange(bench);
  expect((await bench.sync({ settings })).requests).toBeGreaterThan(few);
  expect((await bench.sync({ settings })).requests).toBe(few);
  await pass(bench, KEPT_MINUTES + 1);
  const { requests: ofDays, run } = await bench.sync({ settings });
  const requestedOf = (stride: string) =>
    run.counts
      .filter((one) => one.groupBy !== "workspace" && one.stride === stride)
      .map((one) => one.requests);
  expect(requestedOf("day")).toEqual([1, 1, 1]);
  expect(ofDays).toBeLessThan(all);
  expect((await bench.sync({ settings })).requests).toBe(few);
  await bench.sql(
    `INSERT INTO usage.failure (scope_id, period_start, period_end, fetch_number, state, code, message, attempts, failed_at, retry_at)
     SELECT scope_id, $1, $2, nextval('usage.fetch_number'), 'failed', 'x', 'x', 1, now(), now() FROM usage.trace_scope
     WHERE group_by = 'user' AND stride = 'day'`,
    [new Date(bench.today - DAY_MS), new Date(bench.today)],
  );
  // Hours that its day had spared are asked for with it, as long as it is not loaded.
  const ofFailure = (await bench.sync({ settings })).requests - few;
  expect([1, 2, 3]).toContain(ofFailure);
  // So is all of a server that once named more traces by a dimension than by workspace.
  expect(await exceedsWorkspaces(bench.store.db, 1)).toBe(false);
  await bench.sql(
    `INSERT INTO usage.difference (scope_id, compared_with, kind, period_start, period_end, external_id, stored_traces, other_traces, state, fetch_number)
     SELECT scope_id, 'grouping_total', 'grouping_total', $1, $2, '', 7, 5, 'platform_disagrees', 1 FROM usage.trace_scope WHERE group_by = 'project' AND stride = 'day'`,
    [new Date(bench.today - DAY_MS), new Date(bench.today)],
  );
  expect(await exceedsWorkspaces(bench.store.db, 1)).toBe(true);
  expect((await bench.sync({ settings })).requests).toBe(all);
  await bench.sql(
    "UPDATE usage.difference SET state = 'unattributed' WHERE compared_with = 'grouping_total'",
  );
  expect((await bench.sync({ settings })).requests).toBe(few);
  await bench.sync({ settings: { ...settings, settleAfterMs: 0 } });
  const open = await bench.sql("SELECT FROM usage.coverage WHERE NOT final AND period_start < $1", [
    new Date(bench.today),
  ]);
  expect(open).toEqual([]);
});

test("a task that waited is asked for once its figures are old or can be final, whatever its workspace said before", async () => {
  const bench = await setup({ workspaces: [BUSY], days: DAYS, settleAfterMs: 30 * DAY_MS });
  const settings = { syncEveryMs: 15 * MINUTE_MS, refreshAfterMs: 60 * MINUTE_MS };
  await bench.sync({ settings });
  const [scope] = await bench.sql<{ scopeId: number }>(
    `SELECT scope_id AS "scopeId" FROM usage.trace_scope WHERE group_by = 'user' AND stride = 'day'`,
  );
  const task = {
    ...({ meter: "traces", groupBy: "user" } as const),
    window: { stride: "day", start: bench.today - DAY_MS, end: bench.today } as const,
    members: [{ workspaceId: bench.workspaceIds[0] ?? "", scopeId: scope?.scopeId ?? 0 }],
  };
  const worked = async (more: Partial<OpenSource["settings"]> = {}) =>
    extractTask(await bench.open({ settings: { ...settings, ...more } }), task, {
      workspacesSince: 0,
      isRoutine: true,
    });
  expect(await worked()).toMatchObject({ outcome: "unchanged", requests: 0 });
  await pass(bench, 2 * 24 * 60);
  const never = { refreshAfterMs: 90 * DAY_MS };
  expect(await worked(never)).toMatchObject({ outcome: "unchanged" });
  expect(await worked({ ...never, settleAfterMs: 0 })).toMatchObject({ outcome: "loaded", requests: 1 });
  expect(await worked()).toMatchObject({ outcome: "unchanged" });
  await pass(bench, KEPT_MINUTES + 1);
  expect(await worked()).toMatchObject({ outcome: "loaded", requests: 1 });
});

function standinChange({ standin, today }: Pick<Bench, "standin" | "today">) {
  standin.ledger.change(senderOn(standin, BUSY, today - DAY_MS), 1);
}

test("what a server says of a project that its workspace does not have is kept, and asked for again", async () => {
  const bench = await setup({ workspaces: [IDLE], days: DAYS });
  await bench.sync();
  const { sql, today, workspaceIds } = bench;
  const [scope] = await sql<{ scopeId: number }>(
    `SELECT scope_id AS "scopeId" FROM usage.trace_scope WHERE group_by = 'project' AND stride = 'day'`,
  );
  const task = {
    ...({ meter: "traces", groupBy: "project" } as const),
    window: { stride: "day", start: today - DAY_MS, end: today } as const,
    members: [{ workspaceId: workspaceIds[0] ?? "", scopeId: scope?.scopeId ?? 0 }],
  };
  beginProject(bench.standin, { workspace: IDLE, at: today - DAY_MS, traces: 7 });
  const source = await bench.open();
  expect(await extractTask(source, task)).toMatchObject({ outcome: "loaded", requests: 1 });
  const [before] = await sql<{ traces: number }>(
    "SELECT sum(traces)::integer AS traces FROM usage.dated_record",
  );
  expect(before).toEqual({ traces: 7 });
  // The response by workspace is older than that by project, so it says nothing of it: the server is asked.
  expect(await extractTask(source, task, { workspacesSince: 0 })).toMatchObject({
    outcome: "loaded",
    requests: 1,
  });
  // Also of a window of which only a part was loaded since then: the rest is not left out.
  const whole = { ...task, window: { stride: "day", start: bench.dataStart, end: today } as const };
  await sql(`DELETE FROM usage.coverage WHERE period_start < $1 AND scope_id = $2`, [
    new Date(today - DAY_MS),
    scope?.scopeId,
  ]);
  expect(await extractTask(source, whole, { workspacesSince: 0 })).toMatchObject({
    outcome: "loaded",
    requests: 1,
  });
  const [loaded] = await sql<{ loaded: boolean }>(
    "SELECT range_agg(tstzrange(period_start, period_end)) @> tstzrange($1, $2) AS loaded FROM usage.coverage WHERE scope_id = $3",
    [new Date(bench.dataStart), new Date(today), scope?.scopeId],
  );
  expect(loaded).toEqual({ loaded: true });
  // One that is newer and says zero would retire them: the server is asked.
  await sql(
    "UPDATE usage.coverage SET fetch_number = nextval('usage.fetch_number'), fetched_at = clock_timestamp() WHERE scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE group_by = 'workspace')",
  );
  const since = (await storeNow(source.store.db)) - HOUR_MS;
  expect(await extractTask(source, task, { workspacesSince: since })).toMatchObject({
    outcome: "loaded",
    requests: 1,
  });
  expect(await sql("SELECT sum(traces)::integer AS traces FROM usage.dated_record")).toEqual([before]);
  expect(
    await extractTask(source, task, { workspacesSince: (await storeNow(source.store.db)) + HOUR_MS }),
  ).toMatchObject({ requests: 1 });
});

const SEED = seed();
const MINUTE_MS = 60_000;
const SETTINGS = { syncEveryMs: 15 * MINUTE_MS, refreshAfterMs: 60 * MINUTE_MS };
const KEPT_MINUTES = 45;
const hour = fc.integer({ min: 0, max: DAYS * 24 - 1 });
const command = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("arrive" as const),
      workspace: fc.constantFrom(BUSY, IDLE),
      hour,
      traces: fc.integer({ min: 1, max: 9 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("move" as const), hour }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("pass" as const), minutes: fc.integer({ min: 5, max: 60 }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("sync" as const), byQueue: fc.boolean() }) },
);

type Late = Omit<Parameters<Bench["standin"]["ledger"]["change"]>[0], "at">;

/** All that is loaded becomes older. Nothing else of the store knows the time. */
async function pass({ sql }: Pick<Bench, "sql">, minutes: number): Promise<void> {
  await sql("UPDATE usage.coverage SET fetched_at = fetched_at - make_interval(mins => $1)", [minutes]);
}

/** The oldest day that is not final. Hours may be older, if they add up to their day. */
async function oldestMinutes({ sql }: Pick<Bench, "sql">): Promise<number> {
  const [row] = await sql<{ minutes: number }>(
    `SELECT extract(epoch FROM now() - min(fetched_at))::float8 / 60 AS minutes
     FROM usage.coverage JOIN usage.trace_scope c USING (scope_id) WHERE NOT final AND c.stride = 'day'`,
  );
  return row?.minutes ?? 0;
}

const daysBefore = (figures: Figures, end: number): Figures =>
  new Map([...figures].filter(([key]) => !key.includes(new Date(end).toISOString().slice(0, 10))));

const sums = (figures: Figures): Map<string, number> => {
  const sum = new Map<string, number>();
  for (const [key, traces] of figures) {
    const cell = key.split(" ").slice(0, 4).join(" ");
    sum.set(cell, (sum.get(cell) ?? 0) + traces);
  }
  return sum;
};

test(`over any history of late and moved traces each sync keeps the sums, and each figure in its time (seed ${SEED})`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 4, maxLength: 9 }), async (commands) => {
      // Nothing is final yet, so that each sync may ask for all of it.
      const settleAfterMs = 30 * DAY_MS;
      const bench = await setup({
        workspaces: [BUSY, IDLE],
        days: DAYS,
        settleAfterMs,
        hourlyForMs: 30 * DAY_MS,
      });
      const { standin, dataStart, today, workspaceIds } = bench;
      const late: Record<number, Late> = {
        [BUSY]: { ...senderOn(standin, BUSY, today - DAY_MS), user: null, key: null },
        [IDLE]: {
          project: beginProject(standin, { workspace: IDLE, at: today + HOUR_MS, traces: 0 }),
          user: null,
          key: null,
        },
      };
      const move = (at: number) => {
        const from = senderOn(standin, BUSY, at - (at % DAY_MS));
        standin.ledger.change(from, -1);
        standin.ledger.change({ ...from, user: null, key: null }, 1);
      };
      const compare = async (
        isWanted: (key: string) => boolean,
        of = (figures: Figures): Figures => figures,
      ) => {
        for (const stride of ["day", "hour"] as const) {
          const range = { start: dataStart, end: today };
          const wanted = (figures: Figures) => of(new Map([...figures].filter(([key]) => isWanted(key))));
          const stored = daysBefore(await inStore(bench, [stride]), today);
          const expected = inLedger(standin, { stride, range, workspaceIds });
          expect(differences(wanted(stored), wanted(expected))).toEqual([]);
        }
      };
      const all = () => true;
      for (const one of [...commands, { do: "sync", byQueue: false } as const]) {
        if (one.do === "arrive") {
          standin.ledger.change(
            { ...(late[one.workspace] as Late), at: dataStart + one.hour * HOUR_MS },
            one.traces,
          );
        } else if (one.do === "move") {
          move(dataStart + one.hour * HOUR_MS);
        } else if (one.do === "pass") {
          await pass(bench, one.minutes);
        } else {
          if (one.byQueue) await syncByQueue(bench, undefined, SETTINGS);
          else await bench.sync({ settings: SETTINGS });
          await compare((key) => key.startsWith("workspace"));
          await compare(all, sums);
          expect(await oldestMinutes(bench)).toBeLessThanOrEqual(KEPT_MINUTES + 1);
        }
      }
      move(today - DAY_MS);
      if (commands.length % 2 === 0) await pass(bench, KEPT_MINUTES + 1);
      const final = commands.length % 2 === 0 ? {} : { settleAfterMs: 0 };
      await bench.sync({ settings: { ...SETTINGS, ...final } });
      await compare(all);
    }),
    { seed: SEED, numRuns: times(2) },
  );
});
