import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../src/domain/time/stride.ts";
import { extractTask } from "../../../../src/pipeline/extract/extract.ts";
import { storeNow } from "../../../../src/store/load/fetch-ledger.ts";
import { syncByQueue } from "../../../support/by-queue.ts";
import { seed, times } from "../../../support/drawn.ts";
import { type Bench, beginProject, setup } from "../../../support/source.ts";
import { differences, inLedger, inStore } from "../../../support/tables.ts";

/** A workspace without traces is asked for by workspace alone. What is stored is what it would be if all had been asked for. */

/** Of the stand-in's workspaces: one with usage, and the one that has none. */
const [BUSY, QUIET] = [0, 4];
const DAYS = 5;

/** Requests for usage by each dimension, and how many of them were of a window that another one had. */
async function requests({ sql }: Pick<Bench, "sql">) {
  const rows = await sql<{ by: string; requests: number; again: number }>(
    `SELECT group_by AS by, count(*)::integer AS requests,
            (count(*) - count(DISTINCT (stride, period_start, period_end)))::integer AS again
     FROM usage.fetch WHERE purpose = 'load' GROUP BY 1 ORDER BY 1`,
  );
  return new Map(rows.map(({ by, ...counts }) => [by, counts]));
}

/** What is loaded and final of each scope of the quiet workspace, which has to be the same by each dimension. */
async function loadedOfQuiet({ sql, workspaceIds }: Pick<Bench, "sql" | "workspaceIds">) {
  const rows = await sql<{ stride: string; loaded: string; final: string }>(
    `SELECT DISTINCT c.stride, range_agg(tstzrange(period_start, period_end)) AS loaded,
            range_agg(tstzrange(period_start, period_end)) FILTER (WHERE final) AS final
     FROM usage.coverage JOIN usage.trace_scope c USING (scope_id) JOIN usage.entity w ON w.entity_id = c.workspace_id
     WHERE w.external_id = $1 GROUP BY c.scope_id, c.stride, c.group_by ORDER BY 1`,
    [workspaceIds[1]],
  );
  return rows;
}

test("a workspace without traces takes no request by project, user or key, and is loaded by each of them", async () => {
  const bench = await setup({ workspaces: [BUSY, QUIET], days: DAYS });
  const { run } = await bench.sync();
  expect(run.failures).toEqual([]);
  const sent = await requests(bench);
  for (const by of ["project", "user", "api_key"]) expect(sent.get(by), by).toMatchObject({ again: 0 });
  // One state of each stride: that of all dimensions.
  const loaded = await loadedOfQuiet(bench);
  expect(loaded.map(({ stride }) => stride)).toEqual(["day", "hour"]);
  const range = { start: bench.dataStart, end: bench.today + DAY_MS };
  const shown = await bench.sql<{ status: string; days: number }>(
    `SELECT status, count(*)::integer AS days FROM reporting_detail.usage_coverage_daily WHERE workspace_id = $1 GROUP BY 1 ORDER BY 1`,
    [bench.workspaceIds[1]],
  );
  expect(shown.map(({ status }) => status)).toEqual(["empty", "provisional"]);

  // Whoever asks for everything again asks for it.
  await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  expect((await requests(bench)).get("user")?.again).toBeGreaterThan(0);
  expect(await loadedOfQuiet(bench)).toEqual(loaded);
});

test("what a server says of a project that its workspace does not have is kept, and asked for again", async () => {
  const bench = await setup({ workspaces: [QUIET], days: DAYS });
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
  beginProject(bench.standin, { workspace: QUIET, at: today - DAY_MS, traces: 7 });
  const source = await bench.open();
  expect(await extractTask(source, task)).toMatchObject({ outcome: "loaded", requests: 1 });
  const [before] = await sql<{ traces: number }>(
    "SELECT sum(traces)::integer AS traces FROM usage.dated_record",
  );
  expect(before).toEqual({ traces: 7 });
  // The answer by workspace is older than that by project, so it says nothing of it: the server is asked.
  expect(await extractTask(source, task, { zeroSince: 0 })).toMatchObject({ outcome: "loaded", requests: 1 });
  // Also of a window of which only a part was loaded since then: the rest is not left out.
  const whole = { ...task, window: { stride: "day", start: bench.dataStart, end: today } as const };
  await sql(`DELETE FROM usage.coverage WHERE period_start < $1 AND scope_id = $2`, [
    new Date(today - DAY_MS),
    scope?.scopeId,
  ]);
  expect(await extractTask(source, whole, { zeroSince: 0 })).toMatchObject({
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
  expect(await extractTask(source, task, { zeroSince: since })).toMatchObject({
    outcome: "loaded",
    requests: 1,
  });
  expect(await sql("SELECT sum(traces)::integer AS traces FROM usage.dated_record")).toEqual([before]);
  // An answer that was sent before the task was entered is no reason not to ask.
  expect(
    await extractTask(source, task, { zeroSince: (await storeNow(source.store.db)) + HOUR_MS }),
  ).toMatchObject({
    requests: 1,
  });
});

const SEED = seed();
const arrival = fc.record({
  do: fc.constant("arrive" as const),
  at: fc.integer({ min: 0, max: DAYS * 24 - 1 }),
  traces: fc.integer({ min: 1, max: 9 }),
});
const command = fc.oneof(
  { weight: 2, arbitrary: arrival },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("sync" as const), byQueue: fc.boolean() }) },
);

test(`over any history of late traces the store is the ledger's after each sync (seed ${SEED})`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 3, maxLength: 7 }), async (commands) => {
      // Nothing is final yet, so that each sync asks for all of it.
      const settleAfterMs = 30 * DAY_MS;
      const bench = await setup({
        workspaces: [BUSY, QUIET],
        days: DAYS,
        settleAfterMs,
        hourlyForMs: 30 * DAY_MS,
      });
      const { standin, dataStart, today, workspaceIds } = bench;
      const project = beginProject(standin, { workspace: QUIET, at: today + HOUR_MS, traces: 0 });
      for (const one of [...commands, { do: "sync", byQueue: false } as const]) {
        if (one.do === "arrive") {
          standin.ledger.change(
            { project, user: null, key: null, at: dataStart + one.at * HOUR_MS },
            one.traces,
          );
          continue;
        }
        if (one.byQueue) await syncByQueue(bench);
        else await bench.sync();
        for (const stride of ["day", "hour"] as const) {
          const range = { start: dataStart, end: today };
          const stored = new Map(
            [...(await inStore(bench, [stride]))].filter(
              ([key]) => !key.includes(new Date(today).toISOString().slice(0, 10)),
            ),
          );
          expect(differences(stored, inLedger(standin, { stride, range, workspaceIds }))).toEqual([]);
        }
      }
    }),
    { seed: SEED, numRuns: times(2) },
  );
}, 600_000);
