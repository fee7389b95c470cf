import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import { dayTitle, monthTitle } from "../../../src/core/domain/months/month.ts";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../src/core/domain/usage/record.ts";
import { learnMeter } from "../../../src/core/store/catalog/source-meters.ts";
import { DIMENSIONS } from "../../../src/core/store/db/dimensions.ts";
import { createPrices } from "../../support/charges.ts";
import { numberIn } from "../../support/dom.ts";
import { close, load, month, bench as monthBench, setUpMonth } from "../../support/month.ts";
import { type PagesBench, setupPages, setupViewer } from "../../support/pages.ts";
import { connect } from "../../support/reporting.ts";
import { senderOn, setup } from "../../support/source.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../../support/store.ts";
import { setupUsage, shareUsage, type UsageBench } from "../../support/usage-bench.ts";
import { costsBy } from "../../support/views.ts";

const DAYS = 10;
const WORDS = { workspace: "workspace", project: "project", user: "user", api_key: "API key" } as const;

const ten = shareUsage({ days: DAYS, gapAgo: 4 });

const priced = shareUsage({ days: DAYS, gapAgo: 4 }, async ({ store, today, dataStart }) => {
  const change = dayOf(today - 5 * DAY_MS);
  await createPrices(store, [
    { unitPrice: "0.0005", from: dayOf(dataStart + DAY_MS), to: change },
    { unitPrice: "0", from: change },
    { unitPrice: "0.0000000007", from: change, fromQuantity: 1_000 },
    { sku: "retention", unitPrice: "3.3", currency: "EUR", from: change },
  ]);
});

const measured = shareUsage({ days: DAYS, gapAgo: 4 }, loadMeasures);

async function setupTen(bench = ten()) {
  const client = await connect(bench.databaseUrl);
  const day = (ago: number) => dayOf(bench.today - ago * DAY_MS);
  return { bench, client, pages: await setupPages(bench), day, from: dayOf(bench.dataStart), to: day(0) };
}

/** The lines of a CSV file, the total last. */
async function fileOf(pages: PagesBench, query: string): Promise<Record<string, string>[]> {
  const { text } = await pages.get(`/usage.csv?${query}`);
  return parse(text.replace(/^\uFEFF/, ""), { columns: true });
}

test.each(Object.entries(WORDS))(
  "usage by %s is that of the view, on the page and in both files",
  async (by, word) => {
    const { bench, client, pages, from, to } = await setupTen();
    const query = `by=${by}&from=${from}&to=${to}&per=day`;
    const page = await pages.read(`/usage?${query}`);
    const { rows } = await client.query<{ id: string; traces: string | null }>(
      `SELECT ${DIMENSIONS[by as GroupBy].id} AS id, sum(traces)::text AS traces FROM reporting.fct_usage_${by}_daily
       WHERE source_id = 'default' AND usage_date >= $1::date AND usage_date < $2::date
       GROUP BY 1 ORDER BY sum(traces) DESC NULLS LAST`,
      [from, to],
    );
    expect(rows.length).toBeGreaterThan(1);
    const [sum] = await bench.sql<{ total: number; whole: boolean }>(
      `SELECT sum(traces)::integer AS total, bool_and(traces IS NOT NULL) AS whole FROM reporting.fct_usage_${by}_daily
     WHERE source_id = 'default' AND usage_date >= '${from}' AND usage_date < '${to}'`,
    );
    expect(sum?.whole).toBe(false);
    const lines = page.table(`By ${word}`);
    const total = lines.at(-1);
    expect(total?.Traces).toBe(`≥ ${sum?.total.toLocaleString("en-US")}`);
    const shown = lines.slice(0, -1).map(({ Traces }) => numberIn(Traces));
    expect(shown.reduce((all, one) => all + one, 0)).toBe(sum?.total);
    const ids = rows.filter((row) => row.id !== "(none)" && row.traces !== null);
    expect(shown.slice(0, Math.min(20, ids.length))).toEqual(
      ids.slice(0, 20).map(({ traces }) => Number(traces)),
    );
    const file = await fileOf(pages, query);
    expect(file.map((line) => Number(line.traces_loaded))).toEqual([...shown, sum?.total]);
    expect(file.at(-1)).toMatchObject({ traces: "", state: "Missing" });
    const trend = (await fileOf(pages, `${query}&table=time`)).filter(({ name }) => name === "Total");
    expect(trend.reduce((all, line) => all + Number(line.traces_loaded), 0)).toBe(sum?.total);
    expect(trend.find(({ day }) => day === bench.gap)?.traces).toBe("");
    expect(page.bars.find((bar) => bar.startsWith(dayTitle(bench.gap, { withYear: true })))).toContain(
      "not fully loaded, at least",
    );
  },
);

test("only the workspace that lacks a day is incomplete, and a file begins with a byte order mark and is named by what it holds", async () => {
  const { pages, from, to } = await setupTen();
  const lines = (await pages.read(`/usage?from=${from}&to=${to}`)).table("By workspace").slice(0, -1);
  expect(lines.filter(({ Traces = "" }) => Traces.startsWith("≥"))).toHaveLength(1);
  const file = await pages.get(`/usage.csv?by=user&from=${from}&to=${to}&per=day`);
  expect(file.headers["content-disposition"]).toBe(
    `attachment; filename="usage-default-traces-by-user-${from}-to-${to}.csv"`,
  );
  // Reading as text takes the mark away.
  expect(Number(file.headers["content-length"])).toBe(Buffer.byteLength(file.text) + 3);
});

test("what grew most comes first where that is asked for, in the file too", async () => {
  const { bench, pages, day } = await setupTen();
  const query = `by=project&from=${day(3)}&to=${day(0)}&per=day&against=${day(6)}`;
  const page = await pages.read(`/usage?${query}`);
  const sorted = await pages.read(page.link(/^Change/));
  const [grown] = await bench.sql<{ name: string }>(
    `SELECT max(project_name) AS name FROM reporting.fct_usage_project_daily
     WHERE usage_date >= '${day(6)}' AND usage_date < '${day(0)}' AND project_id <> '(none)' GROUP BY project_id
     ORDER BY sum(traces) FILTER (WHERE usage_date >= '${day(3)}') - coalesce(sum(traces) FILTER (WHERE usage_date < '${day(3)}'), 0) DESC`,
  );
  expect(sorted.table("By project")[0]?.Project).toContain(grown?.name);
  // A name such as -legacy- has a mark before it, so that a spreadsheet takes it for text.
  expect((await fileOf(pages, `${query}&sort=growth`))[0]?.name?.replace(/^'/, "")).toBe(grown?.name);
});

test("a range with today is compared without it: half a day is no fall", async () => {
  const { bench, pages, day } = await setupTen();
  const page = await pages.read(`/usage?from=${day(1)}&to=${day(-1)}&per=day&against=${day(3)}`);
  const rows = await bench.sql<{ id: string; now: number; before: number }>(
    `SELECT workspace_name AS id, sum(traces) FILTER (WHERE usage_date = '${day(1)}')::float8 AS now,
            sum(traces) FILTER (WHERE usage_date = '${day(3)}')::float8 AS before
     FROM reporting.fct_usage_workspace_daily WHERE usage_date IN ('${day(1)}', '${day(3)}') GROUP BY 1`,
  );
  const lines = page.table("By workspace");
  expect(lines).toHaveLength(rows.length + 1);
  // Of two equal numbers no change is shown.
  const changed = rows.filter(({ now, before }) => now !== before);
  const changes = changed.map(({ id }) => {
    const line = lines.find(({ Workspace = "" }) => Workspace.startsWith(id)) ?? {};
    return numberIn(line.Change?.replace("− ", "−"));
  });
  expect(changes).toEqual(
    changed.map(({ now, before }) => Math.round((1000 * (now - before)) / before) / 10),
  );
});

test("each day of two weeks or more stands before the same weekday of the earlier range", async () => {
  const bench = await setupUsage({ days: 31, gapAgo: 1 });
  const pages = await setupPages(bench);
  const day = (ago: number) => dayOf(bench.today - ago * DAY_MS);
  const { bars } = await pages.read(`/usage?from=${day(14)}&to=${day(0)}&per=day&against=${day(30)}`);
  const counts = await bench.sql<{ day: string; traces: number }>(
    "SELECT usage_date::text AS day, sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily GROUP BY 1",
  );
  const counted = new Map(
    counts.map((one) => [dayTitle(one.day, { withYear: true }), one.traces.toLocaleString("en-US")]),
  );
  const compared = bars.flatMap((bar) => {
    const [, early = "", traces] = /\n(\d+ \w+ \d{4}): ([\d,]+)$/.exec(bar) ?? [];
    const [day = ""] = bar.split(":");
    return early === "" ? [] : [{ days: (Date.parse(day) - Date.parse(early)) / DAY_MS, early, traces }];
  });
  expect(bars).toHaveLength(14);
  expect(compared.map(({ days }) => days)).toEqual(Array(12).fill(14));
  expect(compared.map(({ traces }) => traces)).toEqual(compared.map(({ early }) => counted.get(early)));
});

test("any earlier range is compared with, also one beside a day that is not loaded", async () => {
  const { bench, pages, day } = await setupTen();
  for (const against of [9, 7]) {
    const total = (
      await fileOf(pages, `by=project&from=${day(2)}&to=${day(0)}&per=day&against=${day(against)}`)
    ).at(-1);
    const [sums] = await bench.sql<{ now: string; before: string }>(
      `SELECT sum(traces) FILTER (WHERE usage_date >= '${day(2)}' AND usage_date < '${day(0)}')::text AS now,
              sum(traces) FILTER (WHERE usage_date >= '${day(against)}' AND usage_date < '${day(against - 2)}')::text AS before
       FROM reporting.fct_usage_project_daily`,
    );
    expect(total).toMatchObject({
      before_from: day(against),
      before_to: day(against - 2),
      traces: sums?.now,
      before_traces: sums?.before,
    });
  }
});

test("a form names the last day of a range, and an address the day after it", async () => {
  const { pages, day } = await setupTen();
  const read = async (end: string) =>
    (await pages.read(`/usage?by=project&from=${day(2)}&${end}&per=day`)).table("By project");
  expect(await read(`until=${day(1)}`)).toEqual(await read(`to=${day(0)}`));
});

test("an id is found by a part of its name, and the others are the rest", async () => {
  const { pages, day } = await setupTen();
  const query = `by=project&from=${day(2)}&to=${day(0)}&per=day`;
  const all = (await pages.read(`/usage?${query}`)).table("By project");
  const [name = ""] = (all[3]?.Project ?? "").split(" ");
  const found = (await pages.read(`/usage?${query}&find=${encodeURIComponent(name.toUpperCase())}`)).table(
    "By project",
  );
  const titles = found.map(({ Project = "" }) => Project);
  expect(titles.slice(0, -2).every((one) => one.toLowerCase().includes(name.toLowerCase()))).toBe(true);
  expect(titles.slice(-2)).toEqual([expect.stringMatching(/^The rest/), "Total"]);
  expect(found.at(-1)?.Traces).toBe(all.at(-1)?.Traces);
  expect(found.slice(0, -1).reduce((sum, line) => sum + numberIn(line.Traces), 0)).toBe(
    numberIn(all.at(-1)?.Traces),
  );
});

test.each([
  ["workspace", "EUR"],
  ["workspace", "USD"],
  ["user", "EUR"],
  ["user", "USD"],
] as const)(
  "costs by %s in %s are those of the view to the last digit, and unpriced usage is named",
  async (by, currency) => {
    const { client, pages, from, to } = await setupTen(priced());
    const query = `by=${by}&from=${from}&to=${to}&measure=cost&currency=${currency}`;
    const page = await pages.read(`/usage?${query}`);
    const { rows } = await client.query<{ total: string }>(
      `SELECT trim_scale(sum(estimated_cost))::text AS total FROM ${costsBy(by)}
     WHERE source_id = 'default' AND usage_date >= $1::date AND usage_date < $2::date AND currency = $3`,
      [from, to, currency],
    );
    expect(page.exact(`By ${by}`)[0]).toBe(rows[0]?.total);
    const lines = page.table(`By ${by}`);
    // What is not priced is neither nothing nor proved.
    expect(lines.at(-1)?.[`Estimated cost, ${currency}`]).toMatch(/^≥ /);
    expect(page.notices.filter((one) => one.includes("No price"))).toHaveLength(1);
    expect((await fileOf(pages, query)).at(-1)?.[`estimated_cost_${currency.toLowerCase()}_loaded`]).toBe(
      rows[0]?.total,
    );
    const first = (await fileOf(pages, `${query}&table=time`)).find(
      ({ day, name }) => day === from && name === "Total",
    );
    expect(first?.state).toBe("Missing");
    const ids = await client.query<{ cost: string }>(
      `SELECT sum(estimated_cost)::text AS cost FROM ${costsBy(by)}
       WHERE source_id = 'default' AND usage_date >= $1::date AND usage_date < $2::date AND currency = $3
       GROUP BY ${by}_id`,
      [from, to, currency],
    );
    const top = numberIn(lines[0]?.[`Estimated cost, ${currency}`]);
    expect(ids.rows.some(({ cost }) => Math.abs(Number(cost) - top) <= 0.005)).toBe(true);
  },
);

test("a viewer sees no address of a user, on the page and in the file", async () => {
  const bench = ten();
  const pages = await setupViewer(bench);
  for (const path of [
    "/usage?by=user",
    "/usage.csv?by=user",
    "/usage.csv?by=user&table=time",
    "/usage?by=user&per=month",
  ]) {
    const { status, text } = await pages.get(path);
    expect(status).toBe(200);
    expect(text).not.toContain("@");
    expect(text).toMatch(/user [0-9a-f]{8}/);
  }
});

test("of a range without usage there is no table, and an empty file", async () => {
  const { pages } = await setupTen();
  for (const query of ["from=2999-01-01&to=2999-02-01", "from=1999-01-01&to=1999-02-01"]) {
    expect((await pages.read(`/usage?${query}`)).hasTable("By workspace"), query).toBe(false);
    expect((await pages.get(`/usage.csv?${query}`)).status).toBe(200);
  }
});

/** Long-lived traces and deployment usage of two workspaces; one of them lacks the last day of deployments. */
async function loadMeasures(bench: UsageBench): Promise<void> {
  const { from, to } = bench;
  const { workspaces } = bench.standin.organisation;
  const start = dayOf(bench.dataStart + 2 * DAY_MS);
  const [{ sourceId } = { sourceId: 0 }] = await bench.sql<{ sourceId: number }>(
    `SELECT source_id AS "sourceId" FROM usage.source`,
  );
  await learnMeter(bench.store.db, {
    sourceId,
    meter: "deployments",
    state: "counted",
    evidence: "test",
    startsOn: start,
  });
  for (const groupBy of ["workspace", "project", "user"] as const) {
    for (const { id } of workspaces.slice(0, 2)) {
      const ids = groupBy === "workspace" ? [id] : [`${id.slice(0, -2)}0a`, ""];
      const response = { sourceId, groupBy, workspaceId: id };
      const window = windowOf("day", from, to);
      // The view by user has long-lived traces beside traces.
      if (groupBy === "user") {
        await loadRows(bench.store, { ...response, window, rows: ids.map((one) => [start, one, 9]) });
      }
      await loadRows(bench.store, {
        ...response,
        meter: "longlived",
        window,
        rows: ids.map((one, n) => [start, one, 3 + n, "ada"] as const),
      });
      await loadDeploymentRows(bench.store, {
        ...response,
        window: windowOf("day", start, id === workspaces[0]?.id ? to : dayOf(bench.today - DAY_MS)),
        rows: ids.map((one, n) => [start, one, [5 + n, 7, 9_000], "ada"] as const),
      });
    }
  }
}

const OTHER = "quantity FROM reporting_detail.fct_other_usage_daily";

test.each([
  ["longlived", "workspace", "longlived_traces FROM reporting.fct_usage_workspace_daily"],
  ["longlived", "user", "longlived_traces FROM reporting.fct_usage_user_daily"],
  ["nodes_executed", "project", `${OTHER} WHERE measure = 'nodes_executed' AND group_by = 'deployment'`],
  ["agent_runs", "user", `${OTHER} WHERE measure = 'agent_runs' AND group_by = 'user'`],
  [
    "agent_uptime_seconds",
    "workspace",
    `${OTHER} WHERE measure = 'agent_uptime_seconds' AND group_by = 'workspace'`,
  ],
] as const)("%s by %s is counted by itself, as in its view", async (measure, by, figures) => {
  const { client, pages, from, to } = await setupTen(measured());
  const { rows } = await client.query<{ total: string; whole: boolean }>(
    `SELECT trim_scale(sum(amount))::text AS total, bool_and(amount IS NOT NULL) AS whole FROM (SELECT usage_date, ${figures}) f (usage_date, amount)
     WHERE usage_date >= $1::date AND usage_date < $2::date`,
    [from, to],
  );
  const query = `measure=${measure}&by=${by}&from=${from}&to=${to}&per=day`;
  const page = await pages.read(`/usage?${query}`);
  const [, total = ""] = Object.values(page.table(`By ${by === "project" ? "deployment" : by}`).at(-1) ?? {});
  expect(numberIn(total)).toBe(Number(rows[0]?.total));
  expect(total.startsWith("≥")).toBe(!rows[0]?.whole);
  const name = measure === "longlived" ? "longlived_traces" : measure;
  expect((await fileOf(pages, query)).at(-1)?.[`${name}_loaded`]).toBe(rows[0]?.total);
});

test("a measure that was never loaded has no figure and no file", async () => {
  const { pages, from, to } = await setupTen();
  const query = `measure=agent_runs&by=project&from=${from}&to=${to}`;
  expect((await pages.read(`/usage?${query}`)).hasTable("By deployment")).toBe(false);
  expect((await pages.get(`/usage.csv?${query}`)).status).toBe(404);
});

test("beside final stands whether it is proved, on the page and in the files", async () => {
  const bench = await setup({ days: DAYS, workspaces: [1], hourlyForMs: 8 * DAY_MS });
  await bench.sync();
  const pages = await setupPages(bench);
  const end = bench.today - 4 * DAY_MS;
  const range = { start: end - 3 * DAY_MS, end };
  const states = async (per: "day" | "hour") => {
    const query = `by=project&from=${dayOf(range.start)}&to=${dayOf(range.end)}&per=${per}`;
    const caption = (await pages.read(`/usage?${query}`)).caption("By project");
    const trend = await fileOf(pages, `${query}&table=time`);
    return [/All: (.*)/.exec(caption)?.[1], ...new Set(trend.map(({ state }) => state))];
  };
  const [unproved, proved] = ["Final", "Proved"];
  expect([await states("day"), await states("hour")]).toEqual(Array(2).fill([unproved, unproved]));
  // A proof of a part of it proves no sum.
  await bench.reconcile({ range: { ...range, end: range.start + DAY_MS } });
  expect((await states("day")).sort()).toEqual([unproved, unproved, proved]);
  await bench.reconcile({ range });
  expect([await states("day"), await states("hour")]).toEqual([
    [proved, proved],
    [unproved, unproved],
  ]);
  await bench.reconcile({ range, stride: "hour" });
  expect(await states("hour")).toEqual([proved, proved]);
});

test("one day is shown by hour where its hours are kept, and by day where they are not", async () => {
  const { pages, day } = await setupTen();
  const state = async (ago: number) =>
    (await fileOf(pages, `from=${day(ago)}&to=${day(ago - 1)}`)).at(-1)?.state;
  expect([await state(1), await state(5)]).toEqual(["Provisional", "Final"]);
});

test("a cost by project is proved where the traces of its workspace and those by project are", async () => {
  await setUpMonth([0]);
  await load();
  await createPrices(monthBench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const pages = await setupPages(monthBench);
  const query = `measure=cost&by=project&from=${dayOf(month.start)}&to=${dayOf(month.end)}`;
  const state = async () => (await fileOf(pages, query)).at(-1)?.state;
  await monthBench.reconcile({ range: month, groupings: ["workspace"] });
  expect(await state()).toBe("Final");
  await monthBench.reconcile({ range: month });
  expect(await state()).toBe("Proved");
});

test("what came since a month was closed is named beside its traces and beside its costs", async () => {
  await setUpMonth([0]);
  await load();
  await createPrices(monthBench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  await monthBench.reconcile({ range: month });
  const pages = await setupPages(monthBench);
  expect((await close({ withoutCosts: false })).state).toBe("closed");
  const said = async (measure: string, from: number, to: number) => {
    const { notices } = await pages.read(`/usage?measure=${measure}&from=${dayOf(from)}&to=${dayOf(to)}`);
    return notices.filter((one) => one.includes(`${monthTitle({ start: dayOf(month.start) })}`));
  };
  expect([await said("traces", month.start, month.end), await said("cost", month.start, month.end)]).toEqual([
    [],
    [],
  ]);
  const [{ closed = "" } = {}] = await monthBench.sql<{ closed: string }>(
    "SELECT to_char(sum(closed_traces), 'FM999,999,999') AS closed FROM reporting_detail.fct_close WHERE group_by = 'workspace'",
  );
  monthBench.standin.ledger.change(senderOn(monthBench.standin, 0, month.start + 5 * DAY_MS), 12);
  await load();
  const [traces = ""] = await said("traces", month.start, month.end);
  expect(traces).toMatch(new RegExp(` ${closed} .*; 12 more `));
  expect((await said("cost", month.start, month.end))[0]).toContain(" 6.00 USD more ");
  expect(await said("traces", month.start - 5 * DAY_MS, month.start)).toEqual([]);
});
