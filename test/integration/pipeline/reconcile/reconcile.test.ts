import { describe, expect, test } from "vitest";
import { DAY_MS, STRIDE_MS } from "../../../../src/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/domain/usage/record.ts";
import { senderOn, setup } from "../../../support/source.ts";
import { dump, wrongFigures } from "../../../support/tables.ts";
import { aRecord, firstDay } from "./bench.ts";

/** Postgres held against the export: what is found is what is there, no more and no less. */

describe("clean data", () => {
  test.each(["day", "hour"] as const)("has no difference in any dimension, by %s", async (stride) => {
    const bench = await setup({ hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    for (const groupBy of GROUPINGS) {
      const result = await bench.reconcile({ stride, groupings: [groupBy] });
      expect(result).toMatchObject({ differences: [], failures: [], unverified: 0 });
      const [{ n } = { n: -1 }] = await bench.sql<{ n: number }>(
        `SELECT count(*) AS n FROM reporting_detail.usage_record WHERE is_final AND group_by = $1 AND stride = $2`,
        [groupBy, stride],
      );
      expect(n).toBeGreaterThan(0);
      expect([groupBy, result.compared]).toEqual([groupBy, n]);
    }
  });

  test("has no difference in names and keys that look like formulas, nor in weeks and months", async () => {
    const bench = await setup({ days: 170, workspaces: [1], hourlyForMs: 0 });
    const range = { start: bench.dataStart, end: bench.today };
    await bench.fetch({ wanted: [{ stride: "month", range }], reprocess: "missing" });
    await bench.fetch({
      wanted: [
        { stride: "week", range: { start: bench.today - 63 * DAY_MS, end: bench.today - 7 * DAY_MS } },
      ],
      reprocess: "missing",
    });
    for (const stride of ["week", "month"] as const) {
      const result = await bench.reconcile({ stride });
      expect(result.compared).toBeGreaterThan(0);
      expect(result).toMatchObject({ differences: [], failures: [] });
    }
    const guarded = await bench.sql(
      "SELECT FROM usage.entity WHERE dimension = 'api_key' AND external_id ~ '^[=+@-]'",
    );
    expect(guarded.length).toBeGreaterThan(0);
  });

  test("is never compared where it may still change", async () => {
    const bench = await setup({ workspaces: [0, 1], hourlyForMs: 2 * DAY_MS });
    await bench.sync();
    await bench.sql("UPDATE usage.hourly_record SET traces = traces + 1");
    await bench.sql("UPDATE usage.dated_record SET traces = traces + 1 WHERE bucket_start >= $1::date", [
      new Date(bench.today - 3 * DAY_MS).toISOString().slice(0, 10),
    ]);
    for (const stride of ["day", "hour"] as const) {
      expect((await bench.reconcile({ stride })).differences).toEqual([]);
    }
    // One day more is final, and there it would have been found.
    await bench.sql("UPDATE usage.dated_record SET traces = traces + 1");
    expect((await bench.reconcile()).differences.length).toBeGreaterThan(0);
  });
});

describe("a difference", () => {
  test("in a changed, a missing and an extra row is found with its kind, kept, and repaired", async () => {
    const bench = await setup({ workspaces: [0, 1] });
    await bench.sync();
    const before = await dump(bench);
    const changed = await aRecord(bench);
    await bench.sql(
      "UPDATE usage.dated_record SET traces = traces + 3 WHERE series_id = $1 AND bucket_start = $2",
      [changed.series_id, firstDay(bench)],
    );
    const [deleted] = await bench.sql<{ series_id: number; traces: number }>(
      `DELETE FROM usage.dated_record r USING usage.series s JOIN usage.trace_scope c USING (scope_id)
       WHERE s.series_id = r.series_id AND c.group_by = 'workspace' AND bucket_start = $1::date + 1
         AND c.stride = 'day' AND r.traces > 0
       RETURNING r.series_id, r.traces`,
      [firstDay(bench)],
    );
    const [entity] = await bench.sql<{ entity_id: number }>(
      `INSERT INTO usage.entity (source_id, dimension, external_id) VALUES (1, 'project', 'invented') RETURNING entity_id`,
    );
    await bench.sql(
      `WITH s AS (INSERT INTO usage.series (scope_id, entity_id) VALUES ($1, $2) RETURNING series_id)
       INSERT INTO usage.dated_record SELECT series_id, $3::date, 7 FROM s`,
      [changed.scope_id, entity?.entity_id, firstDay(bench)],
    );

    const found = await bench.reconcile();
    const byKind = found.differences.map((one) => [
      one.kind,
      one.groupBy,
      one.storedTraces,
      one.exportTraces,
    ]);
    expect(byKind).toContainEqual(["traces_differ", "project", changed.traces + 3, changed.traces]);
    expect(byKind).toContainEqual(["missing_in_store", "workspace", null, deleted?.traces]);
    expect(byKind).toContainEqual(["missing_in_export", "project", 7, null]);
    const kept = async (state: string) =>
      bench.sql<{ kind: string }>("SELECT kind FROM reporting_detail.usage_reconciliation WHERE state = $1", [
        state,
      ]);
    expect((await kept("open")).length).toBe(found.differences.length);

    const repaired = await bench.reconcile({ repair: true });
    expect(repaired.repaired?.differences).toBe(found.differences.length);
    expect(repaired.differences).toEqual([]);
    expect(await kept("open")).toEqual([]);
    expect((await kept("repaired")).length).toBe(found.differences.length);
    const after = await dump(bench);
    expect(after.records).toEqual(before.records);
    expect(after.coverage).toEqual(before.coverage);
    expect((await bench.reconcile()).differences).toEqual([]);
  });

  test("that the platform made afterwards is repaired as a restatement", async () => {
    const bench = await setup({ workspaces: [0, 1], hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    bench.standin.ledger.change(senderOn(bench.standin, 1, bench.today - 5 * DAY_MS), 9);
    for (const stride of ["day", "hour"] as const) {
      const found = await bench.reconcile({ stride });
      expect(found.differences.map(({ kind, groupBy }) => [kind, groupBy])).toEqual(
        GROUPINGS.map((groupBy) => ["traces_differ", groupBy]),
      );
      for (const one of found.differences) expect((one.exportTraces ?? 0) - (one.storedTraces ?? 0)).toBe(9);
      const repaired = await bench.reconcile({ stride, repair: true });
      expect(repaired.differences).toEqual([]);
      // The days that differ and no others were fetched again.
      for (const { planned } of repaired.repaired?.run.counts ?? []) expect(planned).toBe(1);
    }
    expect((await dump(bench)).restatements).toHaveLength(8);
    expect(await wrongFigures(bench)).toEqual([]);
  });

  /** The pass while one of two workspaces is out of the key's reach. */
  async function withoutAccess(listing: boolean) {
    const bench = await setup({ workspaces: [0, 1], standin: { listing } });
    await bench.sync();
    const lost = bench.standin.organisation.workspaces[1];
    if (lost === undefined) throw new Error("no workspace");
    bench.standin.access.setReadable(lost, false);
    return bench.reconcile({ repair: true });
  }

  test("does not arise from rows that the key may no longer see", async () => {
    expect(await withoutAccess(true)).toMatchObject({ differences: [], unverified: 4 });
  });

  test("does not arise without a listing, minutes after a sync", async () => {
    expect(await withoutAccess(false)).toMatchObject({ differences: [], unverified: 4 });
  });
});

describe("a platform that goes away", () => {
  test("ends the pass after three windows, not after all of them", async () => {
    const bench = await setup({ workspaces: [0, 1, 2] });
    await bench.sync();
    const { count } = bench.standin.requests;
    bench.standin.faults.script({ fault: { kind: "reset" }, times: 10_000, match: { path: "/export" } });
    await expect(bench.reconcile()).rejects.toMatchObject({ code: "platform_unreachable" });
    expect(bench.standin.requests.count - count).toBeLessThan(30);
  });

  test("ends the pass at once where it refuses the key", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    bench.standin.faults.script({ fault: { kind: "status", status: 401 }, match: { path: "/export" } });
    await expect(bench.reconcile()).rejects.toMatchObject({ status: 401 });
    expect(await bench.sql("SELECT refused_code FROM usage.source")).toEqual([
      { refused_code: "unauthorized" },
    ]);
  });
});

test("a range is compared only where it is final", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const range = { start: bench.dataStart + DAY_MS, end: bench.dataStart + 2 * DAY_MS };
  await bench.reconcile({ range });
  const asked = await bench.sql<{ period_start: Date; period_end: Date }>(
    "SELECT DISTINCT period_start, period_end FROM usage.fetch WHERE purpose = 'reconcile'",
  );
  expect(asked.map(({ period_start, period_end }) => [period_start.getTime(), period_end.getTime()])).toEqual(
    [[range.start, range.start + STRIDE_MS.day]],
  );
});
