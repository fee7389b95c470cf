import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { describeReconcile } from "../../../../src/cli/commands/reconcile.ts";
import { DAY_MS, STRIDE_MS } from "../../../../src/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/domain/usage/record.ts";
import { startProxy } from "../../../support/proxy.ts";
import { type Bench, senderOn, setup } from "../../../support/source.ts";
import { differences, dump, inLedger, inStore } from "../../../support/tables.ts";

/** Postgres held against the export: what is found is what is there, no more and no less. */

/** One stored record of a settled day by project in workspace 0. */
async function aRecord({ sql, dataStart }: Bench) {
  const [record] = await sql<{ series_id: number; traces: number; external_id: string; scope_id: number }>(
    `SELECT r.series_id, r.traces, e.external_id, s.scope_id
     FROM usage.dated_record r JOIN usage.series s USING (series_id) JOIN usage.scope c USING (scope_id)
     JOIN usage.entity e ON e.entity_id = s.entity_id
     WHERE c.group_by = 'project' AND c.stride = 'day' AND r.bucket_start = $1::date ORDER BY r.traces DESC LIMIT 1`,
    [new Date(dataStart).toISOString().slice(0, 10)],
  );
  if (record === undefined) throw new Error("no record");
  return record;
}

const firstDay = (bench: Bench) => new Date(bench.dataStart).toISOString().slice(0, 10);

describe("clean data", () => {
  test.each(["day", "hour"] as const)("has no difference in any dimension, by %s", async (stride) => {
    const bench = await setup({ hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    for (const groupBy of GROUPINGS) {
      const result = await bench.reconcile({ stride, groupings: [groupBy] });
      expect(result).toMatchObject({ differences: [], failures: [], unverified: 0 });
      const [{ n } = { n: -1 }] = await bench.sql<{ n: number }>(
        `SELECT count(*) AS n FROM reporting.usage_record WHERE is_settled AND group_by = $1 AND stride = $2`,
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
    // One day more is settled, and there it would have been found.
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
      `DELETE FROM usage.dated_record r USING usage.series s JOIN usage.scope c USING (scope_id)
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
      bench.sql<{ kind: string }>("SELECT kind FROM reporting.usage_reconciliation WHERE state = $1", [
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
    expect(
      differences(
        await inStore(bench, ["day"]),
        inLedger(bench.standin, {
          stride: "day",
          range: { start: bench.dataStart, end: bench.today + DAY_MS },
          workspaceIds: bench.workspaceIds,
        }),
      ),
    ).toEqual([]);
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

describe("an export that cannot be trusted", () => {
  test("is not compared where every attempt is cut, and the result says so", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    await bench.sql("UPDATE usage.dated_record SET traces = traces + 1");
    const before = await dump(bench);
    bench.standin.faults.script({
      fault: { kind: "cut", framing: "length", at: "line" },
      times: 8,
      match: { path: "/export", query: { group_by: "user" } },
    });
    const result = await bench.reconcile({ groupings: ["user"] });
    expect(result).toMatchObject({ compared: 0, differences: [] });
    expect(result.failures.map(({ code }) => code)).toEqual(["answer_cut"]);
    expect(await dump(bench)).toEqual(before);
    // One attempt that is whole makes it good.
    bench.standin.faults.script({
      fault: { kind: "cut", framing: "chunked", at: "line" },
      times: 3,
      match: { path: "/export" },
    });
    expect((await bench.reconcile({ groupings: ["user"] })).differences.length).toBeGreaterThan(0);
  });

  test("without a proven end may show differing rows, never missing ones", async () => {
    const bench = await setup({ workspaces: [0], standin: { framing: "close", compress: false } });
    await bench.sync();
    const changed = await aRecord(bench);
    await bench.sql(
      "UPDATE usage.dated_record SET traces = traces + 3 WHERE series_id = $1 AND bucket_start = $2",
      [changed.series_id, firstDay(bench)],
    );
    // Cut at the end of a line: no byte of it tells that half is gone.
    bench.standin.faults.script({
      fault: { kind: "cut", framing: "close", at: "line" },
      times: 1,
      match: { path: "/export" },
    });
    const cut = await bench.reconcile({ groupings: ["project"] });
    expect(cut.differences.filter(({ kind }) => kind !== "traces_differ")).toEqual([]);
    const whole = await bench.reconcile({ groupings: ["project"] });
    expect(whole.differences.map(({ kind }) => kind)).toEqual(["traces_differ"]);
    await bench.sql(
      "UPDATE usage.dated_record SET traces = traces - 3 WHERE series_id = $1 AND bucket_start = $2",
      [changed.series_id, firstDay(bench)],
    );
  });

  test.each([1, 2])(
    "that ends %s characters within the last row is a cut, and no count differs",
    async (lost) => {
      const bench = await setup({ workspaces: [0] });
      await bench.sync();
      // The last row of the export has a number of two digits; its end is gone, and the body is sent on as if it were whole.
      const cut = (text: string) =>
        `${text.trimEnd().slice(0, text.trimEnd().lastIndexOf(",") + 1)}10`.slice(0, -lost);
      let left = 1;
      const proxy = await startProxy(bench.standin.url, ({ url, text }) =>
        url.pathname.endsWith("/export") && left-- > 0 ? cut(text) : undefined,
      );
      const asked = { groupings: ["project"] } as const;
      // The next attempt is whole.
      expect(await bench.reconcile(asked, { baseUrl: proxy.url })).toMatchObject({
        open: 0,
        failures: [],
        requests: 2,
      });
      expect(await bench.sql("SELECT FROM usage.reconciliation_difference")).toEqual([]);
      const proved = await bench.sql("SELECT scope_id, period_start, period_end FROM usage.reconciled");
      expect(proved).toHaveLength(1);
      // Where every attempt is cut, nothing was compared, and what was proved stays.
      left = 100;
      const always = await bench.reconcile(asked, { baseUrl: proxy.url });
      expect(always).toMatchObject({ open: 0, compared: 0, failures: [{ code: "answer_cut" }] });
      expect(await bench.sql("SELECT FROM usage.reconciliation_difference")).toEqual([]);
      expect(await bench.sql("SELECT scope_id, period_start, period_end FROM usage.reconciled")).toEqual(
        proved,
      );
    },
  );

  test("whose last row lacks its line end alone is compared", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    const proxy = await startProxy(bench.standin.url, ({ url, text }) =>
      url.pathname.endsWith("/export") ? text.trimEnd() : undefined,
    );
    expect(await bench.reconcile({}, { baseUrl: proxy.url })).toMatchObject({
      open: 0,
      failures: [],
      requests: 4,
    });
  });

  test("without a proven end never shows a part of a sum as a differing count", async () => {
    const bench = await setup({ workspaces: [0], standin: { framing: "close", compress: false } });
    await bench.sync();
    // Two rows of each key: the second halves come last, and the connection closes before them.
    const bytes = async (url: URL) => {
      const key = { "x-api-key": bench.standin.apiKey };
      const [head = "", ...rows] = (await (await fetch(url, { headers: key })).text())
        .trimEnd()
        .split("\r\n");
      const half = (row: string) => row.replace(/\d+$/, (n) => String(Math.floor(Number(n) / 2)));
      return [head, ...rows.map(half), rows[0], ""].join("\r\n");
    };
    const server = createServer(async (socket) => {
      socket.once("data", async (request) => {
        const path = /^GET (\S+)/.exec(request.toString())?.[1] ?? "/";
        const url = new URL(path, bench.standin.url);
        if (path.includes("/export")) {
          socket.end(
            `HTTP/1.1 200 OK\r\ncontent-type: text/csv\r\nconnection: close\r\n\r\n${await bytes(url)}`,
          );
          return;
        }
        const answer = await fetch(url, { headers: { "x-api-key": bench.standin.apiKey } });
        socket.end(
          `HTTP/1.1 ${answer.status} OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n${await answer.text()}`,
        );
      });
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    onTestFinished(() => new Promise<void>((closed) => void server.close(() => closed())));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const result = await bench.reconcile({ groupings: ["api_key"] }, { baseUrl });
    expect(result).toMatchObject({ failures: [], windows: 1 });
    // Only the first row has more than what is stored: one and a half times as much.
    expect(
      result.differences.map(({ kind, storedTraces, exportTraces }) => [
        kind,
        (exportTraces ?? 0) > (storedTraces ?? 0),
      ]),
    ).toEqual([["traces_differ", true]]);
  });

  test("that lacks a column is refused by name, and changes nothing", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    const before = await dump(bench);
    const proxy = await startProxy(bench.standin.url, ({ url, text }) =>
      url.pathname.endsWith("/export") ? text.replace("Traces", "Runs") : undefined,
    );
    const result = await bench.reconcile({ groupings: ["workspace"] }, { baseUrl: proxy.url });
    expect(result).toMatchObject({ compared: 0, differences: [] });
    expect(result.failures.map(({ message }) => message)).toEqual([expect.stringContaining("Traces")]);
    expect(await dump(bench)).toEqual(before);
    // Not asked again: it would be the same.
    expect(proxy.seen.filter((url) => url.pathname.endsWith("/export"))).toHaveLength(1);
  });

  test("of another stride is refused", async () => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    bench.standin.faults.script({ fault: { kind: "stride", stride: "hour" }, match: { path: "/export" } });
    const result = await bench.reconcile({ groupings: ["workspace"] });
    expect(result).toMatchObject({ compared: 0, differences: [] });
    expect(result.failures).toHaveLength(1);
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

test("a range is compared only where it is settled", async () => {
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

describe("without a stride", () => {
  const EVERY = { stride: undefined, repair: true } as const;

  test("a repair replaces the hours of a restated day too, and says which strides it compared", async () => {
    const bench = await setup({ workspaces: [0], hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    await bench.reconcile(EVERY);
    const { standin, today, workspaceIds } = bench;
    standin.ledger.change(senderOn(standin, 0, today - 5 * DAY_MS), 9);
    const result = await bench.reconcile(EVERY);
    expect(result).toMatchObject({ open: 0, otherStrides: [], repaired: { differences: 8, mended: 8 } });
    expect(result.strides).toMatchObject([
      { stride: "day", open: 0, repaired: { mended: 4 } },
      { stride: "hour", open: 0, repaired: { mended: 4 } },
    ]);
    const range = { start: today - 5 * DAY_MS, end: today - 3 * DAY_MS };
    const stored = new Map(
      [...(await inStore(bench, ["hour"]))].filter(
        ([key]) => Date.parse(key.split(" ")[2] ?? "") < range.end,
      ),
    );
    expect(differences(stored, inLedger(standin, { stride: "hour", range, workspaceIds }))).toEqual([]);
  });

  test("hours that moved within their day are found, although the days agree", async () => {
    const bench = await setup({ workspaces: [0], hourlyForMs: 5 * DAY_MS });
    await bench.sync();
    const sender = senderOn(bench.standin, 0, bench.today - 5 * DAY_MS);
    bench.standin.ledger.change(sender, -1);
    const later = sender.at % DAY_MS < DAY_MS - STRIDE_MS.hour ? STRIDE_MS.hour : -STRIDE_MS.hour;
    bench.standin.ledger.change({ ...sender, at: sender.at + later }, 1);
    const { strides } = await bench.reconcile({ ...EVERY, repair: false });
    expect(strides.map(({ stride, open }) => [stride, open])).toEqual([
      ["day", 0],
      ["hour", 8],
    ]);
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
    // What is left in a range is said whoever found it, and wherever nothing of it can be compared now.
    const range = { start: bench.today - 5 * DAY_MS, end: bench.today - 4 * DAY_MS };
    await bench.sql("UPDATE usage.coverage SET settled = false");
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

  test("time that is missing, failed, provisional or not kept is counted as not compared", async () => {
    const bench = await setup({ workspaces: [0], hourlyForMs: 4 * DAY_MS });
    await bench.sync();
    const lose = (day: number) =>
      bench.sql(
        `DELETE FROM usage.coverage c USING usage.scope s
         WHERE s.scope_id = c.scope_id AND s.group_by = 'user' AND s.stride = 'day' AND c.period_start <= $1 AND c.period_end > $1`,
        [new Date(day)],
      );
    await lose(bench.dataStart);
    await bench.sql(
      `INSERT INTO usage.failure (scope_id, period_start, period_end, state, code, message, attempts, fetch_number, failed_at, retry_at)
       SELECT scope_id, $1, $2, 'failed', 'server_error', 'm', 1, 1, now(), now() FROM usage.scope WHERE group_by = 'user' AND stride = 'day'`,
      [new Date(bench.dataStart), new Date(bench.dataStart + DAY_MS)],
    );
    const { strides } = await bench.reconcile({ stride: undefined });
    const [day, hour] = strides.map(({ notCompared }) => notCompared);
    // The whole interval of three days is gone; one of them failed.
    expect(day).toEqual({ provisional: 12, failed: 1, missing: 2, notKept: 0, notAvailable: 0 });
    expect(hour).toMatchObject({ failed: 0, missing: 0, notKept: 4 * 2 * 24, notAvailable: 0 });
    expect(hour?.provisional).toBeGreaterThanOrEqual(4 * 3 * 24);
  });
});
