import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { createPrices } from "../../support/charges.ts";
import { numberIn } from "../../support/dom.ts";
import { setOwners } from "../../support/owners.ts";
import { type PagesBench, setupPages, setupViewer } from "../../support/pages.ts";
import { addSource, WORKSPACES } from "../../support/reporting.ts";
import { setupUsage, shareUsage } from "../../support/usage-bench.ts";

const HOSTILE = '<script>alert("owner")</script>';
const COST = "USD";

/** The month of the gap has other days, on whatever day the test runs. */
const FORTY = { days: 40, gapAgo: 8 };

/** Two projects with owners, one of them shared, in a month of which one day of a workspace is not loaded. */
const owned = shareUsage(FORTY, async ({ store, sql }) => {
  await createPrices(store, [{ unitPrice: "0.37" }]);
  const [{ ids }] = (await sql(
    "SELECT array_agg(DISTINCT project_id) AS ids FROM reporting.fct_usage_project_daily WHERE project_id <> '(none)'",
  )) as [{ ids: string[] }];
  const [shared, own] = ids as [string, string];
  await setOwners(
    store,
    `rules:
  - { project: ${shared}, shares: [{ owner: search, share: 0.3333 }, { owner: '${HOSTILE}', cost_center: CC-1, share: 0.6667 }] }
  - { project: ${own}, owner: search }`,
  );
});

async function setupOwners(bench = owned()) {
  const month = bench.gap.slice(0, 7);
  return { ...bench, pages: await setupPages(bench), month, address: `/owners?month=${month}` };
}

const tableOf = async (pages: PagesBench, path: string) => (await pages.read(path)).table("Cost by team");

test("the page offers rules before anything has an owner, names days that are not loaded by what divides traces, and masks users", async () => {
  const bench = await setupUsage({ days: 5, gapAgo: 2 });
  const pages = await setupPages(bench);
  // On the first day of a month, no day of it may have usage yet.
  const month = `/owners?month=${dayOf(bench.today - DAY_MS).slice(0, 7)}`;
  const parts = (await pages.read(month)).table("What it consists of");
  expect(parts.length).toBeGreaterThan(2);
  expect(parts[0]?.["Suggested rule"]).toMatch(/^- \{ project: \S+, owner: TEAM \}$/);

  await setOwners(bench.store, "divide_by: user\nrules:\n  - { owner: all }");
  const [{ email }] = (await bench.sql(
    "SELECT max(user_email) AS email FROM reporting_detail.dim_user JOIN reporting.fct_usage_user_daily USING (user_id)",
  )) as [{ email: string }];
  const address = `${month}&owner=all`;
  expect((await pages.get(address)).text).toContain(email);
  const viewer = await setupViewer(bench);
  expect((await viewer.read(address)).table("What it consists of").length).toBeGreaterThan(1);
  expect((await viewer.get(address)).text).not.toContain("@");

  await setOwners(bench.store, "rules: []");
  await bench.sql(
    `DELETE FROM usage.coverage WHERE scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE group_by = 'project')`,
  );
  const { notices } = await pages.read(month);
  expect(notices.filter((one) => one.includes("Not loaded by project"))).toHaveLength(1);
});

test("owners of a month have what the views say, and add up to all that is loaded", async () => {
  const { pages, sql, month, address } = await setupOwners();
  const rows = await tableOf(pages, address);
  const views = await sql<{ owner: string; traces: number; cost: number }>(
    `SELECT owner, sum(traces)::float8 AS traces,
            (SELECT sum(estimated_cost)::float8 FROM reporting.fct_cost_owner_daily c
             WHERE c.owner = u.owner AND to_char(c.usage_date, 'YYYY-MM') = '${month}') AS cost
     FROM reporting.fct_usage_owner_daily u WHERE to_char(usage_date, 'YYYY-MM') = '${month}' GROUP BY owner`,
  );
  expect(views).toHaveLength(3);
  for (const { owner, traces, cost } of views) {
    const title = owner === "(unallocated)" ? "No team" : owner;
    const row = rows.find((one) => one.Team === title);
    expect(row?.["Cost centre"], owner).toBe(owner === HOSTILE ? "CC-1" : "");
    expect(numberIn(row?.Traces), owner).toBeCloseTo(traces, 6);
    expect(numberIn(row?.[COST]), owner).toBeCloseTo(cost, 2);
  }
  const [all] = await sql<{ traces: number; cost: number }>(
    `SELECT sum(traces)::float8 AS traces,
            (SELECT sum(estimated_cost)::float8 FROM reporting.fct_cost_workspace_daily
             WHERE to_char(usage_date, 'YYYY-MM') = '${month}') AS cost
     FROM reporting.fct_usage_workspace_daily WHERE to_char(usage_date, 'YYYY-MM') = '${month}'`,
  );
  const total = rows.at(-1);
  expect(total?.Team).toBe("Total");
  expect(numberIn(total?.Traces)).toBe(all?.traces);
  expect(numberIn(total?.[COST])).toBeCloseTo(all?.cost ?? 0, 2);
  // A day is not loaded, so nothing is claimed of the sum.
  expect(total?.[COST]).toMatch(/^≥ /);
  // Rows are rounded so that they add up to the cent.
  const cents = rows.slice(0, -1).map((row) => Math.round(numberIn(row[COST]) * 100));
  expect(cents.reduce((sum, one) => sum + one)).toBe(Math.round(numberIn(total?.[COST]) * 100));
});

test("the file of owners has every digit of traces, and of costs what the views have", async () => {
  const { pages, sql, month } = await setupOwners();
  const records = async (measure: string) => {
    const { text } = await pages.get(`/usage.csv?by=owner&measure=${measure}&month=${month}`);
    return parse(text.replace(/^\uFEFF/, ""), { columns: true }) as Record<string, string>[];
  };
  const views = await sql<{ owner: string; center: string; traces: string; cost: string }>(
    `SELECT nullif(owner, '(unallocated)') AS owner, cost_center AS center, trim_scale(sum(traces))::text AS traces,
            (SELECT trim_scale(trunc(sum(estimated_cost), 10))::text FROM reporting.fct_cost_owner_daily c
             WHERE c.owner = u.owner AND c.cost_center = u.cost_center AND to_char(c.usage_date, 'YYYY-MM') = '${month}') AS cost
     FROM reporting.fct_usage_owner_daily u WHERE to_char(usage_date, 'YYYY-MM') = '${month}' GROUP BY u.owner, u.cost_center`,
  );
  const [traces, costs] = [await records("traces"), await records("cost")];
  for (const { owner, center, traces: counted, cost } of views) {
    const row = (all: Record<string, string>[]) =>
      all.find(
        ({ id, name }) =>
          id === (owner ?? "(none)") && (owner === null || name === center.replace("(none)", "")),
      );
    expect(row(traces)?.traces_loaded, owner ?? "").toBe(counted);
    expect(row(costs)?.estimated_cost_usd_loaded, owner ?? "").toBe(cost);
  }
});

test("an owner with two cost centres has a row for each", async () => {
  const { pages, store, sql, month, address } = await setupOwners(await setupUsage({ days: 7, gapAgo: 3 }));
  await setOwners(
    store,
    `rules: [{ shares: [{ owner: search, cost_center: CC-1, share: 0.25 }, { owner: search, cost_center: CC-2, share: 0.75 }] }]`,
  );
  const rows = await tableOf(pages, address);
  const views = await sql<{ owner: string; traces: number }>(
    `SELECT owner || ' ' || cost_center AS owner, sum(traces)::float8 AS traces FROM reporting.fct_usage_owner_daily
     WHERE to_char(usage_date, 'YYYY-MM') = '${month}' GROUP BY 1 ORDER BY 2 DESC`,
  );
  const shown = rows
    .slice(0, -1)
    .map((row) => ({ owner: `${row.Team} ${row["Cost centre"]}`, traces: numberIn(row.Traces) }));
  expect(shown.filter(({ traces }) => traces > 0)).toEqual(views.filter(({ traces }) => traces > 0));
});

test("an owner leads to what it is made of, which adds up to its row", async () => {
  const { pages, address } = await setupOwners();
  const all = await pages.read(address);
  const own = await pages.read(all.link("search"));
  const parts = own.table("What it consists of");
  const [owned, total] = [parts.slice(0, -1), parts.at(-1)];
  const rule = "Rule (line)";
  expect(owned.map((row) => row[rule]).sort()).toEqual(["2", "3"]);
  const sum = owned.reduce((added, row) => added + numberIn(row.Traces), 0);
  const row = all.table("Cost by team").find(({ Team }) => Team === "search");
  expect(sum).toBeCloseTo(numberIn(row?.Traces), 6);
  expect(numberIn(total?.Traces)).toBeCloseTo(sum, 4);
  expect((await pages.read(`${address}&owner=nobody`)).hasTable("What it consists of")).toBe(false);
});

test("budgets are those of all sources, each with what the view of budgets has", async () => {
  const bench = await setupUsage({ days: 40, gapAgo: 39 });
  await addSource(bench.store, { slug: "other", workspaceIds: [WORKSPACES[1]] });
  await setOwners(
    bench.store,
    `rules: [{ owner: all }]
budgets:
  - { traces: 10 }
  - { source: default, traces: 20 }
  - { source: other, owner: all, traces: 30 }`,
  );
  const month = dayOf(bench.today - 2 * DAY_MS).slice(0, 7);
  const budgets = (await (await setupPages(bench)).read(`/owners?month=${month}&source=*`)).table(
    "Budgets and limits",
  );
  const spent = await bench.sql<{ spent: number }>(
    `SELECT coalesce(sum(spent), 0)::float8 AS spent FROM reporting_detail.fct_budget_daily
     WHERE to_char(usage_date, 'YYYY-MM') = '${month}' GROUP BY budget_number ORDER BY budget_number`,
  );
  const named = budgets.map((row) => row["Budget or limit"] ?? "");
  const names = [
    /^Everything, all sources /,
    /^Everything of source default /,
    /^Owner all of source other /,
  ];
  expect(named.map((text, n) => names[n]?.test(text))).toEqual([true, true, true]);
  expect(named.map((text) => numberIn(/\d[\d,.]* traces of/.exec(text)?.[0]))).toEqual(
    spent.map((one) => one.spent),
  );
});

test("all sources are the sum of each, by team", async () => {
  const bench = await setupUsage({ days: 40, gapAgo: 39 });
  await createPrices(bench.store, [{ unitPrice: "0.37" }]);
  await addSource(bench.store, { slug: "other", workspaceIds: [WORKSPACES[1]] });
  await setOwners(bench.store, "rules: [{ owner: all, source: default }]");
  const month = dayOf(bench.today - 2 * DAY_MS).slice(0, 7);
  const pages = await setupPages(bench);
  const of = async (source: string) => tableOf(pages, `/owners?month=${month}&source=${source}`);
  const sum = new Map<string, number>();
  for (const row of [...(await of("default")), ...(await of("other"))])
    sum.set(row.Team ?? "", (sum.get(row.Team ?? "") ?? 0) + (numberIn(row[COST]) || 0));
  const all = new Map((await of("*")).map((row) => [row.Team ?? "", numberIn(row[COST])]));
  for (const [team, cost] of sum) expect(all.get(team) ?? 0, team).toBeCloseTo(cost, 1);
  const [{ cost }] = (await bench.sql(
    `SELECT sum(estimated_cost)::float8 AS cost FROM reporting.fct_cost_owner_daily WHERE to_char(usage_date, 'YYYY-MM') = '${month}'`,
  )) as [{ cost: number }];
  expect(all.get("Total")).toBeCloseTo(cost, 2);
});

test("a team's statement has its twelve months, its share, and a file of what it consists of", async () => {
  const { pages, sql, month, address } = await setupOwners();
  const { facts, bars, link } = await pages.read(`${address}&owner=search`);
  const [{ cost, all }] = (await sql(
    `SELECT sum(estimated_cost) FILTER (WHERE owner = 'search')::float8 AS cost, sum(estimated_cost)::float8 AS all
     FROM reporting.fct_cost_owner_daily WHERE to_char(usage_date, 'YYYY-MM') = '${month}'`,
  )) as [{ cost: number; all: number }];
  // Its cents make the table of all teams add up.
  expect(Math.abs(numberIn(facts["Estimated cost"]) - cost)).toBeLessThan(0.01);
  expect(numberIn(facts.Share)).toBeCloseTo((100 * cost) / all, 1);
  expect(bars).toHaveLength(12);
  // A day of the month is not loaded, so its bar claims nothing.
  expect(bars.at(-1)).toContain("not fully loaded");
  const file = await pages.get(link("Download Excel"));
  expect([file.status, String(file.headers["content-type"])]).toEqual([
    200,
    expect.stringContaining("spreadsheet"),
  ]);
});

test("a team costs the same cents in the table of all teams, on its page, and in the rows of what it consists of", async () => {
  const bench = await setupUsage({ days: 40, gapAgo: 39 });
  const projects = await bench.sql<{ id: string }>(
    "SELECT DISTINCT project_id AS id FROM reporting.fct_usage_project_daily WHERE project_id <> '(none)' ORDER BY 1",
  );
  const rules = projects.map(
    ({ id }, n) =>
      `  - { project: ${id}, shares: [{ owner: team-${n % 3}, share: 0.3777 }, { owner: team-${(n + 1) % 3}, share: 0.6223 }] }`,
  );
  await setOwners(bench.store, `rules:\n${rules.join("\n")}`);
  const pages = await setupPages(bench);
  const cents = (text: string | undefined) => Math.round(numberIn(text) * 100);
  const month = dayOf(bench.today - 2 * DAY_MS).slice(0, 7);
  // With some of these prices, a cent moves from one team to another so that the table adds up.
  for (const unitPrice of ["0.0037173", "0.0041291", "0.0073137", "0.0019733", "0.0057719", "0.0029531"]) {
    await createPrices(bench.store, [{ unitPrice }]);
    const all = await pages.read(`/owners?month=${month}`);
    const teams = all.table("Cost by team").filter(({ Team = "" }) => Team.startsWith("team-"));
    expect(teams.length).toBeGreaterThan(1);
    for (const { Team = "", [COST]: cost } of teams) {
      const own = await pages.read(all.link(Team));
      const parts = own.table("What it consists of");
      const sum = parts.slice(0, -1).reduce((added, row) => added + cents(row[COST]), 0);
      const shown = [cents(own.facts["Estimated cost"]), sum, cents(parts.at(-1)?.[COST])];
      expect([unitPrice, Team, ...shown]).toEqual([unitPrice, Team, ...Array(3).fill(cents(cost))]);
    }
  }
});

test("an owner's figure is final only where every day is: one without traces has no row, and may change", async () => {
  const bench = await setupUsage({ days: 40, gapAgo: 39 });
  await setOwners(bench.store, "rules: []");
  const pages = await setupPages(bench);
  const month = dayOf(bench.today - 2 * DAY_MS).slice(0, 7);
  const state = async () => {
    const { text } = await pages.get(`/usage.csv?by=owner&month=${month}`);
    const records = parse(text.replace(/^\uFEFF/, ""), { columns: true }) as Record<string, string>[];
    return records.at(-1)?.state;
  };
  await bench.sql("UPDATE usage.coverage SET final = true");
  expect(await state()).toMatch(/^(Proved|Final|Provisional)/);
  const quiet = "(SELECT min(entity_id) FROM usage.workspace)";
  await bench.sql(
    `UPDATE usage.coverage SET final = false WHERE scope_id IN (SELECT scope_id FROM usage.scope WHERE workspace_id = ${quiet} AND group_by = 'project')`,
  );
  expect(await state()).toMatch(/^Provisional$/);
  await bench.sql(
    `DELETE FROM usage.coverage WHERE scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE workspace_id = ${quiet} AND group_by = 'workspace')`,
  );
  expect(await state()).toBe("Missing");
});
