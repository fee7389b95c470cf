import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/core/domain/usage/record.ts";
import { workMessage } from "../../../../src/core/pipeline/extract/work-task.ts";
import { checkTotals } from "../../../../src/core/pipeline/proof/check-totals.ts";
import type { OpenSource } from "../../../../src/core/pipeline/source/source.ts";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { createBackfill } from "../../../../src/core/store/work/backfills.ts";
import { takeTasksToQueue } from "../../../../src/core/store/work/tasks.ts";
import { dayOf, envOf, run } from "../../../support/program.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { wrongFigures } from "../../../support/tables.ts";

async function changePastTriggers(bench: Bench, ...statements: readonly string[]): Promise<void> {
  await bench.store.transaction(async ({ client }) => {
    await client.query("SET LOCAL session_replication_role = replica");
    for (const statement of statements) await client.query(statement);
  });
}

async function newBackfill(bench: Bench, { sourceId, ...source }: OpenSource): Promise<void> {
  const range = { start: bench.dataStart, end: bench.today };
  const wanted = [{ stride: "day" as const, range }];
  await createBackfill(bench.store, {
    sourceId,
    meter: "traces",
    range,
    stride: "day",
    groupings: GROUPINGS,
    workspaceIds: bench.workspaceIds,
    reprocess: "all",
    tasks: await planSource({ ...source, sourceId }, { wanted, reprocess: "all", retry: "all" }),
    by: { name: "test", role: "operator", via: "command" },
  });
}

async function workAll(bench: Bench, source: OpenSource): Promise<void> {
  const { sourceId } = source;
  const messages = await bench.store.transaction(({ db }) => takeTasksToQueue(db, { sourceId, most: 1000 }));
  expect(messages.length).toBeGreaterThan(0);
  for (const message of messages)
    await workMessage({ ...source, attempts: 1 }, { ...message, isLastAttempt: true });
}

test("a backfill of everything in one process replaces what was restored past the triggers", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const [second, fourth] = [1, 3].map((days) => dayOf(bench.dataStart + days * DAY_MS));
  await changePastTriggers(
    bench,
    `UPDATE usage.dated_record SET traces = traces + 7 WHERE bucket_start <= '${second}'`,
    `DELETE FROM usage.dated_record WHERE bucket_start = '${fourth}'`,
  );
  expect(await wrongFigures(bench, { hourDays: 1 })).not.toEqual([]);
  const range = ["--from", dayOf(bench.dataStart), "--to", dayOf(bench.today)];
  const ended = await run(["backfill", ...range, "--reprocess", "all", "--inline"], envOf(bench));
  expect([ended.code, ended.stderr]).toEqual([0, ""]);
  expect(await wrongFigures(bench, { hourDays: 1 })).toEqual([]);
});

test("a night finds what was restored past the triggers, and the next sync loads it again", async () => {
  const bench = await setup({ workspaces: [0], days: 70 });
  await bench.sync();
  const totals = async () => (await checkTotals(await bench.open(), "month")).miscounted;
  const coverage = () =>
    bench.sql("SELECT scope_id, period_start, period_end, final FROM usage.coverage ORDER BY 1, 2");
  const whole = await coverage();
  expect(await totals()).toBe(0);
  expect(await coverage()).toEqual(whole);
  const [first, second] = [0, 1].map((days) => dayOf(bench.dataStart + days * DAY_MS));
  for (const changed of [
    `UPDATE usage.dated_record SET traces = traces + 7 WHERE bucket_start = '${first}'`,
    `DELETE FROM usage.dated_record WHERE bucket_start = '${second}'`,
    "UPDATE usage.monthly_total SET traces = traces + 1 WHERE month_start = (SELECT min(month_start) FROM usage.monthly_total)",
    "TRUNCATE usage.monthly_total",
    "UPDATE usage.hourly_record SET traces = traces + 7 WHERE bucket_start = (SELECT max(bucket_start) FROM usage.hourly_record)",
    "DELETE FROM usage.hourly_record WHERE bucket_start = (SELECT min(bucket_start) FROM usage.hourly_record)",
    "UPDATE usage.hourly_record r SET traces = sign * 3 + traces FROM (SELECT series_id, min(bucket_start), max(bucket_start) FROM usage.hourly_record GROUP BY 1 HAVING count(*) > 1) x CROSS JOIN LATERAL (VALUES (min, 1), (max, -1)) c (bucket_start, sign) WHERE (r.series_id, r.bucket_start) = (x.series_id, c.bucket_start) AND EXISTS (SELECT FROM usage.hourly_record m WHERE (m.series_id, m.bucket_start) = (x.series_id, max) AND m.traces >= 3)",
  ]) {
    await changePastTriggers(bench, changed);
    await bench.sync();
    // The check of this month's totals does not reach so far back. It is found once.
    expect(await totals(), changed).toBeGreaterThan(0);
    expect(await totals(), changed).toBe(0);
    await bench.sync();
    expect(await wrongFigures(bench, { hourDays: 1 }), changed).toEqual([]);
  }
});

test("a backfill of everything by the queue asks again for what others have loaded since it was entered, by digests", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const yesterday = dayOf(bench.today - DAY_MS);
  await changePastTriggers(
    bench,
    `UPDATE usage.dated_record SET traces = traces + 7 WHERE bucket_start = '${yesterday}'`,
  );
  const source = await bench.open();
  await newBackfill(bench, source);
  const wanted = [{ stride: "day" as const, range: { start: bench.dataStart, end: bench.today } }];
  await bench.fetch({ wanted, reprocess: "all" });
  await workAll(bench, source);
  expect(await wrongFigures(bench, { hourDays: 1 })).toEqual([]);
});
