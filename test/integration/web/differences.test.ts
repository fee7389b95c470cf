import { expect, test } from "vitest";
import { dayTitle } from "../../../src/core/domain/months/month.ts";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { createPrices } from "../../support/charges.ts";
import { numberIn } from "../../support/dom.ts";
import { type PagesBench, setupPages, setupViewer } from "../../support/pages.ts";
import { senderOn, setup } from "../../support/source.ts";

/** A workspace of whose first day the export has seven traces more than are stored. */
async function setupDifference() {
  const bench = await setup({ days: 6, workspaces: [1] });
  const [workspace = ""] = bench.workspaceIds;
  const day = bench.dataStart;
  const range = { start: day, end: day + 2 * DAY_MS };
  const load = () => bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  await load();
  const sender = senderOn(bench.standin, 1, day);
  bench.standin.ledger.change(sender, 7);
  await bench.reconcile({ range });
  const [{ stored = 0 } = {}] = await bench.sql<{ stored: number }>(
    "SELECT stored_amount::bigint AS stored FROM reporting_detail.usage_reconciliation WHERE group_by = 'workspace'",
  );
  const environment = { USAGE_WORKSPACE_IDS: workspace };
  const restate = async () => {
    await load();
    await bench.reconcile({ range });
  };
  return {
    ...bench,
    environment,
    pages: await setupPages(bench, { environment }),
    workspace,
    sender,
    stored,
    restate,
  };
}

/** Rows of differences, without what they fold up. */
async function rowsOf(pages: PagesBench, path: string) {
  const page = await pages.read(path);
  const rows = page.hasTable("Differences") ? page.table("Differences") : [];
  return rows.filter((row) => row.Money !== undefined);
}

const figures = (row: Record<string, string> | undefined) =>
  [row?.Stored, row?.Reported, row?.Difference].map(numberIn);

test("a difference is one row with both numbers, its lines by dimension, and a link to its day", async () => {
  const { pages, stored, workspace, dataStart } = await setupDifference();
  const rows = await rowsOf(pages, "/differences?source=default");
  expect(rows.map(figures)).toEqual([[stored, stored + 7, 7]]);
  const page = await pages.read("/differences?source=default");
  const lines = page.table("Lines").filter((line) => line.Export !== "Export");
  expect(lines.map((line) => numberIn(line.Export) - numberIn(line.Stored))).toEqual([7, 7, 7, 7]);
  expect(page.links()).toContain(
    `/cell?source=default&workspace=${workspace}&stride=day&from=${dayOf(dataStart)}&to=${dayOf(dataStart + DAY_MS)}`,
  );
});

test("the money of a difference is what the bill gains once the difference is loaded, also in a volume tier", async () => {
  const { pages, stored, store, sql, restate } = await setupDifference();
  await createPrices(store, [
    { unitPrice: "0.005" },
    { unitPrice: "0.004", fromQuantity: 3 },
    { unitPrice: "0.25", sku: "other", currency: "EUR" },
    // The month's charges end in this tier after the difference.
    { unitPrice: "0.0031", fromQuantity: (await monthOf(sql)) + 2 },
  ]);
  const [before, shown] = [await costOf(sql), await rowsOf(pages, "/differences")];
  const { text } = await pages.read("/differences");
  const badge = (await pages.get("/differences")).text;
  await restate();
  const gained = Object.entries(await costOf(sql)).map(
    ([currency, cost]) => `${(cost - (before[currency] ?? 0)).toFixed(2)} ${currency}`,
  );
  expect(gained).toEqual(["1.75 EUR", "0.02 USD"]);
  expect(shown.map(({ Money = "" }) => Money.match(/[\d.]+ [A-Z]{3}/g)?.sort())).toEqual([gained.toSorted()]);
  // The heading has the same money, and the navigation the same count.
  for (const one of gained) expect(text.split("Found by")[0]).toContain(one);
  expect(badge).toMatch(/Differences <span class="count">1</);
  expect(stored).toBeGreaterThan(3);
});

/** Traces of the workspace in the month of the difference. */
async function monthOf(sql: (text: string) => Promise<unknown[]>): Promise<number> {
  const [row] = (await sql(
    `SELECT sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily
     WHERE date_trunc('month', usage_date) = (SELECT date_trunc('month', min(period_start)) FROM usage.difference)`,
  )) as { traces: number }[];
  return row?.traces ?? 0;
}

async function costOf(sql: (text: string) => Promise<unknown[]>): Promise<Record<string, number>> {
  const rows = (await sql(
    "SELECT currency, sum(cost)::float8 AS cost FROM usage.charge GROUP BY currency ORDER BY currency",
  )) as { currency: string; cost: number }[];
  return Object.fromEntries(rows.map(({ currency, cost }) => [currency, cost]));
}

test("an address of a user is for operators only", async () => {
  const bench = await setupDifference();
  const email = bench.sender.user?.email ?? "";
  expect(email).toContain("@");
  expect((await bench.pages.get("/differences")).text).toContain(email);
  const viewer = await setupViewer(bench, { environment: bench.environment });
  const { text } = await viewer.get("/differences");
  expect(text).toContain(`user ${bench.sender.user?.id}`);
  expect(text).not.toContain(email);
});

test("a restatement is listed where it is asked for, and marked in the chart of its usage", async () => {
  const { pages, stored, restate, dataStart, today } = await setupDifference();
  await restate();
  expect(await rowsOf(pages, "/differences")).toEqual([]);
  const restated = await rowsOf(pages, "/differences?says=restatement");
  expect(restated.map(figures)).toEqual([[stored + 7, stored, 7]]);
  expect(await rowsOf(pages, "/differences?state=all")).toHaveLength(2);
  const from = dayOf(dataStart);
  for (const [per, at] of [
    ["day", from],
    ["month", `${from.slice(0, 7)}-01`],
  ]) {
    const { bars } = await pages.read(`/usage?by=project&per=${per}&from=${from}&to=${dayOf(today)}`);
    const marked = bars.filter((bar) => bar.includes("changed when it was final"));
    expect(marked.map((bar) => bar.split(":")[0])).toEqual([dayTitle(at ?? "", { withYear: true })]);
  }
});

test("many differences come page by page, each once and whole, and the filters are kept by a select each", async () => {
  const { pages, sql, dataStart, workspace } = await setupDifference();
  const start = new Date(dataStart).toISOString();
  await sql(
    `INSERT INTO usage.difference
       (scope_id, compared_with, external_id, period_start, period_end, kind, stored_traces, other_traces, state, fetch_number)
     SELECT scope_id, 'export', id, at, at + interval '1 day', 'traces_differ', 10, 10 + n, 'open', 1
     FROM usage.trace_scope, generate_series(1, 60) n
     CROSS JOIN LATERAL (SELECT $1::timestamptz + n * interval '1 day' AS at) t CROSS JOIN unnest('{a,b}'::text[]) id
     WHERE stride = 'day' AND group_by = 'project'`,
    [start],
  );
  const all: string[] = [];
  for (let next: string | undefined = "/differences?source=default&says=export"; next !== undefined; ) {
    all.push(...(await rowsOf(pages, next)).map((row) => String(numberIn(row.Difference))));
    [next] = (await pages.read(next)).links("Older differences");
  }
  // The ids of one dimension add up.
  expect(all.toSorted()).toEqual(
    ["7", ...Array.from({ length: 60 }, (_, n) => String(2 * (n + 1)))].toSorted(),
  );
  const kept = await pages.read(`/differences?source=default&says=total&workspace=${workspace}&meter=traces`);
  expect(kept.form("Apply")).toMatchObject({ says: "total", workspace, meter: "traces" });
  expect(await rowsOf(pages, "/differences?source=default&says=total")).toEqual([]);
});

test("a contradiction of a month that ended can be accepted where it is shown, by operators only", async () => {
  const bench = await setupDifference();
  const { sql } = bench;
  await sql(
    `UPDATE usage.difference SET state = 'platform_disagrees', period_start = period_start - interval '40 days',
       period_end = period_end - interval '40 days'`,
  );
  const [{ month } = { month: "" }] = await sql<{ month: string }>(
    "SELECT to_char(min(period_start) AT TIME ZONE 'UTC', 'YYYY-MM') AS month FROM usage.difference",
  );
  const close = `/months/${month}/close?source=default`;
  expect((await bench.pages.read("/differences")).links("Accept")).toEqual([close]);
  const viewer = await setupViewer(bench, { environment: bench.environment });
  expect((await viewer.read("/differences")).links("Accept")).toEqual([]);
  await sql(
    `INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
     SELECT source_id, $1::date, ($1::date + interval '1 month')::date, 0, 1 FROM usage.source`,
    [`${month}-01`],
  );
  expect((await bench.pages.read("/differences")).links("Accept")).toEqual([]);
});
