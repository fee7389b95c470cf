import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { pruneLedgers } from "../../../../src/core/pipeline/upkeep.ts";
import { sourceStatuses } from "../../../../src/core/store/activity/overview.ts";
import { hoursDue } from "../../../../src/core/store/proof/days-due.ts";
import { senderOn, setup } from "../../../support/source.ts";
import { DAYS, night, wrong } from "./bench.ts";

describe("hours", () => {
  test("are reconciled once, and again where their day was restated", async () => {
    const bench = await setup({ workspaces: [0], days: 8, hourlyForMs: 7 * DAY_MS });
    await bench.sync();
    const [day, hour] = (await night(bench)).results;
    expect([day?.windows, (hour?.windows ?? 0) > 8]).toEqual([4, true]);
    expect((await night(bench)).sent).toEqual({ "reconcile day": 4 });

    // The day is restated by somebody else's load; its hours are stale, and nobody has said so.
    const at = bench.today - 5 * DAY_MS;
    bench.standin.ledger.change(senderOn(bench.standin, 0, at), 7);
    await bench.fetch({
      wanted: [{ stride: "day", range: { start: at, end: at + DAY_MS } }],
      reprocess: "all",
    });
    const third = await night(bench);
    expect(third).toMatchObject({ left: 0, mended: 4 });
    expect(
      await wrong(bench, "hour", { start: bench.today - 7 * DAY_MS, end: bench.today - 3 * DAY_MS }),
    ).toEqual([]);
    expect((await night(bench)).sent).toEqual({ "reconcile day": 4 });
  });

  test("that were restated by themselves are due again, on that day alone", async () => {
    const bench = await setup({ workspaces: [0], days: 8, hourlyForMs: 7 * DAY_MS });
    await bench.sync();
    await night(bench);
    const at = bench.today - 5 * DAY_MS;
    const owed = () =>
      hoursDue(bench.store.db, {
        sourceId: 1,
        range: { start: bench.dataStart, end: bench.today },
        keptFrom: bench.dataStart,
      });
    expect(await owed()).toEqual([]);
    bench.standin.ledger.change(senderOn(bench.standin, 0, at), 7);
    const wanted = [{ stride: "hour" as const, range: { start: at, end: at + DAY_MS } }];
    await bench.fetch({ wanted, reprocess: "all", groupings: ["user"] });
    expect((await owed()).map(({ day }) => day)).toEqual([at]);
  });

  test("that are older than USAGE_HOURLY_FOR are compared again where their day was restated", async () => {
    const bench = await setup({ workspaces: [0], days: 20, hourlyForMs: 19 * DAY_MS });
    await bench.sync();
    await night(bench);
    const how = { settings: { hourlyForMs: 9 * DAY_MS } };
    expect((await night(bench, DAYS, how)).sent).toEqual({ "reconcile day": 4 });
    bench.standin.ledger.change(senderOn(bench.standin, 0, bench.today - 15 * DAY_MS), 7);
    expect(await night(bench, DAYS, how)).toMatchObject({ left: 0, mended: 8 });
    const kept = { start: bench.today - 19 * DAY_MS, end: bench.today - 3 * DAY_MS };
    expect(await wrong(bench, "hour", kept)).toEqual([]);
    expect((await night(bench, DAYS, how)).sent).toEqual({ "reconcile day": 4 });
  });
});

describe("a difference in hours", () => {
  async function found() {
    const bench = await setup({ workspaces: [0], days: 20, hourlyForMs: 19 * DAY_MS });
    await bench.sync();
    const at = bench.today - 15 * DAY_MS;
    bench.standin.ledger.change(senderOn(bench.standin, 0, at), 7);
    await bench.reconcile({ stride: "hour", range: { start: at, end: at + DAY_MS } });
    return bench;
  }

  test("that are older than USAGE_HOURLY_FOR is repaired by the next night all the same", async () => {
    const bench = await found();
    const result = await night(bench, 4, { settings: { hourlyForMs: 9 * DAY_MS } });
    expect(result.left).toBe(0);
    expect(
      await bench.sql(
        "SELECT state, count(*)::integer AS n FROM reporting_detail.usage_reconciliation WHERE stride = 'hour' GROUP BY 1",
      ),
    ).toEqual([{ state: "repaired", n: 4 }]);
  });

  test("that are dropped ends as just that", async () => {
    const bench = await found();
    await bench.sql("UPDATE usage.coverage SET fetched_at = fetched_at - interval '30 days'");
    const prune = (keepHours: number) =>
      pruneLedgers(bench.store, { sourceId: 1, keepDays: 400, keepHours, userEmail: "keep" });
    const states = () =>
      bench.sql("SELECT state, count(*)::integer AS n FROM reporting_detail.usage_reconciliation GROUP BY 1");
    await prune(18 * 24);
    expect(await states()).toEqual([{ state: "open", n: 4 }]);
    await prune(10 * 24);
    expect(await states()).toEqual([{ state: "hours_dropped", n: 4 }]);
    expect((await sourceStatuses(bench.store.db))[0]?.openDifferences).toBe(0);
  });
});
