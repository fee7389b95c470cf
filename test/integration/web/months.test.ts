import { sql } from "kysely";
import { DateTime } from "luxon";
import { beforeEach, expect, test } from "vitest";
import { monthAt, monthTitle } from "../../../src/domain/months/month.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../../src/domain/time/stride.ts";
import { lockScopes } from "../../../src/store/catalog/scopes.ts";
import { trustOfSources } from "../../../src/store/coverage/trust.ts";
import { enterPrices } from "../../support/charges.ts";
import { usageEtl } from "../../support/cli.ts";
import { type PagesBench, refusalOf, setupPages, setupViewer, textOf } from "../../support/pages.ts";
import { type Bench, farFromTheNextHour, senderOn, setup } from "../../support/source.ts";

/** The last days of the last month that is final to its end: few, so that a test is quick. */
const DAYS = 3;
const WORKSPACES = [1, 2];

let bench: Bench;
let pages: PagesBench;
let month: { name: string; start: number; end: number };

beforeEach(async () => {
  const now = await farFromTheNextHour();
  const today = floorToGrid(now, DAY_MS);
  const first = DateTime.fromMillis(today - 4 * DAY_MS, { zone: "utc" })
    .startOf("month")
    .minus({ months: 1 });
  const end = first.plus({ months: 1 }).toMillis();
  month = { name: first.toFormat("yyyy-MM"), start: end - DAYS * DAY_MS, end };
  bench = await setup({
    ...{ now, days: (today - month.start) / DAY_MS, workspaces: WORKSPACES, hourlyForMs: HOUR_MS },
  });
  await bench.open();
  pages = await setupPages(bench);
});

const load = (range: { start: number; end: number } = month) =>
  bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });

/** Rows of the open days: what is open, dimension, workspace days. */
const listed = (html: string) =>
  [...html.matchAll(/<tr><th scope="row"><span class="status [^>]*>(.*?)<\/tr>/gs)].map(([, row = ""]) => {
    const text = textOf(row.replace(/<span aria-hidden="true">.<\/span>/, ""));
    const [, what = "", dimension = "", days = ""] =
      / ?([\w' ]+?) (workspace|project|user|API key) ([\d,]+) /.exec(text) ?? [];
    return `${dimension}: ${what.trim()}: ${days}`;
  });

test("a month goes from open to closed on the page, which lists what `close` prints, and later changes are adjustments", async () => {
  const path = `/months/${month.name}`;
  const day = new Date(month.start).toISOString().slice(0, 10);
  await load({ start: month.start, end: month.end - DAY_MS });
  const open = await pages.get(path);
  expect(open.status).toBe(200);
  expect(textOf(open.text)).toContain(
    `${monthTitle(monthAt(month.start))} is open: 24 daily figures keep it so.`,
  );
  expect(open.text).not.toContain(`href="${path}/close`);
  const [, file = ""] = /href="(\/usage\.xlsx[^"]*)"/.exec(open.text) ?? [];
  expect((await pages.get(file.replaceAll("&amp;", "&"))).headers["content-disposition"]).toContain(
    `usage-default-traces-by-workspace-${month.name}-01-to-${new Date(month.end).toISOString().slice(0, 10)}.xlsx`,
  );
  // What is not loaded, and what has no price, is on the bill.
  expect(textOf(open.text)).toMatch(
    /Bill .* Traces [\d,]+ – – no price Traces – – – 2 of 6 workspace days are not loaded .*Total: not known\./,
  );
  const printed = await usageEtl(["close", month.name], {
    ...{
      DATABASE_URL: bench.databaseUrl,
      USAGE_BASE_URL: bench.standin.url,
      USAGE_API_KEY: bench.standin.apiKey,
    },
    USAGE_WORKSPACE_IDS: bench.workspaceIds.join(","),
  });
  expect(printed.code).toBe(4);
  const inCommand = [...printed.stdout.matchAll(/^(\w+) +([a-z' ]+?) +(\d+) +\d{4}-/gm)].map(
    ([, dimension, what, days]) => `${dimension?.replace("api_key", "API key")}: ${what}: ${days}`,
  );
  expect(inCommand).toHaveLength(8);
  expect(listed(open.text)).toEqual(inCommand);
  // Each step of the command stands on the page.
  for (const [, step = ""] of printed.stdout.matchAll(/^- (.*?):? `/gm))
    expect(textOf(open.text)).toContain(step);
  // And each point leads to its days.
  const last = new Date(month.end - DAY_MS).toISOString().slice(0, 10);
  expect(open.text).toContain(`/backfills/new?source=default&amp;stride=day&amp;from=${last}`);
  expect(open.text).toContain(`/coverage?source=default&amp;stride=day&amp;from=${day}`);
  // It cannot be closed by its address either.
  expect((await pages.get(`${path}/close`)).status).toBe(409);

  await load();
  await bench.reconcile({ range: month });
  // A look waits for no load, and no load waits for it: a close would wait here.
  const ready = await bench.store.transaction(async ({ db }) => {
    const { rows: scopes } = await sql<{ id: number }>`select scope_id as id from usage.scope`.execute(db);
    await lockScopes(
      db,
      scopes.map(({ id }) => id),
    );
    return pages.get(path);
  });
  expect(textOf(ready.text)).toContain("nothing keeps it open");
  expect(textOf((await pages.get("/months")).text)).toContain("it can be closed");
  const confirm = `${path}/close?source=default`;
  expect(ready.text).toContain(`href="${confirm}"`);
  const asked = await pages.get(confirm);
  const [, digest = ""] = /name="digest" value="(\w+)"/.exec(asked.text) ?? [];
  const [{ traces = "" } = {}] = await bench.sql<{ traces: string }>(
    `SELECT to_char(sum(traces), 'FM999,999,999') AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2`,
    [day, new Date(month.end).toISOString().slice(0, 10)],
  );
  expect(textOf(asked.text)).toContain(`Traces ${traces} Totals workspace: 2 ids`);

  // What was looked at is not what would be closed: nothing is.
  const sender = senderOn(bench.standin, WORKSPACES[0] as number, month.start + DAY_MS);
  bench.standin.ledger.change(sender, 2);
  await load();
  await bench.reconcile({ range: month });
  const fields = { source: "default", costs: "none" };
  const changed = await pages.post(`${path}/close`, { ...fields, digest }, { from: confirm });
  expect([changed.status, textOf(changed.text)]).toEqual([
    409,
    expect.stringContaining("Nothing was closed."),
  ]);
  expect(await bench.sql("SELECT FROM usage.month_close")).toHaveLength(0);

  const offered = (await pages.get(confirm)).text;
  expect(textOf(offered)).toContain("none: no price is valid for any of these traces.");
  expect(textOf(offered)).toContain(`Close ${monthTitle(monthAt(month.start))} without costs`);
  const [, now = ""] = /name="digest" value="(\w+)"/.exec(offered) ?? [];
  const priced = await pages.post(`${path}/close`, { source: "default", digest: now }, { from: confirm });
  expect([priced.status, textOf(priced.text)]).toEqual([
    400,
    expect.stringContaining("Code: month_unpriced"),
  ]);
  const done = await pages.post(`${path}/close`, { ...fields, digest: now }, { from: confirm });
  expect([done.status, done.headers.location]).toEqual([303, `${path}?source=default`]);
  const closed = await pages.get(path);
  expect(textOf(closed.text)).toMatch(/closed \d{4}-\d\d-\d\d [\d:]+ , on a page/);
  expect(textOf(closed.text)).toContain("None: every count is as it was closed.");
  // A month closes once.
  expect((await pages.get(confirm)).status).toBe(409);
  const actions = await bench.sql(
    "SELECT action, outcome, via FROM usage.operator_action ORDER BY action_id",
  );
  expect(actions).toEqual([
    { action: "month.close", outcome: "refused", via: "page" },
    { action: "month.close", outcome: "done", via: "page" },
  ]);

  bench.standin.ledger.change(sender, 5);
  await load();
  const adjusted = textOf((await pages.get(path)).text);
  expect(adjusted).toContain("4 totals are not as closed. The workspaces have +5 traces.");
  expect(adjusted).toMatch(/user .* \+5 /);
  expect(textOf((await pages.get("/months")).text)).toContain("4 counts, +5 traces");
});

test("leaving out a workspace and accepting disagreements are looked at first, and closed as they were looked at", async () => {
  const [kept = "", left = ""] = bench.workspaceIds;
  await bench.fetch({ wanted: [{ stride: "day", range: month }], reprocess: "all", workspaceIds: [kept] });
  await bench.reconcile({ range: month });
  await bench.sql(
    `INSERT INTO usage.control_difference
       (scope_id, kind, period_start, period_end, external_id, stored_traces, control_traces, state, fetch_number)
     SELECT c.scope_id, 'stride_total', $1, $2, 'p', 1, 2, 'platform_disagrees', 1
     FROM usage.trace_scope c JOIN usage.entity e ON e.entity_id = c.workspace_id
     WHERE c.stride = 'day' AND c.group_by = 'project' AND e.external_id = $3`,
    [new Date(month.start).toISOString(), new Date(month.start + DAY_MS).toISOString(), kept],
  );
  const path = `/months/${month.name}`;
  const without = await pages.get(`${path}?without=${left}`);
  expect(listed(without.text)).toEqual(["project: the platform's totals differ: 1"]);
  const both = `source=default&without=${left}&accept=yes`;
  const ready = await pages.get(`${path}?${both}`);
  expect(textOf(ready.text)).toContain("but for 1 daily figure that is accepted");
  const confirm = `${path}/close?${both}`;
  const command = `close ${month.name} --without-costs --accept-disagreements --without ${left}`;
  expect(textOf((await pages.get(confirm)).text)).toContain(command);
  /** The fields of the form that were not asked for. */
  const look = async () => {
    const { text } = await pages.get(confirm);
    const fieldOf = (name: string) => new RegExp(`name="${name}" value="(\\w+)"`).exec(text)?.[1];
    const [digest = "", costs] = [fieldOf("digest"), fieldOf("costs")];
    return { digest, ...(costs === undefined ? {} : { costs }) };
  };
  const close = async (looked: Awaited<ReturnType<typeof look>>) => {
    const fields = { source: "default", ...looked, accept: "yes", without: left };
    return (await pages.post(`${path}/close`, fields, { from: confirm })).status;
  };
  // Found since, on the same day: neither a total nor the number of days that are accepted has changed.
  const looked = await look();
  const trust = async () => (await trustOfSources(bench.store.db))[0];
  expect(await trust()).toMatchObject({ disagreements: 1, disagreementsSince: 0, leftOutDays: 0 });
  await bench.sql(
    `INSERT INTO usage.control_difference
       (scope_id, kind, period_start, period_end, external_id, stored_traces, control_traces, state, fetch_number)
     SELECT scope_id, kind, period_start, period_end, 'q', 3, 4, state, 2 FROM usage.control_difference`,
  );
  expect(await close(looked)).toBe(409);
  const found = await look();
  await bench.sql("UPDATE usage.control_difference SET control_traces = 5 WHERE external_id = 'q'");
  expect(await close(found)).toBe(409);
  // What is closed without costs stays the same with a price; what is closed with them does not with another price.
  const costless = await look();
  expect(costless.costs).toBe("none");
  await enterPrices(bench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const disputed = await look();
  expect(disputed).toEqual({ digest: expect.not.stringMatching(costless.digest) });
  await bench.sql("UPDATE usage.price SET unit_price = 0.7");
  expect(await close(disputed)).toBe(409);
  expect(await bench.sql("SELECT FROM usage.month_close")).toHaveLength(0);
  expect(await close(await look())).toBe(303);
  // What was accepted or left out keeps no later month from being offered. A finding from after the close is named.
  const leftOutDays = 4 * DAYS;
  const next = new Date(month.end).toISOString().slice(0, 10);
  expect(await trust()).toMatchObject({
    ...{ disagreements: 0, disagreementsSince: 0, leftOutDays, closedMonth: `${month.name}-01` },
    reconciledUntil: next,
  });
  await bench.sql("UPDATE usage.control_difference SET found_at = now() WHERE external_id = 'q'");
  expect(await trust()).toMatchObject({ disagreements: 0, disagreementsSince: 1 });
  expect(await bench.sql("SELECT accepted_disagreements FROM usage.month_close")).toEqual([
    { accepted_disagreements: 1 },
  ]);
  expect(textOf((await pages.get("/months")).text)).toContain("without 1 workspace");
});

test("who only looks sees months and closes none, and months that cannot be closed say why", async () => {
  const viewer = await setupViewer(bench);
  await load();
  await bench.reconcile({ range: month });
  const path = `/months/${month.name}`;
  const looked = await viewer.get(path);
  expect(textOf(looked.text)).toContain("An operator can close it.");
  expect((await viewer.get(`${path}/close`)).status).toBe(403);
  expect((await viewer.post(`${path}/close`, { source: "default", digest: "x" })).status).toBe(403);
  expect(await bench.sql("SELECT FROM usage.month_close")).toHaveLength(0);

  for (const [address, refusal] of [
    ["/months/2026", "400 month_invalid"],
    ["/months/9000-01", "400 month_not_over"],
    ["/months/2019-12", "400 month_before_data"],
    [`${path}?source=nobody`, "404 source_unknown"],
    [`${path}?without=nobody`, "404 workspace_unknown"],
    ["/months?newest=x", "400 query_invalid"],
  ] as const)
    expect(await refusalOf(pages, address), address).toBe(refusal);
});

test("a month begins with its traces, what may be claimed of them and the change, also while it is under way", async () => {
  await load({ start: bench.dataStart, end: bench.today + DAY_MS });
  await bench.reconcile({ range: month });
  await enterPrices(bench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const sumOf = async (from: number, to: number) => {
    const [row] = await bench.sql<{ traces: number }>(
      "SELECT sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $1 AND usage_date < $2",
      [dayText(from), dayText(to)],
    );
    return row?.traces ?? 0;
  };
  const dayText = (at: number) => new Date(at).toISOString().slice(0, 10);
  const shown = (number: number, digits = 0) =>
    number.toLocaleString("en-US", { minimumFractionDigits: digits });
  const traces = await sumOf(month.start, month.end);
  const ended = textOf((await pages.get(`/months/${month.name}`)).text);
  expect(ended).toContain(`Traces ${shown(traces)} ● final and proved`);
  expect(ended).toContain(`Estimated cost, USD ${shown(traces / 2, 2)} ● final and proved`);
  const name = dayText(bench.now).slice(0, 7);
  const soFar = await sumOf(Date.parse(`${name}-01`), bench.today + DAY_MS);
  const running = await pages.get(`/months/${name}`);
  expect(running.status).toBe(200);
  expect(textOf(running.text)).toContain(`Traces ${shown(soFar)} so far ◔ under way`);
  expect(textOf(running.text)).toContain(
    `${monthTitle(monthAt(bench.now))} is under way. It can be closed once`,
  );
  expect(running.text).not.toContain("/close");
  const list = textOf((await pages.get("/months")).text);
  expect(list).toContain(
    `${monthTitle(monthAt(month.start))} ${shown(traces)} – ${shown(traces / 2, 2)} ● final and proved`,
  );
  expect(list).toContain(
    `${monthTitle(monthAt(bench.now))} ${shown(soFar)} so far – ${shown(soFar / 2, 2)} so far ◔ under way`,
  );
});

test("a month is compared with the one before it only where all days of that are here", async () => {
  const long = await setup({ days: 100, now: bench.now, workspaces: WORKSPACES, hourlyForMs: HOUR_MS });
  await long.open();
  const ownPages = await setupPages(long);
  const range = { start: long.dataStart, end: long.today + DAY_MS };
  await long.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  const sums = await long.sql<{ month: string; traces: number }>(
    `SELECT to_char(usage_date, 'YYYY-MM-01') AS month, sum(traces)::integer AS traces
     FROM reporting.fct_usage_workspace_daily GROUP BY 1 ORDER BY 1`,
  );
  const list = textOf((await ownPages.get("/months")).text);
  const now = monthAt(long.now).start;
  const changes = sums.map(({ month: start, traces }, n) => {
    const before = sums[n - 1]?.traces ?? 0;
    const [, change] =
      new RegExp(`${monthTitle({ start })} ${traces.toLocaleString("en-US")}(?: so far)? (\\S+)`).exec(
        list,
      ) ?? [];
    const isWhole = n > 0 && Date.parse(sums[n - 1]?.month ?? "") >= long.dataStart && start !== now;
    expect([start, change]).toEqual([start, isWhole ? expect.stringMatching(/^[+−]?\d/) : "–"]);
    if (isWhole) expect(Number(change?.replace("−", "-"))).toBeCloseTo((100 * (traces - before)) / before, 0);
    return isWhole;
  });
  // A first month of which some days are not here, whole ones, and the one under way.
  expect(changes.filter((is) => is).length).toBeGreaterThan(0);
});

test("a month of which one day is known is read by the day, whatever hours are loaded", async () => {
  const last = month.end - DAY_MS;
  const short = await setup({
    ...{ now: bench.now, days: (bench.today - last) / DAY_MS, workspaces: WORKSPACES, hourlyForMs: HOUR_MS },
  });
  await short.open();
  const ownPages = await setupPages(short);
  const range = { start: last, end: month.end };
  await short.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  await short.reconcile({ range });
  const [{ traces = 0 } = {}] = await short.sql<{ traces: number }>(
    "SELECT sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily WHERE usage_date = $1",
    [new Date(last).toISOString().slice(0, 10)],
  );
  const text = textOf((await ownPages.get(`/months/${month.name}`)).text);
  expect(text).toContain(`Traces ${traces.toLocaleString("en-US")} ● final and proved`);
  expect(text).toContain("Traces per day");
});
