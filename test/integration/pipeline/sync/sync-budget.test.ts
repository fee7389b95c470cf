import { describe, expect, test } from "vitest";
import { planSync } from "../../../../src/core/pipeline/sync/sync.ts";
import { knownSyncBudget, syncBudget } from "../../../../src/core/pipeline/sync/sync-budget.ts";
import { putOffTasks } from "../../../../src/core/store/work/tasks.ts";
import { setup } from "../../../support/source.ts";

describe("the requests that a sync needs", () => {
  test("are those it plans once everything is loaded, and the rate limit must allow as many", async () => {
    const bench = await setup({ days: 6 });
    await bench.sync();
    const { planned } = await bench.sync();
    const source = await bench.open();
    const need = (rateLimit: number, syncEveryMs: number) =>
      syncBudget(
        {
          ...source,
          putOff: { source: "default", tasks: 1, byHour: 0, quiet: 0, ahead: 1 },
          config: { ...source.config, rateLimit },
          settings: { ...source.settings, syncEveryMs },
        },
        bench.now,
      );
    const plenty = { needed: planned, added: [], allowed: 81_000, problem: undefined };
    expect(need(1_000, 900_000)).toMatchObject(plenty);
    const control = Math.floor(planned / 9);
    expect(need(planned + control, 10_000)).toMatchObject({ allowed: planned, problem: undefined });
    expect(need(planned + control - 1, 10_000)).toMatchObject({
      needed: planned,
      allowed: planned - 1,
      problem: {
        code: "rate_budget_short",
        message: expect.stringContaining(
          `needs up to ${planned} requests, and the rate limit allows ${planned - 1}`,
        ),
        next: expect.stringContaining("USAGE_SYNC_EVERY to PT1M or more"),
      },
    });
    const [, minutes] = /PT(\d+)M/.exec(need(1, 10_000).problem?.next ?? "") ?? [];
    expect(need(1, Number(minutes) * 60_000).problem).toBeUndefined();
    expect(need(1, (Number(minutes) - 1) * 60_000).problem).toBeDefined();

    const known = (slug: string) =>
      knownSyncBudget(bench.store.db, { config: { ...source.config, slug }, settings: source.settings });
    expect(await known("default")).toEqual({ ...plenty, putOff: null });
    expect(await known("another")).toBeUndefined();
    await bench.sql("INSERT INTO usage.source_fact (source_id, fact, evidence) VALUES ($1, 'no_hour', 'x')", [
      source.sourceId,
    ]);
    const days = (await known("default"))?.needed ?? 0;
    expect([days > 0, days < planned]).toEqual([true, true]);
  });

  test("are in a warning of each sync that is allowed fewer and finds tasks of an earlier one", async () => {
    const bench = await setup({ days: 6 });
    const warnings = () => bench.logs.filter((line) => line.code === "rate_budget_short");
    const { created } = await planSync(await bench.open());
    const short = { config: { rateLimit: 1 }, settings: { syncEveryMs: 10_000 } };
    expect(await planSync(await bench.open(short))).toMatchObject({ putOff: 0 });
    expect(warnings()).toEqual([]);
    await bench.sql("UPDATE usage.fetch_task SET created_at = now() - interval '11 seconds'");
    for (const state of ["paused", "running"]) {
      await bench.sql(
        `WITH b AS (
           INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspace_ids, reprocess, state, created_at)
           VALUES (1, 'day', '2026-02-01Z', '2026-02-02Z', '{project}', '{a}', 'all', $1, now() - interval '1 day') RETURNING backfill_id
         ) INSERT INTO usage.fetch_task (source_id, backfill_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
         SELECT 1, backfill_id, 'project', 'day', '2026-02-01Z', '2026-02-02Z', '{1}', '{a}' FROM b`,
        [state],
      );
    }
    expect(await planSync(await bench.open(short))).toMatchObject({ putOff: created });
    expect(warnings()).toMatchObject([
      {
        level: 40,
        allowed: 0,
        message: expect.stringMatching(
          /\d+ fetch tasks of syncs are put off \(\d+ by hour\)\. At the rate limit/,
        ),
        next: expect.stringContaining("USAGE_SYNC_EVERY"),
      },
    ]);
    const [all] = await putOffTasks(bench.store.db, short.settings);
    expect(all).toMatchObject({ source: "default", tasks: created, quiet: 0, ahead: created + 1 });
    expect(await putOffTasks(bench.store.db, { syncEveryMs: 900_000 })).toEqual([]);
  });
});
