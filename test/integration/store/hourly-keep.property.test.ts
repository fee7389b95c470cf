import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../../src/core/domain/usage/record.ts";
import type { OpenSource } from "../../../src/core/pipeline/source/source.ts";
import { planSource, routineDemand } from "../../../src/core/pipeline/sync/plan.ts";
import { dropOldHours } from "../../../src/core/store/retention/prune.ts";
import { now } from "../../support/clock.ts";
import { times } from "../../support/drawn.ts";
import { connect } from "../../support/reporting.ts";
import { loadRows, proveAccess, type ResponseRow } from "../../support/store.ts";
import { monthsBy } from "../../support/views.ts";
import { createSource, setupStore } from "./setup.ts";

const DAYS = 10;
const START = floorToGrid(now(), DAY_MS) - (DAYS + 1) * DAY_MS;
const WORKSPACE = "00000000-0000-4000-8000-000000000001";

const load = fc.record({
  stride: fc.constantFrom("hour" as const, "hour" as const, "day" as const),
  at: fc.nat(DAYS * 4 - 1),
  length: fc.integer({ min: 1, max: 3 }),
  gap: fc.integer({ min: 1, max: 5 }),
  traces: fc.nat(3),
  groupBy: fc.constantFrom("user" as const, "workspace" as const),
  /** Fetched recently, so that an older response may still arrive. */
  isFresh: fc.boolean(),
});

const QUERIES = {
  ...Object.fromEntries(
    GROUPINGS.flatMap((groupBy) => [
      [`${groupBy} daily`, `SELECT * FROM reporting.fct_usage_${groupBy}_daily`],
      [`${groupBy} monthly`, `SELECT * FROM ${monthsBy(groupBy)}`],
    ]),
  ),
  days: "SELECT * FROM reporting_detail.usage_coverage_daily WHERE stride = 'day'",
  unattributed: "SELECT * FROM reporting_detail.usage_unattributed_daily",
  restatements: "SELECT * FROM reporting_detail.usage_restatement",
  dated: "SELECT * FROM usage.dated_record",
};

test("old hours are removed with their coverage if their day is loaded, and no figure of a day changes", async () => {
  const bundle = await setupStore();
  const { store, url } = bundle;
  const client = await connect(url);
  const query = async (text: string): Promise<Record<string, unknown>[]> => (await client.query(text)).rows;
  const lines = async (text: string) => (await query(text)).map((row) => JSON.stringify(row)).sort();
  const everything = async () => {
    const shown: Record<string, string[]> = {};
    for (const [name, text] of Object.entries(QUERIES)) shown[name] = await lines(text);
    return shown;
  };
  const covered = async (stride: string, olderThanDays = 0) =>
    (
      await query(`
        SELECT group_by || ' ' || extract(epoch FROM h)::bigint / 3600 AS bucket
        FROM usage.coverage JOIN usage.trace_scope USING (scope_id),
             generate_series(period_start, period_end - interval '1 hour', interval '1 hour') h
        WHERE stride = '${stride}' AND fetched_at < now() - interval '${olderThanDays} days'`)
    ).map((row) => String(row.bucket));
  const records = () =>
    lines(`
      SELECT group_by || ' ' || extract(epoch FROM bucket_start)::bigint / 3600 AS bucket, series_id, traces
      FROM usage.hourly_record JOIN usage.series USING (series_id) JOIN usage.trace_scope USING (scope_id)`);

  const holds = async (
    loads: readonly (typeof load extends fc.Arbitrary<infer L> ? L : never)[],
    keepDays: number,
  ) => {
    const sourceId = await createSource(bundle, { workspaceIds: [WORKSPACE], dataStart: START });
    await proveAccess(store, { sourceId, workspaceIds: [WORKSPACE] });
    for (const { stride, at, length, gap, traces, groupBy, isFresh } of loads) {
      const [unit, size] = stride === "hour" ? [6 * HOUR_MS, HOUR_MS] : [DAY_MS, DAY_MS];
      const start = stride === "hour" ? START + at * unit : START + Math.floor(at / 4) * unit;
      const window = { stride, start, end: start + length * unit };
      const id = groupBy === "workspace" ? WORKSPACE : "u1";
      const rows = Array.from({ length: (length * unit) / size }, (_, i) => i)
        .filter((i) => i % gap === 0)
        .map((i): ResponseRow => [new Date(start + i * size).toISOString(), id, traces]);
      await loadRows(store, { sourceId, groupBy, workspaceId: WORKSPACE, window, rows });
      if (isFresh) continue;
      await query(
        "UPDATE usage.coverage SET fetched_at = now() - interval '30 days' WHERE fetch_number = (SELECT max(fetch_number) FROM usage.coverage)",
      );
    }
    const source = {
      store,
      sourceId,
      dataStart: START,
      workspaceIds: [WORKSPACE],
      capabilities: new Set(),
      strideRetries: new Set(),
      meters: new Map([["traces", START]]),
      settings: { hourlyForMs: keepDays * DAY_MS, meters: ["traces"] },
    } as unknown as OpenSource;
    // Once, because an hour may end between the two plans.
    const wanted = routineDemand(source, now());
    const plan = () => planSource(source, { wanted, reprocess: "missing" });

    const before = { shown: await everything(), records: await records(), plan: await plan() };
    const cut = (floorToGrid(now(), DAY_MS) - keepDays * DAY_MS) / HOUR_MS;
    const days = new Set(await covered("day"));
    const old = new Set(await covered("hour", 7));
    const isDropped = (bucket: string) =>
      old.has(bucket) && days.has(bucket) && Number(bucket.split(" ")[1]) < cut;
    const kept = (await covered("hour")).filter((bucket) => !isDropped(bucket)).sort();
    const keptRecords = before.records.filter((line) => !isDropped(JSON.parse(line).bucket));

    const removed = await dropOldHours(store, { sourceId, keepHours: keepDays * 24 });
    expect(removed).toBe(before.records.length - keptRecords.length);
    expect((await covered("hour")).sort()).toEqual(kept);
    expect(await records()).toEqual(keptRecords);
    expect(await everything()).toEqual(before.shown);
    expect(await plan()).toEqual(before.plan);
    expect(await dropOldHours(store, { sourceId, keepHours: keepDays * 24 })).toBe(0);
  };
  await fc.assert(
    fc.asyncProperty(fc.array(load, { minLength: 1, maxLength: 12, size: "max" }), fc.nat(DAYS + 2), holds),
    { numRuns: times(5) },
  );
});
