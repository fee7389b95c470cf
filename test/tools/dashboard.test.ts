import { DateTime } from "luxon";
import { describe, expect, test } from "vitest";
import type { Window } from "../../src/core/domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../src/core/domain/usage/record.ts";
import { failScopes } from "../../src/core/store/catalog/failures.ts";
import { scopesOf } from "../../src/core/store/catalog/scopes.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { createBackfill } from "../../src/core/store/work/backfills.ts";
import { beginFetch, drawFetchToken, finishFetch } from "../../src/core/store/work/fetch-ledger.ts";
import { CLOSE_MARCH, createPrices } from "../support/charges.ts";
import { addSource, connect, connectPlain } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, type ResponseRow, setupMigrated, windowOf } from "../support/store.ts";
import { expand, queries } from "./dashboard/dashboard.ts";

const WORKSPACE = "00000000-0000-4000-8000-000000000001";
const FROM = "2026-03-01T06:30:00Z";
const TO = "2026-03-09T06:30:00Z";

const SHOWN = {
  from: FROM,
  to: TO,
  variables: { source: "'default','another'", workspace: `'${WORKSPACE}'` },
};

async function filledStore(): Promise<{ store: Store; url: string }> {
  const { store, url } = await setupMigrated();
  const sourceId = await addSource(store, { slug: "default", workspaceIds: [WORKSPACE] });
  const march = windowOf("day", "2026-03-01", "2026-04-01");
  const begun = windowOf("day", "2026-03-01", "2026-03-04");
  const failed = windowOf("day", "2026-03-05", "2026-03-06");
  const of = (groupBy: GroupBy) => ({ sourceId, workspaceId: WORKSPACE, groupBy });
  for (const groupBy of GROUPINGS) {
    const id = groupBy === "workspace" ? WORKSPACE : "00000000-0000-4000-8000-00000000000a";
    const days: ResponseRow[] = [
      ["2026-03-02", id, 7, "a name"],
      ["2026-03-03", id, 8],
    ];
    await loadRows(store, { ...of(groupBy), window: begun, rows: days });
    const other = { ...of(groupBy), window: march };
    await loadRows(store, { ...other, meter: "longlived", rows: [["2026-03-02", id, 3]] });
    await loadDeploymentRows(store, { ...other, rows: [["2026-03-02", id, [9, 2, 60]]] });
  }
  const workspace = (window: Window, bucket: string, settleAfterMs = 0) =>
    loadRows(store, { ...of("workspace"), window, rows: [[bucket, WORKSPACE, 9]], settleAfterMs });
  await workspace(windowOf("hour", "2026-03-02T00:00Z", "2026-03-02T10:00Z"), "2026-03-02T03:00Z");
  await workspace(windowOf("day", "2026-03-07", "2026-03-08"), "2026-03-07", 1e12);
  await loadRows(store, { ...of("project"), window: { ...march, start: begun.end }, rows: [] });
  const fetch = { meter: "traces", sourceId, purpose: "load", groupBy: "user", workspaces: 1 } as const;
  const { fetchNumber } = await beginFetch(store.db, { ...fetch, window: begun });
  await finishFetch(store.db, { fetchNumber }, { outcome: "loaded" });
  const users = { sourceId, groupBy: "user", stride: "day", workspaceIds: [WORKSPACE] } as const;
  const scopeIds = await scopesOf(store.db, users);
  const failure = { state: "failed", code: "test", message: "test" } as const;
  await failScopes(store, {
    scopeIds,
    period: failed,
    fetchToken: await drawFetchToken(store.db),
    ...failure,
  });
  const members = [{ workspaceId: WORKSPACE, scopeId: scopeIds[0] as number }];
  await createBackfill(store, {
    meter: "traces",
    sourceId,
    range: failed,
    stride: "day",
    groupings: ["user"],
    workspaceIds: [WORKSPACE],
    reprocess: "all",
    by: { name: "ada", role: "operator", via: "command" },
    tasks: [{ meter: "traces", groupBy: "user", window: failed, members }],
  });
  return { store, url };
}

describe("the SQL of the dashboard", () => {
  test("runs as usage_reader and shows what is loaded", async () => {
    const { store, url } = await filledStore();
    await createPrices(store, [{ unitPrice: "0.0005", to: "2026-03-03" }]);
    const client = await connect(url);
    // What no panel may be without: an open difference, a restatement and a late change of the days shown, a closed month.
    await client.query(`
      INSERT INTO usage.difference (scope_id, compared_with, external_id, period_start, period_end, kind, fetch_number)
        SELECT scope_id, 'export', 'p1', '${FROM}', '${FROM}'::timestamptz + interval '1 day', 'traces_differ', 1 FROM usage.trace_scope LIMIT 1;
      INSERT INTO usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number, restated_at)
        SELECT series_id, '2026-03-02Z', 6, 7, 1, '2026-03-05Z' FROM usage.series LIMIT 1;
      INSERT INTO usage.late_change SELECT source_id, '2026-03-05', 'all', 'workspace', 'day', true, 72, 1, 1 FROM usage.source;
      ${CLOSE_MARCH}`);
    await client.query("SET ROLE usage_reader");
    const rows = new Map<string, number>();
    for (const { title, rawSql, format, panel } of queries) {
      const result = await client.query(expand(rawSql, SHOWN)).catch((error: Error) => {
        throw new Error(`${title}: ${error.message}`);
      });
      rows.set(title, result.rows.length);
      const names = result.fields.map(({ name }) => name);
      if (format === "time_series") expect(names.slice(0, 2), title).toEqual(["time", "metric"]);
      if (format === "annotation") expect(names, title).toEqual(["time", "timeend", "text"]);
      if (title === "variable workspace") expect(names).toEqual(["__value", "__text"]);
      // A unit or a threshold of a column that is not there would not be seen missing.
      if (format !== "table") continue;
      for (const { matcher } of panel?.fieldConfig.overrides ?? [])
        expect(names, title).toContain(matcher.options);
      const { xField } = (panel?.options ?? {}) as { xField?: string };
      if (xField !== undefined) expect(names[0], title).toBe(xField);
    }
    const empty = [...rows].filter(([, count]) => count === 0).map(([title]) => title);
    expect(empty).toEqual(["Estimated cost of this month"]);
  });
});

test("the month under way is compared with the same days of the month before, and says what is provisional", async () => {
  const { store, url } = await setupMigrated();
  const today = DateTime.utc().startOf("day");
  const [first, before] = [today.startOf("month"), today.startOf("month").minus({ months: 1 })];
  const day = (date: DateTime) => date.toISODate() as string;
  const start = before.minus({ months: 1 });
  const sourceId = await addSource(store, {
    slug: "default",
    workspaceIds: [WORKSPACE],
    dataStart: day(start),
  });
  const load = (from: DateTime, to: DateTime, settleAfterMs: number) => {
    const days = Array.from({ length: to.diff(from, "days").days }, (_, i) => from.plus({ days: i }));
    const rows = days.map((at) => [day(at), WORKSPACE, at.day * (at < first ? 1 : 10)] as const);
    return loadRows(store, {
      sourceId,
      workspaceId: WORKSPACE,
      groupBy: "workspace",
      window: windowOf("day", day(from), day(to)),
      rows,
      settleAfterMs,
    });
  };
  await load(start, before, 0);
  await load(before, first, 0);
  const yesterday = today.minus({ days: 1 });
  if (yesterday > first) await load(first, yesterday, 0);
  if (yesterday >= first) await load(yesterday, today, 1e12);
  await load(today, today.plus({ days: 1 }), 1e12);
  await createPrices(store, [{ unitPrice: "0.0005" }]);

  const client = await connectPlain(url);
  const rowsOf = async (title: string) => {
    const query = queries.find((one) => one.title === title);
    return (await client.query(expand(query?.rawSql as string, SHOWN))).rows;
  };
  const ended = today.day - 1;
  const sum = (days: number) => (days * (days + 1)) / 2;
  const compared = Math.min(ended, before.daysInMonth as number);
  expect(await rowsOf("Month to date")).toEqual([
    {
      "this month": ended === 0 ? null : String(10 * sum(ended)),
      "of it provisional": ended === 0 ? null : String(10 * ended),
      "same days last month": ended === 0 ? null : String(sum(compared)),
      change: ended === 0 ? null : ((10 * sum(ended) * 100) / sum(compared) - 100).toFixed(1),
      "days missing": "0",
    },
  ]);
  const soFar = await rowsOf("Traces so far, by day of the month");
  expect(soFar.length).toBe(Math.max(before.daysInMonth as number, ended));
  for (const row of soFar) {
    const at = Number(row.day);
    expect(row).toEqual({
      day: row.day,
      "last month": at <= (before.daysInMonth as number) ? String(sum(at)) : null,
      "this month, final": at < ended ? String(10 * sum(at)) : null,
      "this month, provisional": at === ended ? String(10 * sum(at)) : null,
    });
  }
  const cost = (traces: number) => (traces * 0.0005).toFixed(10);
  expect(await rowsOf("Estimated cost of this month")).toEqual(
    ended === 0
      ? []
      : [{ currency: "USD", cost: cost(10 * sum(ended)), "of it provisional": cost(10 * ended) }],
  );
});
