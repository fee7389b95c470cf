import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import { monthTitle } from "../../../src/domain/months/month.ts";
import { dayOf } from "../../../src/domain/time/days.ts";
import { DAY_MS } from "../../../src/domain/time/stride.ts";
import { rowsOf as rowsAllowed } from "../../../src/service/web/figures/question.ts";
import { learnMeter } from "../../../src/store/catalog/source-meters.ts";
import { enterPrices } from "../../support/charges.ts";
import { close, load, month, bench as monthBench, setUpMonth } from "../../support/month.ts";
import { refusalOf, setupPages, setupViewer, textOf } from "../../support/pages.ts";
import { connect } from "../../support/reporting.ts";
import { senderOn, setup } from "../../support/source.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../../support/store.ts";
import { setupUsage } from "../../support/usage-bench.ts";
import { inSchema } from "../../support/views.ts";

const DAYS = 10;
/** Cells of each row of the table of ids, without markup. A state that is that of all lines stands once, in the caption. */
function rowsOf(page: string): string[][] {
  const [, table = ""] = /<table class="usage-ids">(.*?)<\/table>/s.exec(page) ?? [];
  const rows = [...table.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = ""]) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = ""]) => textOf(cell)),
  );
  const [, state] = /<caption>[^<]*All of it: ([^<]*)<\/caption>/.exec(table) ?? [];
  return state === undefined ? rows : rows.map((row) => row.toSpliced(2, 0, state));
}

const numberOf = (text: string) => Number(text.replace(/[^\d.]/g, ""));

test("usage adds up to the views, names what is missing in place of a zero, and is the same as file and in SQL", async () => {
  const bench = await setupUsage({ days: DAYS, gapAgo: 4 });
  const pages = await setupPages(bench);
  const client = await connect(bench.databaseUrl);
  const range = { from: dayOf(bench.dataStart), to: dayOf(bench.today) };
  for (const by of ["workspace", "project", "user", "api_key"]) {
    const address = `by=${by}&from=${range.from}&to=${range.to}&per=day`;
    const page = await pages.get(`/usage?${address}`);
    expect(page.status).toBe(200);
    expect(page.text).not.toMatch(
      /<script(?! type="module" src="\/assets| src="\/assets| defer src="\/assets)|\sstyle=|\son\w+="/,
    );
    const { rows } = await client.query(
      `SELECT sum(traces)::text AS total, bool_and(traces IS NOT NULL) AS whole FROM reporting.fct_usage_${by}_daily
       WHERE source_id = 'default' AND usage_date >= $1::date AND usage_date < $2::date`,
      [range.from, range.to],
    );
    expect(rows[0].whole).toBe(false);
    const shown = rowsOf(page.text);
    const total = shown.at(-1) ?? [];
    expect(total.slice(0, 2)).toEqual(["Total", `at least ${Number(rows[0].total).toLocaleString("en-US")}`]);
    expect(total[2]).toMatch(/^(○ )?missing$/);
    // The lines add up to the total.
    expect(shown.slice(1, -1).reduce((sum, [, traces = ""]) => sum + numberOf(traces), 0)).toBe(
      Number(rows[0].total),
    );
    expect(textOf(page.text)).toContain("Missing is not zero.");
    expect(page.text).toContain(`${bench.gap}: not fully loaded, at least`);
    // The statement of the page gives the same lines.
    const [, statement = ""] = /<pre><code>(.*?)<\/code>/s.exec(page.text) ?? [];
    const asked = (await client.query(textOf(statement))).rows.filter(({ traces }) => traces !== null);
    const ids = shown.slice(1, -1).filter(([title = ""]) => !/^The rest|^Without a/.test(title));
    expect(ids.length).toBe(Math.min(20, asked.filter((row) => Object.values(row)[0] !== "(none)").length));
    const sums = asked
      .filter((row) => Object.values(row)[0] !== "(none)")
      .map(({ traces }) => Number(traces));
    expect(ids.map(([, traces = ""]) => numberOf(traces))).toEqual(sums.slice(0, 20));
    // The file has the numbers that are seen.
    const file = await pages.get(`/usage.csv?${address}`);
    expect(file.headers["content-disposition"]).toBe(
      `attachment; filename="usage-default-traces-by-${by}-${range.from}-to-${range.to}.csv"`,
    );
    // With a byte order mark, which reading as text takes away.
    expect(Number(file.headers["content-length"])).toBe(Buffer.byteLength(file.text) + 3);
    const lines: string[][] = parse(file.text);
    expect(lines[0]?.slice(6, 9)).toEqual(["traces", "traces_loaded", "state"]);
    expect(lines.slice(1).map((line) => Number(line[7]))).toEqual(
      shown.slice(1).map(([, traces = ""]) => numberOf(traces)),
    );
    expect(lines.at(-1)?.[6]).toBe("");
    const course: string[][] = parse((await pages.get(`/usage.csv?${address}&table=time`)).text);
    const totals = course.filter(([, , , , title]) => title === "Total");
    expect(totals.reduce((sum, line) => sum + Number(line[6]), 0)).toBe(Number(rows[0].total));
    expect(totals.find(([, day]) => day === bench.gap)?.[5]).toBe("");
  }
  // Only the workspace that lacks the day is incomplete.
  const byWorkspace = rowsOf((await pages.get(`/usage?from=${range.from}&to=${range.to}`)).text).slice(1, -1);
  expect(byWorkspace.filter(([, traces = ""]) => traces.startsWith("at least"))).toHaveLength(1);
  expect(textOf((await pages.get("/usage")).text)).toContain("48 of 240 hours are loaded");
});

test("what grew most comes first where that is asked for, in the file too", async () => {
  const bench = await setupUsage({ days: DAYS, gapAgo: 4 });
  const pages = await setupPages(bench);
  const day = (ago: number) => dayOf(bench.today - ago * DAY_MS);
  const address = `by=project&from=${day(3)}&to=${day(0)}&per=day&against=${day(6)}`;
  const { text } = await pages.get(`/usage?${address}`);
  const [, link = ""] = /<a href="([^"]*sort=growth)"/.exec(text) ?? [];
  const sorted = await pages.get(link.replaceAll("&amp;", "&"));
  expect(sorted.text).toMatch(/aria-sort="descending">Change/);
  const grown = await bench.sql<{ name: string }>(
    `SELECT max(project_name) AS name FROM reporting.fct_usage_project_daily
     WHERE usage_date >= $1::date AND usage_date < $2::date AND project_id <> '(none)' GROUP BY project_id
     ORDER BY sum(traces) FILTER (WHERE usage_date >= $3::date) - coalesce(sum(traces) FILTER (WHERE usage_date < $3::date), 0) DESC`,
    [day(6), day(0), day(3)],
  );
  const first = rowsOf(sorted.text)[1]?.[0] ?? "";
  expect(first.startsWith(grown[0]?.name ?? "?"), `${first} is not ${grown[0]?.name}`).toBe(true);
  const file: string[][] = parse((await pages.get(`/usage.csv?${address}&sort=growth`)).text);
  expect(file[1]?.join()).toContain(grown[0]?.name);
  expect((await pages.get(`/usage?${address}&sort=name`)).status).toBe(400);
  // With today in the range, the form names what is shown, keeps the order, and asks for the same.
  const now = await pages.get(`/usage?by=project&from=${day(3)}&to=${day(-1)}&per=day&sort=growth`);
  const [form = ""] = /<form class="row" method="get" action="\/usage">.*?<\/form>/s.exec(now.text) ?? [];
  expect(form).toMatch(new RegExp(`name="until" value="${day(1)}"`));
  expect(form).toContain('name="sort" value="growth"');
  expect((await pages.get(`/usage?by=project&from=${day(3)}&to=${day(-1)}&per=day`)).text).toMatch(
    new RegExp(`name="until" value="${day(0)}"`),
  );
});

test("a range with today is compared without it: half a day is no fall", async () => {
  const bench = await setup({ days: DAYS, workspaces: [0, 1] });
  await bench.sync();
  const pages = await setupPages(bench);
  const day = (ago: number) => dayOf(bench.today - ago * DAY_MS);
  const { text } = await pages.get(
    `/usage?by=workspace&from=${day(2)}&to=${day(-1)}&per=day&against=${day(4)}`,
  );
  const rows = await bench.sql<{ id: string; now: number; before: number }>(
    `SELECT workspace_name AS id, sum(traces) FILTER (WHERE usage_date >= $1::date)::float8 AS now,
            sum(traces) FILTER (WHERE usage_date < $1::date)::float8 AS before
     FROM reporting.fct_usage_workspace_daily WHERE usage_date >= $2::date AND usage_date < $3::date GROUP BY 1`,
    [day(2), day(4), day(0)],
  );
  const shown = rowsOf(text).slice(1, -1);
  expect(shown.length).toBe(rows.length);
  for (const { id, now, before } of rows) {
    const change = shown.find(([title = ""]) => title.startsWith(id))?.at(-2);
    expect(change).toContain(`${now < before ? "−" : "+"}${Math.abs(now - before).toLocaleString("en-US")} `);
  }
  expect(textOf(text)).toMatch(/% without today, against/);
  expect(textOf(text)).toContain("Changes are those of the days before it.");
});

test("each day of two weeks or more stands before the same weekday of the earlier range", async () => {
  const bench = await setupUsage({ days: 31, gapAgo: 1 });
  const pages = await setupPages(bench);
  const day = (ago: number) => dayOf(bench.today - ago * DAY_MS);
  const { text } = await pages.get(`/usage?from=${day(14)}&to=${day(0)}&per=day&against=${day(30)}`);
  expect(textOf(text)).toContain("moved by 2 days so that weekdays match");
  const counts = await bench.sql<{ day: string; traces: number }>(
    "SELECT usage_date::text AS day, sum(traces)::integer AS traces FROM reporting.fct_usage_workspace_daily GROUP BY 1",
  );
  const said = new Map(counts.map((one) => [one.day, one.traces.toLocaleString("en-US")]));
  const bars = [...text.matchAll(/<rect class="hit"[^>]*data-at="([^"]*)"[^>]*><title>([^<]*)</g)];
  const compared = bars.flatMap(([, at = "", title = ""]) => {
    const [, early, traces] = /\n(\d{4}-\d\d-\d\d): ([\d,]+)$/.exec(title) ?? [];
    if (early === undefined) return [];
    expect(traces).toBe(said.get(early));
    return [(Date.parse(at) - Date.parse(early)) / DAY_MS];
  });
  expect([bars.length, compared]).toEqual([14, Array(12).fill(14)]);
});

test("any earlier range is compared with, and an id is found by a part of its name", async () => {
  const bench = await setupUsage({ days: DAYS, gapAgo: 4 });
  const pages = await setupPages(bench);
  const day = (ago: number) => dayOf(bench.today - ago * DAY_MS);
  const address = `by=project&from=${day(2)}&to=${day(0)}&per=day`;
  const grown = async (against: number) => {
    const lines: string[][] = parse((await pages.get(`/usage.csv?${address}&against=${day(against)}`)).text);
    const total = lines.at(-1) ?? [];
    expect(total.slice(11, 13)).toEqual([day(against), day(against - 2)]);
    return [Number(total[6]), Number(total[13])];
  };
  // Between them lies a day that is not loaded, which is of neither.
  for (const against of [9, 7]) {
    const [sums] = await bench.sql<{ now: string; before: string }>(
      `SELECT sum(traces) FILTER (WHERE usage_date >= $1::date AND usage_date < $2::date) AS now,
              sum(traces) FILTER (WHERE usage_date >= $3::date AND usage_date < $4::date) AS before
       FROM reporting.fct_usage_project_daily`,
      [day(2), day(0), day(against), day(against - 2)],
    );
    expect(await grown(against)).toEqual([Number(sums?.now), Number(sums?.before)]);
  }
  // A form names the last day, and leads to the same.
  const byForm = `by=project&from=${day(2)}&until=${day(1)}&per=day`;
  expect(rowsOf((await pages.get(`/usage?${byForm}`)).text)).toEqual(
    rowsOf((await pages.get(`/usage?${address}`)).text),
  );
  for (const until of ["2026-02-30", "March 5", "x"])
    expect(await refusalOf(pages, `/usage?from=${day(2)}&until=${until}`)).toBe("400 query_invalid");
  const page = await pages.get(`/usage?${address}&against=${day(9)}`);
  expect(textOf(page.text)).toContain(`grey line: ${day(9)} to ${day(8)}`);
  const overlapping = await pages.get(`/usage?${address}&against=${day(3)}`);
  expect(overlapping.status).toBe(400);
  expect(textOf(overlapping.text)).toContain(`Compare with days from ${day(4)} on, or from an earlier day.`);

  const all = rowsOf(page.text).slice(1, -1);
  const [name = ""] = (all[3]?.[0] ?? "").split(" ");
  const found = await pages.get(`/usage?${address}&find=${encodeURIComponent(name.toUpperCase())}`);
  const listed = rowsOf(found.text).slice(1);
  const named = listed.filter(([title = ""]) => title.toLowerCase().includes(name.toLowerCase()));
  expect(named.length).toBeGreaterThan(0);
  expect(
    listed.filter((row) => !named.includes(row)).map(([title = ""]) => title.replace(/:.*/, "")),
  ).toEqual(["The rest", "Total"]);
  expect(listed.at(-1)?.[1]).toBe(rowsOf(page.text).at(-1)?.[1]);
  // More lines are shown where that is no page of a million figures.
  expect(rowsAllowed({ range: { from: day(92), to: day(0) }, per: "day" })).toEqual([20, 100, 500]);
  expect(rowsAllowed({ range: { from: day(31), to: day(0) }, per: "hour" })).toEqual([20]);
  expect((await pages.get(`/usage?${address}&rows=500`)).status).toBe(200);
  const none = await pages.get(`/usage?${address}&find=no such project`);
  expect(textOf(none.text)).toContain("No project has “no such project” in its name.");
});

test("costs by each dimension are those of the views to the last digit, and unpriced usage is named", async () => {
  const bench = await setupUsage({ days: DAYS, gapAgo: 4 });
  const pages = await setupPages(bench);
  const client = await connect(bench.databaseUrl);
  expect(textOf((await pages.get("/usage?measure=cost")).text)).toContain("No price is stored");
  const change = dayOf(bench.today - 5 * DAY_MS);
  await enterPrices(bench.store, [
    { unitPrice: "0.0005", from: dayOf(bench.dataStart + DAY_MS), to: change },
    { unitPrice: "0", from: change },
    { unitPrice: "0.0000000007", from: change, fromQuantity: 1_000 },
    { sku: "retention", unitPrice: "3.3", currency: "EUR", from: change },
  ]);
  const range = { from: dayOf(bench.dataStart), to: dayOf(bench.today) };
  for (const by of ["workspace", "user"]) {
    for (const currency of ["EUR", "USD"]) {
      const address = `by=${by}&from=${range.from}&to=${range.to}&measure=cost&currency=${currency}`;
      const page = await pages.get(`/usage?${address}`);
      const { rows } = await client.query(
        `SELECT trim_scale(sum(estimated_cost))::text AS total FROM ${inSchema(`fct_cost_${by}_daily`)}
         WHERE source_id = 'default' AND usage_date >= $1::date AND usage_date < $2::date AND currency = $3`,
        [range.from, range.to, currency],
      );
      const shown = rowsOf(page.text);
      const exact = /title="([\d,.]+)"/.exec(page.text.split("<tfoot>")[1] ?? "")?.[1];
      expect(exact?.replaceAll(",", ""), `${by} ${currency}`).toBe(rows[0].total);
      expect(numberOf(shown.at(-1)?.[1]?.replace("at least ", "") ?? "")).toBeCloseTo(
        Number(rows[0].total),
        2,
      );
      expect(textOf(page.text)).toContain("have no valid price");
      // What is not priced is neither nothing nor proved.
      expect(shown.at(-1)?.[1]).toMatch(/^at least /);
      expect(textOf(page.text)).toContain(`${range.from} no price ○ no price`);
      const file: string[][] = parse((await pages.get(`/usage.csv?${address}`)).text);
      expect(file.at(-1)?.[7]).toBe(rows[0].total);
      const [, statement = ""] = /<pre><code>(.*?)<\/code>/s.exec(page.text) ?? [];
      const asked = (await client.query(textOf(statement))).rows;
      const [top = []] = shown.slice(1);
      expect(
        asked.some(({ estimated_cost: cost }) => Math.abs(Number(cost) - numberOf(top[1] ?? "")) <= 0.005),
      ).toBe(true);
    }
  }
});

test("a viewer sees no address of a user, on the page, in the file and in the statement", async () => {
  const bench = await setupUsage({ days: DAYS, gapAgo: 4 });
  const pages = await setupViewer(bench);
  for (const address of [
    "/usage?by=user",
    "/usage.csv?by=user",
    "/usage.csv?by=user&table=time",
    "/usage?by=user&per=month",
  ]) {
    const { status, text } = await pages.get(address);
    expect(status).toBe(200);
    expect(text).not.toContain("@");
    expect(text).toMatch(/user [0-9a-f]{8}/);
  }
  expect((await pages.get("/usage?by=user")).text).toContain("fct_usage_user_daily_masked");
});

test("what cannot be asked for is said, and leads on", async () => {
  const bench = await setup();
  const pages = await setupPages(bench);
  await bench.open();
  for (const [query, status, said] of [
    ["source=other", 404, "is not a known source"],
    ["workspace=nobody", 404, "is not a known workspace"],
    ["from=2026-13-01", 400, "it is not a day such as 2026-03-01"],
    ["from=2026-03-05&to=2026-03-05", 400, "leaves no day"],
    ["by=team", 400, "it is not one of workspace, project, user, api_key"],
    ["month=2026-00", 400, "it is not a month"],
    ["by=<script>alert(1)</script>", 400, "it is not one of"],
    ["from=2999-01-01&to=2999-02-01", 200, "lies in the future"],
    ["from=1999-01-01&to=1999-02-01", 200, "Usage of default begins on"],
  ] as const) {
    const page = await pages.get(`/usage?${query}`);
    expect([query, page.status]).toEqual([query, status]);
    expect(textOf(page.text)).toContain(said);
    expect(page.text).not.toContain("<script>alert");
    expect((await pages.get(`/usage.csv?${query}`)).status).toBe(status);
  }
  const long = textOf((await pages.get(`/usage?from=2020-01-01&per=hour`)).text);
  expect(long).toContain("begins on");
});

test("long-lived traces and each measure of deployments are counted by themselves, as in their views", async () => {
  const bench = await setupUsage({ days: DAYS, gapAgo: 4 });
  const pages = await setupPages(bench);
  const client = await connect(bench.databaseUrl);
  const [from, to] = [dayOf(bench.dataStart), dayOf(bench.today)];
  const ask = (measure: string, by: string, path = "/usage") =>
    pages.get(`${path}?measure=${measure}&by=${by}&from=${from}&to=${to}&per=day`);
  const nothing = await ask("agent_runs", "project");
  expect(textOf(nothing.text)).toContain("No agent runs of default are loaded, which is not zero.");
  expect((await ask("agent_runs", "project", "/usage.csv")).status).toBe(404);

  const { workspaces } = bench.standin.organisation;
  const start = dayOf(bench.dataStart + 2 * DAY_MS);
  const [{ sourceId } = { sourceId: 0 }] = await bench.sql<{ sourceId: number }>(
    `SELECT source_id AS "sourceId" FROM usage.source`,
  );
  const begun = { meter: "deployments", state: "available", evidence: "test", startsOn: start } as const;
  await learnMeter(bench.store.db, { sourceId, ...begun });
  for (const groupBy of ["workspace", "project", "user"] as const) {
    for (const { id } of workspaces.slice(0, 2)) {
      const answer = { sourceId, groupBy, workspaceId: id };
      const ids = groupBy === "workspace" ? [id] : [`${id.slice(0, -2)}0a`, ""];
      await loadRows(bench.store, {
        ...{ ...answer, meter: "longlived", window: windowOf("day", from, to) },
        rows: ids.map((one, n) => [start, one, 3 + n, "ada"] as const),
      });
      await loadDeploymentRows(bench.store, {
        // One of the workspaces lacks its last day.
        ...{
          ...answer,
          window: windowOf("day", start, id === workspaces[0]?.id ? to : dayOf(bench.today - DAY_MS)),
        },
        rows: ids.map((one, n) => [start, one, [5 + n, 7, 9_000], "ada"] as const),
      });
    }
  }
  const views: readonly (readonly [measure: string, by: string, view: string, column: string])[] = [
    ["longlived", "workspace", "fct_usage_workspace_by_tier_daily", "traces"],
    ["longlived", "user", "fct_usage_user_by_tier_daily", "traces"],
    ["nodes_executed", "project", "fct_deployment_usage_deployment_daily", "nodes_executed"],
    ["agent_runs", "user", "fct_deployment_usage_user_daily", "agent_runs"],
    ["agent_uptime_seconds", "workspace", "fct_deployment_usage_workspace_daily", "agent_uptime_seconds"],
  ];
  for (const [measure, by, view, column] of views) {
    const where = measure === "longlived" ? "AND trace_tier = 'longlived'" : "";
    const { rows } = await client.query<{ total: string; whole: boolean }>(
      `SELECT sum(${column})::text AS total, bool_and(${column} IS NOT NULL) AS whole FROM ${inSchema(view)} WHERE usage_date >= $1::date AND usage_date < $2::date ${where}`,
      [from, to],
    );
    const page = await ask(measure, by);
    expect(page.status, measure).toBe(200);
    const total = rowsOf(page.text).at(-1) ?? [];
    expect(numberOf(total[1] ?? ""), `${measure} by ${by}`).toBe(Number(rows[0]?.total));
    expect(total[1]?.startsWith("at least"), `${measure}: ${total[1]}`).toBe(!rows[0]?.whole);
    expect(page.text).toContain(`<option value="${measure}" selected>`);
    expect(textOf(page.text)).toContain(`FROM ${inSchema(view)} WHERE source_id`);
    const file = await ask(measure, by, "/usage.csv");
    const lines = parse(file.text, { columns: true }) as Record<string, string>[];
    const name = measure === "longlived" ? "longlived_traces" : measure;
    expect(Number(lines.at(-1)?.[`${name}_loaded`]), measure).toBe(Number(rows[0]?.total));
    const statement = textOf(/<pre><code>(.*?)<\/code>/s.exec(page.text)?.[1] ?? "");
    const asked = await client.query(statement);
    expect(
      asked.rows.reduce((sum, row) => sum + Number(row[column] ?? 0), 0),
      statement,
    ).toBe(Number(rows[0]?.total));
  }
  const byDeployment = textOf((await ask("nodes_executed", "project")).text);
  expect(byDeployment).toContain("By deployment,");
  expect(byDeployment).toContain(`Nodes executed of default begins on ${start}.`);
  expect(byDeployment).not.toContain("See its coverage");
});

test("beside final stands whether it is proved, on the page and in the files", async () => {
  const bench = await setup({ days: DAYS, hourlyForMs: 8 * DAY_MS });
  await bench.sync();
  const pages = await setupPages(bench);
  const end = bench.today - 4 * DAY_MS;
  const range = { start: end - 3 * DAY_MS, end };
  const states = async (per: "day" | "hour") => {
    const asked = `by=project&from=${dayOf(range.start)}&to=${dayOf(range.end)}&per=${per}`;
    const page = rowsOf((await pages.get(`/usage?${asked}`)).text).map((row) => row[2]?.replace(/^\W+/, ""));
    const file: string[][] = parse((await pages.get(`/usage.csv?${asked}&table=time`)).text);
    const column = file[0]?.indexOf("state") ?? -1;
    return { sums: new Set(page.slice(1)), course: new Set(file.slice(1).map((row) => row[column])) };
  };
  const [unproved, proved] = ["final, not proved", "final and proved"];
  const only = (word: string) => ({ sums: new Set([word]), course: new Set([word]) });
  expect([await states("day"), await states("hour")]).toEqual([only(unproved), only(unproved)]);
  // A proof of a part of it proves no sum.
  await bench.reconcile({ range: { ...range, end: range.start + DAY_MS } });
  expect(await states("day")).toEqual({ sums: new Set([unproved]), course: new Set([unproved, proved]) });
  await bench.reconcile({ range });
  expect([await states("day"), await states("hour")]).toEqual([only(proved), only(unproved)]);
  await bench.reconcile({ range, stride: "hour" });
  expect(await states("hour")).toEqual(only(proved));
});

test("one day is shown by hour where its hours are kept, and by day where they are not", async () => {
  const bench = await setup({ days: DAYS, hourlyForMs: 3 * DAY_MS });
  await bench.sync();
  const pages = await setupPages(bench);
  const shown = async (ago: number) => {
    const [from, to] = [ago, ago - 1].map((days) => dayOf(bench.today - days * DAY_MS));
    const lines: string[][] = parse((await pages.get(`/usage.csv?from=${from}&to=${to}`)).text);
    return lines.at(-1)?.[8];
  };
  expect(await shown(1)).toBe("provisional");
  expect(await shown(5)).toBe("final, not proved");
});

test("what came since a month was closed is named beside its traces and beside its costs", async () => {
  await setUpMonth([0]);
  await load();
  await enterPrices(monthBench.store, [{ unitPrice: "0.5", from: "2020-01-01" }]);
  const pages = await setupPages(monthBench);
  // A cost by project is proved where the traces of its workspace and those by project are.
  const costs = `/usage?measure=cost&by=project&from=${dayOf(month.start)}&to=${dayOf(month.end)}`;
  await monthBench.reconcile({ range: month, groupings: ["workspace"] });
  expect(textOf((await pages.get(costs)).text)).not.toContain("final and proved");
  await monthBench.reconcile({ range: month });
  expect(textOf((await pages.get(costs)).text)).toContain("final and proved");
  expect((await close({ withoutCosts: false })).state).toBe("closed");
  const shown = async (measure: string) =>
    textOf(
      (await pages.get(`/usage?measure=${measure}&from=${dayOf(month.start)}&to=${dayOf(month.end)}`)).text,
    );
  for (const measure of ["traces", "cost"]) expect(await shown(measure)).not.toContain("was closed");
  const [{ closed = "" } = {}] = await monthBench.sql<{ closed: string }>(
    "SELECT to_char(sum(closed_traces), 'FM999,999,999') AS closed FROM reporting_detail.fct_month_close_by_dimension WHERE group_by = 'workspace'",
  );
  monthBench.standin.ledger.change(senderOn(monthBench.standin, 0, month.start + 5 * DAY_MS), 12);
  await load();
  const name = dayOf(month.start).slice(0, 7);
  const was = `${monthTitle({ start: name })} was closed with ${closed} traces of all workspaces.`;
  expect(await shown("traces")).toContain(
    `${was} 12 more are counted since then, and these figures are those of now.`,
  );
  expect(await shown("cost")).toContain(
    `What is asked for of ${monthTitle({ start: name })} costs 6.00 USD more now than when it was closed.`,
  );
  const before = `/usage?measure=traces&from=${dayOf(month.start - 5 * DAY_MS)}&to=${dayOf(month.start)}`;
  expect(textOf((await pages.get(before)).text)).not.toContain("was closed with");
});
