import fc from "fast-check";
import { expect, test } from "vitest";
import { planTasks } from "../../../../src/core/domain/planning/plan-tasks.ts";
import { normalize } from "../../../../src/core/domain/time/intervals.ts";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../../src/core/domain/time/window.ts";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { ensureScopes, scopeStates } from "../../../../src/core/store/catalog/scopes.ts";
import { tasksInFlight } from "../../../../src/core/store/work/tasks.ts";
import { type Bench, setup } from "../../../support/source.ts";

const DAYS = 40;
const GROUPINGS = ["workspace", "project"] as const;
const WORKSPACES = 2;

function parts<T>(value: fc.Arbitrary<T>) {
  return fc
    .array(fc.record({ start: fc.nat(DAYS + 4), days: fc.integer({ min: 1, max: 9 }), value }), {
      maxLength: 6,
    })
    .map((list) => {
      let free = 0;
      return list
        .sort((a, b) => a.start - b.start)
        .flatMap((one) => {
          const start = Math.max(one.start, free);
          free = Math.max(free, one.start + one.days);
          return start < free && one.start + one.days > start
            ? [{ ...one, start, end: one.start + one.days }]
            : [];
        });
    });
}

const scopeTime = fc.record({
  loaded: parts(fc.boolean()),
  failed: parts(fc.boolean()),
  flying: fc.array(
    fc.record({ start: fc.nat(DAYS), days: fc.integer({ min: 1, max: 9 }), isPaused: fc.boolean() }),
    { maxLength: 3 },
  ),
});
const given = fc.record({
  scopes: fc.array(scopeTime, {
    minLength: GROUPINGS.length * WORKSPACES,
    maxLength: GROUPINGS.length * WORKSPACES,
  }),
  wanted: fc.tuple(fc.nat(DAYS - 1), fc.integer({ min: 1, max: DAYS })),
  reprocess: fc.constantFrom("missing" as const, "all" as const),
  retry: fc.constantFrom("due" as const, "all" as const),
  dataStart: fc.nat(5),
});

test("a plan is what is wanted, but for final time, failures that are not due, and time in flight, of each scope", async () => {
  const bench = await setup({ days: DAYS, workspaces: [0, 1] });
  const source = await bench.open();
  const { sourceId, store } = source;
  const strides = ["day"] as const;
  await ensureScopes(store.db, { sourceId, groupings: GROUPINGS, strides });
  const known = await scopeStates(store.db, { sourceId, groupings: GROUPINGS, strides });
  const at = (day: number) => bench.dataStart + day * DAY_MS;
  let plans = 0;

  await fc.assert(
    fc.asyncProperty(
      given,
      async ({ scopes, wanted: [from, length], reprocess, retry, dataStart: first }) => {
        await create(
          bench,
          sourceId,
          scopes.map((time, i) => ({ ...time, scopeId: known[i]?.scopeId ?? 0 })),
        );
        const range = { start: at(from), end: at(from + length) };
        const wanted = [{ stride: "day" as const, range }];
        const dataStart = at(first);
        const inFlight = await tasksInFlight(store.db, sourceId);
        const requested = { wanted, groupings: GROUPINGS, reprocess, retry };
        const expected = (isFlying: boolean) =>
          planTasks({
            meter: "traces",
            wanted,
            dataStart,
            scopes: known.map((scope, i) => ({
              ...scope,
              missing: missingDays(scopes[i] as Scope, { reprocess, retry, isFlying }).map((day) => ({
                start: at(day),
                end: at(day + 1),
              })),
            })),
          });
        const meters = new Map([["traces" as const, dataStart]]);
        expect(await planSource({ ...source, meters }, { ...requested, inFlight })).toEqual(expected(true));
        expect(await planSource({ ...source, meters }, requested)).toEqual(expected(false));
        for (const [i, { scopeId }] of known.entries()) {
          const flying = (scopes[i] as Scope).flying.filter(({ isPaused }) => !isPaused);
          const whole: Interval[] = flying.map(({ start, days }) => ({
            start: at(start),
            end: at(start + days),
          }));
          expect(inFlight.get(scopeId) ?? []).toEqual(normalize(whole));
        }
        plans += expected(true).length;
      },
    ),
    { numRuns: 30 },
  );
  expect(plans).toBeGreaterThan(50);
});

type Scope = Parameters<typeof missingDays>[0];

function missingDays(
  {
    loaded,
    failed,
    flying,
  }: { loaded: Part[]; failed: Part[]; flying: { start: number; days: number; isPaused: boolean }[] },
  how: { reprocess: "missing" | "all"; retry: "due" | "all"; isFlying: boolean },
): number[] {
  const isIn = (day: number) => (part: { start: number; end: number }) => part.start <= day && day < part.end;
  return Array.from({ length: 2 * DAYS + 9 }, (_, day) => day).filter((day) => {
    const isFlying = flying.some((one) => !one.isPaused && isIn(day)({ ...one, end: one.start + one.days }));
    if (how.isFlying && isFlying) return false;
    if (how.reprocess === "all") return true;
    const failure = failed.find(isIn(day));
    if (failure !== undefined) return how.retry === "all" || failure.value;
    return loaded.find(isIn(day))?.value !== true;
  });
}

interface Part {
  readonly start: number;
  readonly end: number;
  readonly value: boolean;
}

async function create(
  bench: Bench,
  sourceId: number,
  scopes: readonly (Scope & { scopeId: number })[],
): Promise<void> {
  const iso = (day: number) => new Date(bench.dataStart + day * DAY_MS).toISOString();
  await bench.sql("DELETE FROM usage.coverage");
  await bench.sql("DELETE FROM usage.failure");
  await bench.sql("DELETE FROM usage.fetch_task");
  await bench.sql("DELETE FROM usage.backfill");
  const [paused] = await bench.sql<{ backfill_id: number }>(
    `INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspace_ids, reprocess, state)
     VALUES ($1, 'day', '2026-01-01Z', '2026-01-02Z', '{project}', '{a}', 'all', 'paused') RETURNING backfill_id`,
    [sourceId],
  );
  for (const { scopeId, loaded, failed, flying } of scopes) {
    for (const { start, end, value } of loaded) {
      await bench.sql("INSERT INTO usage.coverage VALUES ($1, $2, $3, $4, 1, now(), '{}')", [
        scopeId,
        iso(start),
        iso(end),
        value,
      ]);
    }
    for (const { start, end, value } of failed) {
      await bench.sql(
        "INSERT INTO usage.failure VALUES ($1, $2, $3, 'failed', 'x', 'x', 1, 1, now() - interval '2 hours', now() + $4::interval)",
        [scopeId, iso(start), iso(end), value ? "-1 hour" : "1 hour"],
      );
    }
    for (const { start, days, isPaused } of flying) {
      await bench.sql(
        `INSERT INTO usage.fetch_task (source_id, backfill_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
         VALUES ($1, $2, 'x', 'day', $3, $4, ARRAY[$5::integer], '{x}') ON CONFLICT DO NOTHING`,
        [sourceId, isPaused ? paused?.backfill_id : null, iso(start), iso(start + days), scopeId],
      );
    }
  }
}
