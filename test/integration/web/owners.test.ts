import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import { daysText } from "../../../src/domain/months/month.ts";
import { addDays, addMonths, dayOf, daysBetween, monthStart } from "../../../src/domain/time/days.ts";
import { DAY_MS } from "../../../src/domain/time/stride.ts";
import { enterPrices } from "../../support/charges.ts";
import { setOwners } from "../../support/owners.ts";
import { refusalOf, setupPages, setupViewer, textOf } from "../../support/pages.ts";
import { addSource, WORKSPACES } from "../../support/reporting.ts";
import { setupUsage } from "../../support/usage-bench.ts";

const HOSTILE = '<script>alert("owner")</script>';

/** Cells of each row of the body and the foot of a table, without markup and what a phone shows in place of a column. */
function rowsOf(page: string, label: string): string[][] {
  const [, table = ""] =
    new RegExp(`aria-label="${label}"><table.*?</thead>(.*?)</table>`, "s").exec(
      page.replaceAll(/<small class="on-phone">.*?<\/small>/gs, ""),
    ) ?? [];
  return [...table.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = ""]) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = ""]) => textOf(cell)),
  );
}

const numberOf = (text = "") => Number(text.replace(/[^\d.]/g, ""));

test("owners of a month add up to its total, what nobody owns comes first, and each leads to what it is made of", async () => {
  const bench = await setupUsage({ days: 40, gapAgo: 3 });
  const { store, sql } = bench;
  const pages = await setupPages(bench);
  const month = dayOf(bench.today - 5 * DAY_MS).slice(0, 7);
  const address = `/owners?month=${month}`;

  // Before anything is applied: what to do, and what there is to give to somebody.
  const first = await pages.get(address);
  expect(first.status).toBe(200);
  expect(textOf(first.text)).toContain("Nothing has an owner yet.");
  const parts = rowsOf(first.text, "What it is made of");
  expect(parts.length).toBeGreaterThan(2);
  expect(parts[0]?.at(-1)).toMatch(/^- \{ project: \S+, owner: TEAM \}$/);

  await enterPrices(store, [{ unitPrice: "0.37" }]);
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
  const page = await pages.get(address);
  expect(page.text).not.toContain(HOSTILE);
  const rows = rowsOf(page.text, "Owners");
  expect(rows.map(([owner]) => owner)).toEqual([
    "(unallocated)",
    expect.anything(),
    expect.anything(),
    "Total",
  ]);
  expect(rows.map(([owner]) => owner)).toEqual(expect.arrayContaining(["search", HOSTILE]));
  const [sums] = (await sql(
    `SELECT sum(traces)::integer AS traces, count(*) FILTER (WHERE traces IS NULL)::integer AS missing
     FROM reporting.fct_usage_workspace_daily WHERE to_char(usage_date, 'YYYY-MM') = '${month}'`,
  )) as { traces: number; missing: number }[];
  const [cost] = (await sql(
    `SELECT sum(estimated_cost)::float AS cost FROM reporting.fct_cost_workspace_daily WHERE to_char(usage_date, 'YYYY-MM') = '${month}'`,
  )) as { cost: number }[];
  expect(numberOf(rows.at(-1)?.[2])).toBe(sums?.traces);
  expect(numberOf(rows.at(-1)?.[3])).toBeCloseTo(Number(cost?.cost), 2);
  const added = (column: number) => rows.slice(0, -1).reduce((sum, row) => sum + numberOf(row[column]), 0);
  expect(added(2)).toBeCloseTo(Number(sums?.traces), 6);
  expect(added(3)).toBeCloseTo(Number(cost?.cost), 1);
  expect(textOf(page.text)).toContain("1 day of a workspace is not loaded");

  // A day that is not loaded is a gap in the chart of costs, and leaves nothing to compare with.
  expect(page.text).toContain('<rect class="gap"');
  expect(page.text).not.toContain("Change of cost");
  // What owners have in two cost centres has the colour of the owner in the chart.
  await setOwners(
    store,
    `rules:
  - { project: ${shared}, shares: [{ owner: search, cost_center: CC-1, share: 0.5 }, { owner: search, cost_center: CC-2, share: 0.5 }] }
  - { project: ${own}, owner: ads }`,
  );
  const colours = [
    ...(await pages.get(address)).text.matchAll(/"swatch (\w+)"><\/span> <a[^>]*>(.*?)<\/a>/g),
  ].map(([, colour, owner]) => [textOf(owner ?? ""), colour].join(" "));
  expect(colours).toHaveLength(4);
  expect(new Set(colours).size).toBe(3);
  // What costs nothing has an owner no less.
  await enterPrices(store, [{ unitPrice: "0" }]);
  expect(textOf((await pages.get(address)).text)).toMatch(/Without an owner ?\d+\.\d % of the traces/);
  await enterPrices(store, [{ unitPrice: "0.37" }]);
  await setOwners(
    store,
    `rules:
  - { project: ${shared}, shares: [{ owner: search, share: 0.3333 }, { owner: '${HOSTILE}', cost_center: CC-1, share: 0.6667 }] }
  - { project: ${own}, owner: search }`,
  );

  // The file has all digits.
  const file = await pages.get(`/owners.csv?month=${month}`);
  expect(file.headers["content-disposition"]).toBe(`attachment; filename="owners-default-${month}.csv"`);
  const records = parse(file.text.replace(/^\uFEFF/, ""), { columns: true }) as Record<string, string>[];
  expect(records).toEqual(
    expect.arrayContaining(
      (
        await sql(
          `SELECT owner, cost_center, trim_scale(sum(traces))::text AS traces FROM reporting.fct_usage_owner_daily
           WHERE to_char(usage_date, 'YYYY-MM') = '${month}' GROUP BY 1, 2`,
        )
      ).map((row) => expect.objectContaining(row)),
    ),
  );

  // What an owner has, and which line says so.
  const search = await pages.get(`${address}&owner=search`);
  const listed = rowsOf(search.text, "What it is made of");
  const [owned, whole] = [listed.slice(0, -1), listed.at(-1) ?? []];
  expect(owned.map((row) => row.at(-1)).sort()).toEqual(["2", "3"]);
  expect(numberOf(whole[1])).toBeCloseTo(
    owned.reduce((sum, row) => sum + numberOf(row[2]), 0),
    4,
  );
  expect(owned.reduce((sum, row) => sum + numberOf(row[2]), 0)).toBeCloseTo(
    numberOf(rows.find(([owner]) => owner === "search")?.[2]),
    6,
  );
  expect(textOf((await pages.get(`${address}&owner=nobody`)).text)).toContain(
    "nobody has nothing that is loaded in",
  );
  expect(await refusalOf(pages, "/owners?month=March")).toBe("400 query_invalid");
});

test("the month under way is compared by the days that are over", async () => {
  const bench = await setupUsage({ days: 70, gapAgo: 66 });
  await setOwners(bench.store, "rules: []");
  const today = dayOf(bench.today);
  const start = monthStart(today);
  const page = await (await setupPages(bench)).get(`/owners?month=${today.slice(0, 7)}`);
  const [row] = rowsOf(page.text, "Owners");
  // On the first day nothing is over.
  if (today === start) {
    expect(page.text).not.toContain("Change of");
    return;
  }
  const before = addMonths(start, -1);
  const until = [addDays(before, daysBetween({ from: start, to: today })), start].sort()[0] as string;
  const sumOf = (from: string, to: string) =>
    `(SELECT sum(traces) FROM reporting.fct_usage_workspace_daily WHERE usage_date >= '${from}' AND usage_date < '${to}')`;
  const [sums] = (await bench.sql(
    `SELECT ${sumOf(start, today)}::float8 AS now, ${sumOf(before, until)}::float8 AS before`,
  )) as { now: number; before: number }[];
  const { now, before: then } = sums as { now: number; before: number };
  expect(row?.at(-1)?.replace("−", "-")).toMatch(/^[+-]?\d/);
  expect(Number(row?.at(-1)?.replace("−", "-").replace(/[ %,]/g, ""))).toBeCloseTo(
    (100 * (now - then)) / then,
    0,
  );
  expect(textOf(page.text)).toContain(
    `The change is that of ${daysText({ from: start, to: today })} against ${daysText({ from: before, to: until })}.`,
  );
});

test("budgets are those of the chosen source and of all sources, and others are a link away", async () => {
  const bench = await setupUsage({ days: 40, gapAgo: 39 });
  await addSource(bench.store, { slug: "other", workspaceIds: [WORKSPACES[1]] });
  await setOwners(
    bench.store,
    `rules: [{ owner: all }]
budgets:
  - { traces: 10 }
  - { source: default, traces: 20 }
  - { source: other, owner: all, traces: 30 }
  - { source: unknown, traces: 40 }`,
  );
  const pages = await setupPages(bench);
  const month = dayOf(bench.today - 2 * DAY_MS).slice(0, 7);
  const shown = async (source: string) => {
    const { text } = await pages.get(`/owners?source=${source}&month=${month}`);
    const budgets = rowsOf(text, "Budgets").map(([of]) => of?.replace(/\s+/g, " "));
    return [...budgets, /Other sources have budgets of their own: [^.]*/.exec(textOf(text))?.[0].trim()];
  };
  expect(await shown("default")).toEqual([
    "Everything, all sources",
    "Everything of source default",
    "Other sources have budgets of their own: other",
  ]);
  expect(await shown("other")).toEqual([
    "Everything, all sources",
    "Owner all of source other",
    "Other sources have budgets of their own: default",
  ]);
});

test("page and file say final only where every day is: one without traces has no row, and may change", async () => {
  const bench = await setupUsage({ days: 40, gapAgo: 39 });
  await setOwners(bench.store, "rules: []");
  const pages = await setupPages(bench);
  const month = dayOf(bench.today - 2 * DAY_MS).slice(0, 7);
  const said = async () => {
    const page = textOf((await pages.get(`/owners?month=${month}`)).text);
    const file = await pages.get(`/owners.csv?month=${month}`);
    const [row] = parse(file.text.replace(/^\uFEFF/, ""), { columns: true }) as Record<string, string>[];
    return [
      /All of it is final|may still change|not loaded/.exec(page)?.[0],
      row?.is_final,
      row?.days_missing,
    ];
  };
  await bench.sql("UPDATE usage.coverage SET final = true");
  expect(await said()).toEqual(["All of it is final", "true", "0"]);
  const quiet = "(SELECT min(entity_id) FROM usage.workspace)";
  await bench.sql(
    `DELETE FROM usage.dated_record WHERE series_id IN (SELECT series_id FROM usage.series JOIN usage.scope USING (scope_id) WHERE workspace_id = ${quiet})`,
  );
  await bench.sql(
    `UPDATE usage.coverage SET final = false WHERE scope_id IN (SELECT scope_id FROM usage.scope WHERE workspace_id = ${quiet})`,
  );
  expect(await said()).toEqual(["may still change", "false", "0"]);
  // A day that is lost counts nowhere, and the sum says so.
  await bench.sql(
    `DELETE FROM usage.coverage WHERE scope_id IN (SELECT scope_id FROM usage.trace_scope WHERE workspace_id = ${quiet} AND group_by = 'workspace')`,
  );
  const [found, isFinal, missing] = await said();
  expect([found, isFinal, Number(missing) > 0]).toEqual(["not loaded", "false", true]);
  const page = await pages.get(`/owners?month=${month}`);
  expect(textOf((await pages.get(`/owners?month=${month}&owner=nobody`)).text)).toContain("not loaded in");
  expect(textOf(page.text)).toMatch(/Traces at least [\d,]+ /);
  expect(rowsOf(page.text, "Owners").at(-1)?.[1]).toMatch(/^at least [\d,]+$/);
});

test("a viewer sees no address of a user", async () => {
  const bench = await setupUsage({ days: 5, gapAgo: 1 });
  await setOwners(bench.store, "divide_by: user\nrules:\n  - { owner: all }");
  const month = dayOf(bench.today - DAY_MS).slice(0, 7);
  const [{ email }] = (await bench.sql(
    "SELECT max(user_email) AS email FROM reporting.fct_usage_user_daily",
  )) as [{ email: string }];
  const address = `/owners?month=${month}&owner=all`;
  expect((await (await setupPages(bench)).get(address)).text).toContain(email);
  const seen = await (await setupViewer(bench, {})).get(address);
  expect(rowsOf(seen.text, "What it is made of").length).toBeGreaterThan(1);
  expect(seen.text).not.toContain("@");
});
