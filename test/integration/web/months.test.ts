import { sql } from "kysely";
import { DateTime } from "luxon";
import { beforeEach, expect, test } from "vitest";
import { monthAt, monthBefore, monthTitle } from "../../../src/core/domain/months/month.ts";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { lockScopes } from "../../../src/core/store/catalog/scopes.ts";
import { trustOfSources } from "../../../src/features/status/trust.store.ts";
import { createPrices } from "../../support/charges.ts";
import { usageEtl } from "../../support/cli.ts";
import { numberIn } from "../../support/dom.ts";
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

const OPEN = () => `What keeps ${monthTitle(monthAt(month.start))} open`;

/** What is open: dimension, reason and daily figures. */
async function openPoints(address: string): Promise<string[]> {
  const page = await pages.read(address);
  return page.hasTable(OPEN())
    ? page.table(OPEN()).map((row) => `${row.Dimension}: ${row["What is open"]}: ${row["Daily figures"]}`)
    : [];
}

/** The row of a month in the list. */
async function rowOf(start: number): Promise<Record<string, string>> {
  const rows = (await pages.read("/months")).table("Months");
  return rows.find((row) => row.Month === monthTitle(monthAt(start))) ?? {};
}

/** The fields of the form that closes the month, as the confirmation offers them. */
async function offered() {
  const { _csrf, ...fields } = (await pages.read(`${path}/close?source=default`)).form(/^Close/);
  return fields;
}

async function close(fields: Awaited<ReturnType<typeof offered>>) {
  return pages.post(`${path}/close`, fields, { from: `${path}/close?source=default` });
}

test("an open month lists what keeps it open as `close` prints it, each with the way to its days", async () => {
  await load({ start: month.start, end: month.end - DAY_MS });
  const page = await pages.read(path);
  const printed = await usageEtl(["close", month.name], {
    DATABASE_URL: bench.databaseUrl,
    USAGE_BASE_URL: bench.standin.url,
    USAGE_API_KEY: bench.standin.apiKey,
    USAGE_WORKSPACE_IDS: bench.workspaceIds.join(","),
  });
  expect(printed.code).toBe(4);
  const inCommand = [...printed.stdout.matchAll(/^(\w+) +([a-z' ]+?) +(\d+) +\d{4}-/gm)].map(
    ([, dimension, what, days]) => `${dimension?.replace("api_key", "API key")}: ${what}: ${days}`,
  );
  expect(inCommand).toHaveLength(8);
  expect(await openPoints(path)).toEqual(inCommand);
  for (const [, step = ""] of printed.stdout.matchAll(/^- (.*?):? `/gm)) expect(page.text).toContain(step);
  const last = dayOf(month.end - DAY_MS);
  expect(page.links("Load them").join()).toContain(`/backfills/new?source=default&stride=day&from=${last}`);
  expect(page.links("Show the days").join()).toContain(`stride=day&from=${dayOf(month.start)}`);
  // It cannot be closed, by its address either.
  expect(page.links(/^Close/)).toEqual([]);
  expect((await pages.get(`${path}/close`)).status).toBe(409);
  // Its bill names what is not loaded and what has no price.
  const bill = page.table("Bill");
  expect(bill.map((row) => [row.Cost, row.State])).toEqual([
    ["–", "no price"],
    ["–", "2 of 6 workspace days are not loaded"],
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
  expect(ready.link(/^Close/)).toBe(`${path}/close?source=default`);

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
  expect((await viewer.read(path)).links(/^Close/)).toEqual([]);
  expect((await viewer.get(`${path}/close`)).status).toBe(403);
  expect((await viewer.post(`${path}/close`, { source: "default", digest: "x" })).status).toBe(403);
  expect(await bench.sql("SELECT FROM usage.close")).toHaveLength(0);
});

test("a month is closed once, and later changes are adjustments", async () => {
  await loadAll();
  const { costs, ...priced } = await offered();
  expect(costs).toBe("none");
  // Without prices it has no costs, which the form must say.
  expect((await close(priced)).status).toBe(400);
  const done = await close({ ...priced, costs: "none" });
  expect([done.status, done.headers.location]).toEqual([303, `${path}?source=default`]);
  expect((await pages.get(`${path}/close?source=default`)).status).toBe(409);
  const traces = await tracesOf(month.start, month.end);
  expect(numberIn((await rowOf(month.start))["Closed, or what keeps it open"]?.replace(/^.*: /, ""))).toBe(
    traces,
  );

  bench.standin.ledger.change(senderOn(bench.standin, WORKSPACES[0] as number, month.start + DAY_MS), 5);
  await load();
  const adjusted = (await pages.read(path)).table("Adjustments");
  expect(adjusted.map((row) => [row.Dimension, numberIn(row["Adjusted by"])])).toEqual(
    expect.arrayContaining(["workspace", "project", "user", "API key"].map((dimension) => [dimension, 5])),
  );
  expect((await rowOf(month.start))["Changed since the close"]).toBe("4 counts, +5 traces");
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
  expect(await openPoints(path)).toContain("project: the platform's totals differ: 1");
  const { text, link } = await pages.read(path);
  expect(text).toContain(
    `Accept daily figures on which the platform contradicts itself (1), and a close without ${left}`,
  );
  expect(link("Look at what that closes")).toBe(`${path}/close?source=default`);
  const { facts } = await pages.read(`${path}/close`);
  expect(facts["Left out"]).toContain(left);
  expect(facts.Accepted).toContain("1 daily figure");
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

test("a month begins with its traces and costs and what may be claimed of them, also while it is under way", async () => {
  await load({ start: bench.dataStart, end: bench.today + DAY_MS });
  await bench.reconcile({ range: month });
  await createPrices(bench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const now = dayOf(bench.now).slice(0, 7);
  for (const [name, from, to, state] of [
    [month.name, month.start, month.end, "final and proved"],
    [now, Date.parse(`${now}-01`), bench.today + DAY_MS, "so far under way"],
  ] as const) {
    const traces = await tracesOf(from, to);
    const { facts } = await pages.read(`/months/${name}`);
    for (const [fact, amount] of [
      ["Traces", traces],
      ["Estimated cost, USD", traces / 2],
    ] as const) {
      expect(numberIn(facts[fact]), `${name} ${fact}`).toBe(amount);
      expect(facts[fact], `${name} ${fact}`).toContain(state);
    }
    const row = await rowOf(from);
    expect([numberIn(row.Traces), numberIn(row["Estimated cost, USD"])]).toEqual([traces, traces / 2]);
    expect(`${row.Traces} ${row["State of traces"]}`).toMatch(new RegExp(`${state}$`));
  }
  expect((await pages.read(`/months/${now}`)).links(/^Close/)).toEqual([]);
});

test("a month is compared with the one before it only where all days of that are here", async () => {
  const long = await setup({ days: 100, now: bench.now, workspaces: WORKSPACES, hourlyForMs: HOUR_MS });
  await long.open();
  const range = { start: long.dataStart, end: long.today + DAY_MS };
  // So much that a change of the later amount would be another one.
  const last = Date.parse(monthBefore(monthAt(long.now)).start);
  long.standin.ledger.change(senderOn(long.standin, WORKSPACES[0] as number, last + DAY_MS), 100_000);
  await long.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  const sums = await long.sql<{ month: string; traces: number }>(
    `SELECT to_char(usage_date, 'YYYY-MM-01') AS month, sum(traces)::integer AS traces
     FROM reporting.fct_usage_workspace_daily GROUP BY 1 ORDER BY 1`,
  );
  const rows = (await (await setupPages(long)).read("/months")).table("Months");
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
    numberIn(rows.find((row) => row.Month === title)?.Change?.replace("+", "")).toFixed(1),
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
  expect(facts.Traces).toContain("final and proved");
  expect(bars).toHaveLength(1);
});
