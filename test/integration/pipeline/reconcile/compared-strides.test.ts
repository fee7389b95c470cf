import { describe, expect, test } from "vitest";
import { describeReconcile } from "../../../../src/app/commands/reconcile.ts";
import { DAY_MS, STRIDE_MS } from "../../../../src/core/domain/time/stride.ts";
import type { OpenSource } from "../../../../src/core/pipeline/source/source.ts";
import { platformError } from "../../../support/platform-error.ts";
import { senderOn, setup } from "../../../support/source.ts";
import { wrong } from "./bench.ts";

describe("without a stride", () => {
  const EVERY = { stride: undefined, repair: true } as const;

  test("a repair replaces the hours of a restated day too, and says which strides it compared", async () => {
    const bench = await setup({ workspaces: [0], hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    await bench.reconcile(EVERY);
    const { standin, today } = bench;
    standin.ledger.change(senderOn(standin, 0, today - 5 * DAY_MS), 9);
    const result = await bench.reconcile(EVERY);
    expect(result).toMatchObject({ open: 0, otherStrides: [], repaired: { differences: 8, mended: 8 } });
    expect(result.strides).toMatchObject([
      { stride: "day", open: 0, repaired: { mended: 4 } },
      { stride: "hour", open: 0, repaired: { mended: 4 } },
    ]);
    for (const count of ["windows", "requests", "compared", "open", "platformDisagrees"] as const)
      expect(result[count], count).toBe(result.strides.reduce((sum, one) => sum + one[count], 0));
    const range = { start: today - 5 * DAY_MS, end: today - 3 * DAY_MS };
    expect(await wrong(bench, "hour", range)).toEqual([]);
  });

  test("hours that moved within their day are found, although the days agree and one dimension fails", async () => {
    const bench = await setup({ workspaces: [0], hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    const sender = senderOn(bench.standin, 0, bench.today - 5 * DAY_MS);
    bench.standin.ledger.change(sender, -1);
    const later = sender.at % DAY_MS < DAY_MS - STRIDE_MS.hour ? STRIDE_MS.hour : -STRIDE_MS.hour;
    bench.standin.ledger.change({ ...sender, at: sender.at + later }, 1);
    const failing = async ({ billing }: OpenSource) => {
      const { exportCsv } = billing;
      billing.exportCsv = async (query, requesting) => {
        if (query.groupBy === "user") throw platformError(500);
        return exportCsv(query, requesting);
      };
    };
    const result = await bench.reconcile({ ...EVERY, repair: false }, { opened: failing });
    const { strides } = result;
    expect(strides.map(({ stride, open }) => [stride, open])).toEqual([
      ["day", 0],
      ["hour", 6],
    ]);
    expect(strides.every(({ failures }) => failures.length > 0)).toBe(true);
    for (const list of ["failures", "differences"] as const)
      expect(result[list], list).toEqual(strides.flatMap((one) => [...one[list]]));
  });

  test("a repair counts the differences that it asked about, and those that it could not stay", async () => {
    const bench = await setup({ workspaces: [0], hourlyForMs: STRIDE_MS.hour });
    await bench.sync();
    bench.standin.ledger.change(senderOn(bench.standin, 0, bench.today - 5 * DAY_MS), 9);
    expect(await bench.reconcile()).toMatchObject({ open: 4 });
    await bench.sql(
      "UPDATE usage.coverage SET final = false WHERE scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE group_by = 'user')",
    );
    expect(await bench.reconcile({ repair: true })).toMatchObject({
      open: 1,
      repaired: { differences: 3, mended: 3, withdrawn: 0 },
    });
  });

  test("strides that were not compared are named, with the differences that are left in them", async () => {
    const bench = await setup({ workspaces: [0], hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    expect(await bench.reconcile()).toMatchObject({ otherStrides: [{ stride: "hour", differences: 0 }] });
    bench.standin.ledger.change(senderOn(bench.standin, 0, bench.today - 5 * DAY_MS), 9);
    await bench.reconcile({ stride: "hour" });
    const result = await bench.reconcile({ repair: true });
    expect(result).toMatchObject({ open: 0, otherStrides: [{ stride: "hour", differences: 4 }] });
    expect(describeReconcile(result)).toMatch(
      /not compared: stride hour\. Run reconcile with --stride hour to compare it\. 4 differences found earlier/,
    );
    const range = { start: bench.today - 5 * DAY_MS, end: bench.today - 4 * DAY_MS };
    await bench.sql("UPDATE usage.coverage SET final = false");
    expect(await bench.reconcile({ stride: "hour", range })).toMatchObject({ windows: 0, open: 4 });
  });

  test("hours that the server does not have are listed as not available", async () => {
    const bench = await setup({
      workspaces: [0],
      hourlyForMs: 3 * DAY_MS,
      standin: { contract: "day-granular" },
    });
    await bench.sync();
    const result = await bench.reconcile(EVERY);
    expect(result).toMatchObject({ failures: [], requests: 4 });
    const [day, hour] = result.strides;
    expect(day?.notCompared).toEqual({ provisional: 12, failed: 0, missing: 0, notKept: 0, notAvailable: 0 });
    expect(hour).toMatchObject({ stride: "hour", windows: 0, notCompared: { missing: 0, failed: 0 } });
    expect(hour?.notCompared.notAvailable).toBeGreaterThan(4 * 71);
  });
});
