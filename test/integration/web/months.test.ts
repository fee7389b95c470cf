import { sql } from "kysely";
import { DateTime } from "luxon";
import { beforeEach, expect, test } from "vitest";
import { monthAt, monthBefore, monthTitle } from "../../../src/core/domain/months/month.ts";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { lockScopes } from "../../../src/core/store/catalog/scopes.ts";
import { trustOfSources } from "../../../src/features/coverage/trust.store.ts";
import { createPrices } from "../../support/charges.ts";
import { usageEtl } from "../../support/cli.ts";
import { type Fields, numberIn } from "../../support/dom.ts";
import { type PagesBench, setupPages, setupViewer } from "../../support/pages.ts";
import { type Bench, farFromTheNextHour, senderOn, setup } from "../../support/source.ts";

/** The last days of the last month that is final to its end: few, so that a test is quick. */
const DAYS = 3;
const WORKSPACES = [1, 2];

let bench: Bench;
let pages: PagesBench;
let month: { name: string; start: number; end: number };
let path: string;

beforeEach(async () => {
  const now = await farFromTheNextHour();
  const today = floorToGrid(now, DAY_MS);
  const first = DateTime.fromMillis(today - 4 * DAY_MS, { zone: "utc" })
    .startOf("month")
    .minus({ months: 1 });
  const end = first.plus({ months: 1 }).toMillis();
  month = { name: first.toFormat("yyyy-MM"), start: end - DAYS * DAY_MS, end };
  path = `/months/${month.name}`;
  const days = (today - month.start) / DAY_MS;
  bench = await setup({ now, days, workspaces: WORKSPACES, hourlyForMs: HOUR_MS });
  await bench.open();
  pages = await setupPages(bench);
});

const load = (range: { start: number; end: number } = month) =>
  bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });

async function loadAll() {
  await load();
  await bench.reconcile({ range: month });
}

/** Traces of some days, of all workspaces. */
async function tracesOf(from: number, to: number, of = bench): Promise<number> {
  const [row] = await of.sql<{ traces: number }>(
    "SELECT coalesce(sum(traces), 0)::integer AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2",
    [dayOf(from), dayOf(to)],
  );
  return row?.traces ?? 0;
}

/** What the checklist of the open month says, one text for each item. */
const checklist = async (of = pages) => (await of.read(path)).items(/^To close/);

/** The row of a month in the list. */
async function rowOf(start: number): Promise<Record<string, string>> {
  const rows = (await pages.read("/months")).table("Bills");
  return rows.find((row) => row.Month === monthTitle(monthAt(start))) ?? {};
}

/** The fields of the form that closes the month, as the confirmation offers them. */
async function offered() {
  const { _csrf, ...fields } = (await pages.read(`${path}/close?source=default`)).form(/^Close/);
  return { ...fields, accept: "yes" } as Fields;
}

async function close(fields: Fields) {
  return pages.post(`${path}/close`, fields, { from: `${path}/close?source=default` });
}

test("the overview has the status and the number of open items that the list of bills has", async () => {
  const statusIn = (text = "") => /(?:Open|Ready to close|Closed)(?:\D{0,3}\d+)?/.exec(text)?.[0];
  const expectSame = async (expected: RegExp, source = "default") => {
    const overview = (await pages.read(`/?source=${source}&month=${month.name}`)).table("Bills");
    const row = overview.find(
      ({ Month = "" }) =>
        Month.endsWith(monthTitle(monthAt(month.start)).slice(-4)) &&
        Month.startsWith(monthTitle(monthAt(month.start)).slice(0, 3)),
    );
    expect(statusIn(row?.Status)).toMatch(expected);
    expect(statusIn(row?.Status)).toBe(statusIn((await rowOf(month.start)).Status));
  };
  await expectSame(/^Open\D+[1-9]/);
  await load();
  await expectSame(/^Open\D+[1-9]/);
  await bench.reconcile({ range: month });
  await expectSame(/^Ready to close$/);
  await close({ ...(await offered()), costs: "none" });
  await expectSame(/^Closed$/);
  // A source whose data starts later has no such month to close.
  await bench.sql(
    `INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
     SELECT 'later', 'http://later.test', $1::date, 24, '' FROM usage.source`,
    [dayOf(month.end)],
  );
  const all = (await pages.read(`/?source=*&month=${month.name}`)).table("Bills");
  expect(all.filter(({ Status = "" }) => Status.includes("Closed"))).toHaveLength(1);
});

test("an open month lists what keeps it open with the steps that `close` prints, and its bill what is not loaded", async () => {
  await load({ start: month.start, end: month.end - DAY_MS });
  const page = await pages.read(path);
  const printed = await usageEtl(["close", month.name], {
    DATABASE_URL: bench.databaseUrl,
    USAGE_BASE_URL: bench.standin.url,
    USAGE_API_KEY: bench.standin.apiKey,
    USAGE_WORKSPACE_IDS: bench.workspaceIds.join(","),
  });
  expect(printed.code).toBe(4);
  // Days of two workspaces, by each dimension: the last is not loaded, the others are not proved.
  const items = page.items(/^To close/).map((item) => item.match(/: (.*?) (\d+) workspace day/)?.slice(1));
  expect(items.filter((item) => item !== undefined)).toEqual([
    ["not loaded", "2"],
    ["not reconciled with the export", "4"],
  ]);
  for (const [, step = ""] of printed.stdout.matchAll(/^- (.*?):? `/gm)) expect(page.text).toContain(step);
  expect(page.links("Load").join()).toContain(`from=${dayOf(month.end - DAY_MS)}&to=${dayOf(month.end)}`);
  // It cannot be closed, by its address either.
  expect(page.links("Review and close")).toEqual([]);
  expect((await pages.get(`${path}/close`)).status).toBe(409);
  const bill = page.table("Lines");
  expect(bill.map((row) => [row.USD, row.Item?.match(/\d of \d|no price/)?.[0]])).toEqual([
    ["–", "no price"],
    ["–", "2 of 6"],
  ]);
  expect(numberIn(bill[0]?.Quantity)).toBe(await tracesOf(month.start, month.end));
});

test("a look waits for no load, its confirmation shows the totals that a close keeps, and a viewer closes nothing", async () => {
  await loadAll();
  // A close would wait.
  const ready = await bench.store.transaction(async ({ db }) => {
    const { rows: scopes } = await sql<{ id: number }>`select scope_id as id from usage.scope`.execute(db);
    await lockScopes(
      db,
      scopes.map(({ id }) => id),
    );
    return pages.read(path);
  });
  expect(ready.link("Review and close")).toBe(`${path}/close?source=default`);

  const { facts, table } = await pages.read(`${path}/close?source=default`);
  expect(numberIn(facts.Traces)).toBe(await tracesOf(month.start, month.end));
  const kept = table(/^Workspaces of the close/).map((row) => numberIn(row.Traces));
  const stored = await bench.sql<{ traces: number }>(
    `SELECT sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily
     WHERE usage_date >= $1 AND usage_date < $2 GROUP BY workspace_id ORDER BY 1 DESC`,
    [dayOf(month.start), dayOf(month.end)],
  );
  expect(kept).toEqual(stored.map(({ traces }) => traces));

  const viewer = await setupViewer(bench);
  expect((await viewer.read(path)).links("Review and close")).toEqual([]);
  expect((await viewer.get(`${path}/close`)).status).toBe(403);
  expect((await viewer.post(`${path}/close`, { source: "default", digest: "x" })).status).toBe(403);
  expect(await bench.sql("SELECT FROM usage.close")).toHaveLength(0);
});

test("a month is closed once, and later changes are adjustments", async () => {
  await loadAll();
  const { costs, ...priced } = await offered();
  expect(costs).toBe("none");
  // Without prices it has no costs, which the form must say. Whoever closes it must accept what it lacks.
  expect((await close(priced)).status).toBe(400);
  expect((await close({ ...priced, costs: "none", accept: "" })).status).toBe(400);
  expect(await bench.sql("SELECT FROM usage.close")).toHaveLength(0);
  const done = await close({ ...priced, costs: "none" });
  const to = String(done.headers.location);
  expect([done.status, to]).toEqual([303, `${path}?source=default&done=closed`]);
  expect((await pages.read(to)).notices.join()).toContain(`${monthTitle(monthAt(month.start))} is closed`);
  expect((await pages.get(`${path}/close?source=default`)).status).toBe(409);
  expect((await rowOf(month.start)).Status).toContain("Closed");

  bench.standin.ledger.change(senderOn(bench.standin, WORKSPACES[0] as number, month.start + DAY_MS), 5);
  await load();
  const adjusted = (await pages.read(path)).table("Adjustments");
  expect(adjusted.map((row) => [row.Dimension, numberIn(row["Adjusted by"])])).toEqual(
    expect.arrayContaining(["workspace", "project", "user", "API key"].map((dimension) => [dimension, 5])),
  );
  expect((await rowOf(month.start))["What is left"]).toContain("+5 traces");
});

/** One workspace is loaded, with a day on which the platform contradicts itself; the other one is left out. */
async function setupDisputed() {
  const [kept = "", left = ""] = bench.workspaceIds;
  await bench.fetch({ wanted: [{ stride: "day", range: month }], reprocess: "all", workspaceIds: [kept] });
  await bench.reconcile({ range: month });
  await bench.sql(
    `INSERT INTO usage.difference
       (scope_id, compared_with, kind, period_start, period_end, external_id, stored_traces, other_traces, state, fetch_number)
     SELECT c.scope_id, 'stride_total', 'stride_total', $1, $2, 'p', 1, 2, 'platform_disagrees', 1
     FROM usage.trace_scope c JOIN usage.entity e ON e.entity_id = c.workspace_id
     WHERE c.stride = 'day' AND c.group_by = 'project' AND e.external_id = $3`,
    [new Date(month.start).toISOString(), new Date(month.start + DAY_MS).toISOString(), kept],
  );
  return left;
}

test("what was looked at is not what would be closed: nothing is", async () => {
  await setupDisputed();
  const refused = async (change: string) => {
    const looked = await offered();
    await bench.sql(change);
    expect([change, (await close(looked)).status]).toEqual([change, 409]);
    return looked;
  };
  await refused(`INSERT INTO usage.difference
       (scope_id, compared_with, kind, period_start, period_end, external_id, stored_traces, other_traces, state, fetch_number)
     SELECT scope_id, kind, kind, period_start, period_end, 'q', 3, 4, state, 2 FROM usage.difference WHERE compared_with <> 'export'`);
  const costless = await refused("UPDATE usage.difference SET other_traces = 5 WHERE external_id = 'q'");
  await createPrices(bench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const priced = await refused("UPDATE usage.price SET unit_price = 0.7");
  expect([costless.costs, priced.costs]).toEqual(["none", undefined]);
  expect(priced.digest).not.toBe(costless.digest);
  expect(await bench.sql("SELECT FROM usage.close")).toHaveLength(0);
  const actions = await bench.sql("SELECT action, outcome, via FROM usage.operator_action");
  expect(actions).toEqual(Array(3).fill({ action: "close", outcome: "refused", via: "page" }));
});

test("what was left out or accepted is looked at first and keeps no later month from being offered, and a later finding is named", async () => {
  const left = await setupDisputed();
  const trust = async () => (await trustOfSources(bench.store.db))[0];
  expect((await checklist()).join()).toMatch(/totals differ 1 workspace day/);
  const [{ name }] = (await bench.sql(
    "SELECT dimension_name AS name FROM usage.labelled_entity WHERE dimension_id = $1",
    [left],
  )) as [{ name: string }];
  const { text, link } = await pages.read(path);
  expect(text).toContain(`(1), and a close without ${name}`);
  expect(link("Accept")).toBe(`${path}/close?source=default`);
  const { facts, items } = await pages.read(`${path}/close`);
  const signed = items("You sign").join();
  // Whoever signs reads names, not ids.
  expect(signed).toContain(`Left out: ${name}`);
  expect(`${text}${signed}`).not.toContain(left);
  expect(numberIn(facts.Accepted)).toBe(1);
  expect(await trust()).toMatchObject({ disagreements: 1, disagreementsSince: 0, leftOutDays: 0 });
  expect((await close(await offered())).status).toBe(303);
  expect(await trust()).toMatchObject({
    disagreements: 0,
    disagreementsSince: 0,
    leftOutDays: 4 * DAYS,
    closedMonth: `${month.name}-01`,
    reconciledUntil: dayOf(month.end),
  });
  await bench.sql("UPDATE usage.difference SET found_at = now() WHERE compared_with <> 'export'");
  expect(await trust()).toMatchObject({ disagreements: 0, disagreementsSince: 1 });
  expect(await bench.sql("SELECT accepted_disagreements FROM usage.close")).toEqual([
    { accepted_disagreements: 1 },
  ]);
});

test("a bill has the traces and cost of its month and their proof, also while the month is under way", async () => {
  await load({ start: bench.dataStart, end: bench.today + DAY_MS });
  await bench.reconcile({ range: month });
  await createPrices(bench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const now = dayOf(bench.now).slice(0, 7);
  for (const [name, from, to, status] of [
    [month.name, month.start, month.end, "Proved"],
    [now, Date.parse(`${now}-01`), bench.today + DAY_MS, "Provisional"],
  ] as const) {
    const traces = await tracesOf(from, to);
    const { facts, table } = await pages.read(`/months/${name}`);
    const cost = name === now ? "Estimated cost so far" : "Estimated cost";
    expect([numberIn(facts.Traces), numberIn(facts[cost])], name).toEqual([traces, traces / 2]);
    expect(facts.Traces, name).toContain(status);
    expect(table("Lines")[0]?.Status, name).toContain(status);
    // What is not proved is in money, and nothing of a proved month is.
    const [{ unproved }] = (await bench.sql(
      "SELECT sum(unproved_cost)::float8 AS unproved FROM reporting.usage_bill_monthly WHERE month_start = $1",
      [`${name}-01`],
    )) as [{ unproved: number }];
    expect(numberIn(facts["Not proved"]), name).toBeCloseTo(unproved, 2);
    const row = await rowOf(from);
    expect([numberIn(row.Traces), numberIn(row.USD)]).toEqual([traces, traces / 2]);
  }
  expect((await pages.read(`/months/${now}`)).links("Review and close")).toEqual([]);
});

test("all figures of a closed bill are those of its close, whatever is counted later, and its teams add up to it", async () => {
  await loadAll();
  await createPrices(bench.store, [{ unitPrice: "0.37", from: "2020-01-01" }]);
  expect((await close(await offered())).status).toBe(303);
  const traces = await tracesOf(month.start, month.end);
  bench.standin.ledger.change(senderOn(bench.standin, WORKSPACES[0] as number, month.start + DAY_MS), 1000);
  await load();
  expect(await tracesOf(month.start, month.end)).toBe(traces + 1000);
  const { facts, table, items, bars } = await pages.read(path);
  const lines = table("Lines");
  const cost = Number((traces * 0.37).toFixed(2));
  expect([numberIn(facts.Traces), numberIn(facts["Estimated cost"])]).toEqual([traces, cost]);
  expect(numberIn(lines[0]?.Quantity)).toBe(traces);
  expect([lines.at(1)?.USD, table("Who pays").at(-1)?.USD].map(numberIn)).toEqual([cost, cost]);
  const days = bars.map((bar) => numberIn(bar.split(": ")[1])).reduce((sum, day) => sum + day, 0);
  expect(days).toBeCloseTo(cost, 1);
  const row = await rowOf(month.start);
  expect([numberIn(row.Traces), numberIn(row.USD)]).toEqual([traces, cost]);
  expect(items("Changes since the close").map(numberIn)).toEqual([1000, 370]);
});

test("a workspace that no sync loads is on the bill, the list and in what is signed, with its amount", async () => {
  await loadAll();
  await createPrices(bench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const unread = "11111111-2222-4333-8444-555555555555";
  await bench.sql(
    `INSERT INTO usage.unloaded_workspace (source_id, month_start, workspace, name, traces, read_at)
     SELECT source_id, $1, $2, NULL, 4321, now() FROM usage.source`,
    [`${month.name}-01`, unread],
  );
  const page = await pages.read(path);
  const { facts, table } = page;
  expect(numberIn(facts["Not in this total"])).toBe(2160.5);
  const row = table("Lines").find((one) => one.Item?.includes("11111111"));
  expect([row?.Quantity, row?.USD].map(numberIn)).toEqual([4321, 2160.5]);
  expect(numberIn(facts["Estimated cost"])).toBe((await tracesOf(month.start, month.end)) / 2);
  // It stands beside what is proved, and the proof names how many workspaces it covers.
  expect(facts.Traces).toMatch(/Proved 2 of 3/);
  expect(page.items(/^To close/).join()).toContain("2,160.50 USD");
  expect((await rowOf(month.start))["What is left"]).toContain("2,160.50 USD");
  expect((await pages.read(`${path}/close`)).items("You sign").join()).toContain(
    "4,321 traces, about 2,160.50 USD",
  );
  expect(page.text).not.toContain(unread);
});

test("a running month repeats the unread workspaces of the month before until the provider has totals of it", async () => {
  const current = monthAt(bench.now);
  await bench.sql(
    `INSERT INTO usage.unloaded_workspace (source_id, month_start, workspace, name, traces, read_at)
     SELECT source_id, $1, '11111111-2222-4333-8444-555555555555', NULL, 4321, now() FROM usage.source`,
    [monthBefore(current).start],
  );
  const lines = async () =>
    (await pages.read(`/months/${current.name}`))
      .table("Lines")
      .filter((one) => one.Item?.includes("11111111"));
  expect((await lines()).map((row) => numberIn(row.Quantity))).toEqual([4321]);
  await bench.sql(
    `INSERT INTO usage.provider_total (source_id, month_start, metric_id, workspace, metric_name, meter, value, outcome, stored_traces, fetch_number, read_at)
     SELECT source_id, $1, 'traces', '', 'Traces', 'traces', 10, 'equal', 10, 1, now() FROM usage.source`,
    [current.start],
  );
  expect(await lines()).toEqual([]);
});

test("a close names the earlier months that are open", async () => {
  const before = monthBefore(monthAt(month.start));
  await bench.sql("UPDATE usage.source SET data_start = $1", [before.start]);
  expect((await checklist()).join()).toContain(`${monthTitle(before)} is still open`);
});

test("a month is compared with the one before it only where all days of that are here", async () => {
  const long = await setup({ days: 100, now: bench.now, workspaces: WORKSPACES, hourlyForMs: HOUR_MS });
  await long.open();
  const range = { start: long.dataStart, end: long.today + DAY_MS };
  // So much that a change of the later amount would be another one.
  const last = Date.parse(monthBefore(monthAt(long.now)).start);
  long.standin.ledger.change(senderOn(long.standin, WORKSPACES[0] as number, last + DAY_MS), 100_000);
  await long.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  await createPrices(long.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const sums = await long.sql<{ month: string; traces: number }>(
    `SELECT to_char(usage_date, 'YYYY-MM-01') AS month, sum(traces)::integer AS traces
     FROM reporting.fct_usage_workspace_daily GROUP BY 1 ORDER BY 1`,
  );
  const rows = (await (await setupPages(long)).read("/months")).table("Bills");
  const now = monthAt(long.now).start;
  const expected = sums.map(({ month: start, traces }, n) => {
    const before = sums[n - 1];
    // A first month of which some days are not here is no whole one, nor is the one under way.
    const isWhole = before !== undefined && Date.parse(before.month) >= long.dataStart && start !== now;
    return [
      monthTitle({ start }),
      isWhole ? ((100 * (traces - before.traces)) / before.traces).toFixed(1) : "NaN",
    ];
  });
  expect(expected.filter(([, change]) => change !== "NaN").length).toBeGreaterThan(0);
  const shown = expected.map(([title = ""]) => [
    title,
    numberIn(rows.find((row) => row.Month === title)?.Change?.replace("− ", "−")).toFixed(1),
  ]);
  expect(shown).toEqual(expected);
});

test("a month of which one day is known is read by the day, whatever hours are loaded", async () => {
  const last = month.end - DAY_MS;
  const days = (bench.today - last) / DAY_MS;
  const short = await setup({ now: bench.now, days, workspaces: WORKSPACES, hourlyForMs: HOUR_MS });
  await short.open();
  const range = { start: last, end: month.end };
  await short.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  await short.reconcile({ range });
  const { facts, bars } = await (await setupPages(short)).read(path);
  expect(numberIn(facts.Traces)).toBe(await tracesOf(last, month.end, short));
  expect(facts.Traces).toContain("Proved");
  expect(bars).toHaveLength(1);
});
