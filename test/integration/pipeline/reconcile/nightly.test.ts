import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { pruneLedgers } from "../../../../src/core/pipeline/upkeep.ts";
import { sourceStatuses } from "../../../../src/core/store/activity/overview.ts";
import { startProxy } from "../../../support/proxy.ts";
import { senderOn, setReadable, setup } from "../../../support/source.ts";
import { DAYS, night, unreconciled } from "./bench.ts";

describe("months", () => {
  async function months() {
    const bench = await setup({ workspaces: [0], days: 80, hourlyForMs: 0 });
    await bench.sync();
    return bench;
  }

  test("are reconciled once more after they end, and a missed night is caught up", async () => {
    const bench = await months();
    const first = await night(bench, 4);
    expect(first.failed).toBe(0);
    const reach = await bench.sql<{ from: Date }>("SELECT min(period_start) AS from FROM usage.reconciled");
    expect(reach[0]?.from.getTime()).toBe(bench.dataStart);
    expect(await unreconciled(bench)).toEqual([]);
    expect((await night(bench, 4)).sent).toEqual({ "reconcile day": 4 });
  });

  test("that were reconciled before they were final are reconciled once more", async () => {
    const bench = await months();
    await night(bench, 4);
    const monthStart = new Date(bench.today);
    const final = Date.UTC(monthStart.getUTCFullYear(), monthStart.getUTCMonth() - 1, 1) + 4 * DAY_MS;
    // As if the last pass over them had been a day too early.
    await bench.sql("UPDATE usage.reconciled SET reconciled_at = $1 WHERE period_start < $1", [
      new Date(final - DAY_MS),
    ]);
    const again = await night(bench, 4);
    expect(again.sent["reconcile day"]).toBeGreaterThan(4);
    expect((await night(bench, 4)).sent).toEqual({ "reconcile day": 4 });
  });

  test("with a restated day stay unproved when the restatement is pruned", async () => {
    const bench = await months();
    await night(bench, 4);
    const reach = () =>
      bench.sql<{ days: number }>(
        "SELECT sum(extract(epoch FROM period_end - period_start) / 86400)::integer AS days FROM usage.reconciled",
      );
    const [proved] = await reach();
    const at = bench.dataStart + DAY_MS;
    bench.standin.ledger.change(senderOn(bench.standin, 0, at), 7);
    await bench.fetch({
      wanted: [{ stride: "day", range: { start: at, end: at + DAY_MS } }],
      reprocess: "all",
    });
    const before = await unreconciled(bench);
    expect(before).toHaveLength(4);
    await bench.sql("UPDATE usage.restatement SET restated_at = now() - interval '500 days'");
    await bench.sql("UPDATE usage.source SET created_at = now() - interval '600 days'");
    const pruned = await pruneLedgers(bench.store, { sourceId: 1, keepDays: 400, userEmail: "keep" });
    expect(pruned.restatements).toBe(4);
    expect(await unreconciled(bench)).toEqual(before);
    expect(await reach()).toEqual([{ days: (proved?.days ?? 0) - 4 }]);
    expect(await night(bench, 4)).toMatchObject({ left: 0, sent: { "reconcile day": 8 } });
    expect(await unreconciled(bench)).toEqual([]);
  });

  test("with a day on which the platform contradicts itself are not asked about it every night", async () => {
    const bench = await months();
    const proxy = await startProxy(bench.standin.url, ({ url, text }) => {
      if (!url.pathname.endsWith("/export") || url.searchParams.get("group_by") !== "workspace")
        return undefined;
      const day = new Date(bench.dataStart).toISOString().slice(0, 10);
      return text.replace(
        new RegExp(`^(${day}T.*,)(\\d+)\r`, "m"),
        (_, head, n) => `${head}${Number(n) + 1}\r`,
      );
    });
    const how = { baseUrl: proxy.url };
    expect((await night(bench, 4, how)).left).toBe(1);
    expect(await unreconciled(bench)).toEqual([
      {
        day: bench.dataStart,
        groupBy: "workspace",
        workspaceId: bench.workspaceIds[0],
        reason: "platform_disagrees",
      },
    ]);
    expect((await night(bench, 4, how)).sent).toEqual({ "reconcile day": 4 });
  });
});

test("a workspace that left the listing is skipped, and its differences stay open until it is back", async () => {
  const bench = await setup({ workspaces: [0, 1], hourlyForMs: 0, days: 60 });
  await bench.sync();
  await night(bench, 4);
  await bench.sql(
    "UPDATE usage.workspace SET unlisted_since = now(), readable_at = NULL WHERE entity_id = (SELECT min(entity_id) FROM usage.workspace)",
  );
  await bench.sql("DELETE FROM usage.reconciled");
  setReadable(bench.standin, 0, false);
  const { failed } = await night(bench, 4);
  // Of its recent days it is said that they could not be compared; its months are not owed for ever.
  expect(failed).toBe(4);
  expect((await unreconciled(bench)).every(({ workspaceId }) => workspaceId === bench.workspaceIds[0])).toBe(
    true,
  );
});

test("a difference of a workspace that is no longer configured ends, and is found again when it is", async () => {
  const bench = await setup({ workspaces: [0, 1], hourlyForMs: 0 });
  await bench.sync();
  bench.standin.ledger.change(senderOn(bench.standin, 1, bench.today - 5 * DAY_MS), 9);
  await bench.reconcile();
  const states = async () =>
    (
      await bench.sql<{ state: string }>(
        "SELECT DISTINCT state FROM usage.difference WHERE compared_with = 'export'",
      )
    ).map((row) => row.state);
  expect(await states()).toEqual(["open"]);
  await night(bench, DAYS, { config: { workspaceIds: bench.workspaceIds.slice(0, 1) } });
  expect(await states()).toEqual(["not_configured"]);
  expect((await sourceStatuses(bench.store.db))[0]?.openDifferences).toBe(0);
  expect(await night(bench)).toMatchObject({ left: 0, mended: 4 });
  expect(await states()).toEqual(["repaired"]);
});

test("an older export that arrives late does not undo what a newer one proved", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  await bench.reconcile({ groupings: ["project"] });
  const [newest] = await bench.sql<{ fetch_number: number }>("SELECT fetch_number FROM usage.reconciled");
  await bench.sql("UPDATE usage.reconciled SET fetch_number = fetch_number + 1000");
  await bench.reconcile({ groupings: ["project"] });
  expect(await bench.sql("SELECT fetch_number FROM usage.reconciled")).toEqual([
    { fetch_number: (newest?.fetch_number ?? 0) + 1000 },
  ]);
});
