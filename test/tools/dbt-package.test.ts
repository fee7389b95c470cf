import type pg from "pg";
import { expect, test } from "vitest";
import { GROUPINGS, type GroupBy } from "../../src/core/domain/usage/record.ts";
import { failScopes } from "../../src/core/store/catalog/failures.ts";
import { scopesOf } from "../../src/core/store/catalog/scopes.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { createPrices } from "../support/charges.ts";
import { addSource, connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { dbtRun } from "./dbt/build.ts";
import { compileTest } from "./dbt/generic-tests.ts";
import { PROPERTIES, readPackage, render, TARGET } from "./dbt/package.ts";

const [ONE, TWO] = WORKSPACES;
const OTHER = "00000000-0000-4000-8000-000000000009";
/** Ids of a dimension: of two projects, users or keys. */
const idsOf = (groupBy: GroupBy, workspaceId: string) =>
  groupBy === "workspace" ? [workspaceId] : [`${groupBy}-1`, `${groupBy}-2`];

/** Tables that dbt makes have no key, so a publication of all tables would refuse their changes. */
async function connectAsDbt(url: string) {
  const client = await connectPlain(url);
  await client.query(
    `DROP PUBLICATION IF EXISTS cdc; CREATE SCHEMA ${TARGET} AUTHORIZATION usage_reader; SET ROLE usage_reader`,
  );
  return client;
}

test("each fact is a semantic model of its own, and no metric mixes two", () => {
  const models = PROPERTIES.flatMap(({ models = [] }) => models);
  const semantic = models.filter((model) => model.semantic_model?.enabled);
  const primary = semantic.flatMap(({ columns = [] }) =>
    columns.flatMap(({ entity }) => (entity?.type === "primary" ? entity.name : [])),
  );
  const facts = semantic.filter(({ metrics }) => metrics !== undefined);
  expect(facts.length).toBe(6);
  for (const { name, columns = [], metrics = [], primary_entity, agg_time_dimension } of facts) {
    // MetricFlow joins a foreign entity with a primary one alone: so no fact can be joined with another.
    const entities = columns.flatMap(({ entity }) => (entity === undefined ? [] : [entity]));
    expect(
      entities.map(({ type }) => type),
      name,
    ).toEqual(entities.map(() => "foreign"));
    for (const entity of entities)
      expect(
        primary.filter((one) => one === entity.name),
        name,
      ).toHaveLength(1);
    expect(primary).not.toContain(primary_entity);
    expect(columns.find((column) => column.name === agg_time_dimension)?.dimension?.type).toBe("time");
    // What must not be added up over is in the metric, not a dimension that may be left out.
    const dimensions = columns
      .filter(({ dimension }) => dimension !== undefined)
      .map((column) => column.name);
    expect(dimensions).not.toContain("group_by");
    expect(dimensions).not.toContain("currency");
    expect(
      metrics.every(({ type }) => type === "simple"),
      name,
    ).toBe(true);
  }
  const names = facts.flatMap(({ metrics = [] }) => metrics.map((metric) => metric.name));
  expect(new Set(names).size).toBe(names.length);
});

test("marts hold the final days of the views, and every later change of them reaches the next run", async () => {
  const { store, url, sourceId } = await setupSource();
  const load = loader(store, sourceId);
  for (const groupBy of GROUPINGS) {
    for (const workspaceId of WORKSPACES) {
      const [a, b = a] = idsOf(groupBy, workspaceId) as [string, string?];
      await load(
        groupBy,
        workspaceId,
        ["2026-03-01", "2026-03-05"],
        [
          ["2026-03-01", a, 5],
          ["2026-03-01", b, 7],
          ["2026-03-02", a, 11],
          ["2026-03-04", b, 13],
        ],
      );
    }
    // Loaded, and provisional: it may still change.
    await load(
      groupBy,
      ONE,
      ["2026-03-05", "2026-03-06"],
      [["2026-03-05", idsOf(groupBy, ONE)[0] as string, 17]],
      {
        settleAfterMs: 4e11,
      },
    );
  }
  const client = await connectAsDbt(url);

  const first = await dbtRun(client);
  const days = (of: string) => ["01", "02", "03", "04"].map((day) => `2026-03-${day} ${of}`);
  for (const groupBy of GROUPINGS)
    expect(first.get(`usage_etl__${groupBy}_daily`)).toEqual([...days("1"), ...days("2")].sort());
  await expectConserved(client);
  // 3 March was final without usage: it is known, and 0.
  const { rows } = await client.query(
    `SELECT project_id, traces FROM ${TARGET}.usage_etl__project_daily WHERE usage_date = '2026-03-03'`,
  );
  expect(rows).toEqual(WORKSPACES.map(() => ({ project_id: null, traces: "0" })));

  const [p1] = idsOf("project", ONE) as [string];
  // Restated: a count changed, another retired, on one day; on the next all of them retired.
  await load(
    "project",
    ONE,
    ["2026-03-01", "2026-03-05"],
    [
      ["2026-03-01", p1, 6],
      ["2026-03-04", p1, 13],
    ],
  );
  // An old day that was provisional is final now.
  await load("user", ONE, ["2026-03-05", "2026-03-06"], [["2026-03-05", "user-1", 18]]);
  // A final day failed.
  await failScopes(store, {
    scopeIds: await scopesOf(store.db, { sourceId, groupBy: "api_key", stride: "day", workspaceIds: [TWO] }),
    period: windowOf("day", "2026-03-02", "2026-03-03"),
    fetchToken: await drawFetchToken(store.db),
    ...({ state: "failed", code: "test", message: "test" } as const),
  });
  const second = await dbtRun(client);
  expect(Object.fromEntries(second)).toEqual({
    usage_etl__workspace_daily: [],
    usage_etl__project_daily: ["2026-03-01 1", "2026-03-02 1", "2026-03-04 1"],
    usage_etl__user_daily: ["2026-03-05 1"],
    usage_etl__api_key_daily: ["2026-03-02 2"],
  });
  await expectConserved(client);
  const { rows: restated } = await client.query(
    `SELECT usage_date, restatements, project_id, traces FROM ${TARGET}.usage_etl__project_daily
     WHERE workspace_id = '${ONE}' ORDER BY 1`,
  );
  expect(restated).toEqual([
    { usage_date: "2026-03-01", restatements: "2", project_id: p1, traces: "6" },
    { usage_date: "2026-03-02", restatements: "1", project_id: null, traces: "0" },
    { usage_date: "2026-03-03", restatements: "0", project_id: null, traces: "0" },
    { usage_date: "2026-03-04", restatements: "2", project_id: p1, traces: "13" },
  ]);

  const third = await dbtRun(client);
  expect([...third.values()].flat()).toEqual([]);
});

test("the package's tests pass, its metrics give the figures of the views, and a stalled source fails", async () => {
  const { store, url, sourceId } = await setupSource();
  const other = await addSource(store, {
    slug: "other",
    workspaceIds: [OTHER],
  });
  for (const groupBy of GROUPINGS) {
    for (const [source, workspaceId] of [
      [sourceId, ONE],
      [sourceId, TWO],
      [other, OTHER],
    ] as const) {
      const [a, b = a] = idsOf(groupBy, workspaceId) as [string, string?];
      await loader(store, source)(
        groupBy,
        workspaceId,
        ["2026-03-01", "2026-04-01"],
        [
          ["2026-03-01", a, 5],
          ["2026-03-02", b, 7],
          ["2026-03-03", groupBy === "workspace" ? a : "", 4],
        ],
      );
    }
  }
  const price = { unitPrice: "0.5", from: "2026-03-02" };
  const prices = ["USD", "EUR"].map((currency) => ({ ...price, sku: `traces ${currency}`, currency }));
  await createPrices(store, prices);
  const client = await connectAsDbt(url);
  await dbtRun(client);
  const run = async (sql: string) => (await client.query(sql)).rows;

  let tested = 0;
  for (const { name, columns = [], data_tests = [] } of PROPERTIES.flatMap(({ models = [] }) => models)) {
    const relation = `${TARGET}.${name}`;
    const all = [
      ...data_tests.map((one) => ({ one, tested: { relation } })),
      ...columns.flatMap((column) =>
        (column.data_tests ?? []).map((one) => ({ one, tested: { relation, column: column.name } })),
      ),
    ];
    for (const { one, tested: what } of all) {
      expect(await run(compileTest(one, what)), `${JSON.stringify(one)} of ${name}`).toEqual([]);
      tested++;
    }
    if (columns.length > 0)
      await run(`SELECT ${columns.map((column) => column.name).join(", ")} FROM ${relation} LIMIT 1`);
  }
  expect(tested).toBeGreaterThan(40);

  // What MetricFlow makes of a simple metric without dimensions.
  const metrics: Record<string, string> = {};
  for (const { name: model, metrics: of = [] } of PROPERTIES.flatMap(({ models = [] }) => models)) {
    for (const { name, agg, expr } of of) {
      const aggregate = agg === "count_distinct" ? `count(DISTINCT ${expr})` : `${agg}(${expr})`;
      metrics[name] = (
        await run(`SELECT trim_scale(${aggregate}) AS value FROM ${TARGET}.${model}`)
      )[0]?.value;
    }
  }
  expect(metrics).toEqual({
    usage_traces: "48",
    usage_project_traces: "48",
    usage_user_traces: "48",
    usage_api_key_traces: "48",
    // Of each source its own.
    usage_active_projects: "4",
    usage_active_users: "4",
    usage_active_api_keys: "4",
    usage_unattributed_project_traces: "12",
    usage_unattributed_user_traces: "12",
    usage_unattributed_api_key_traces: "12",
    usage_estimated_cost_usd: "16.5",
    usage_estimated_cost_eur: "16.5",
  });

  const singular = (path: string, vars = {}) => run(render(readPackage(path), { vars }).sql);
  expect(await singular("tests/marts_equal_the_views.sql")).toEqual([]);
  expect(await singular("tests/every_source_is_fresh.sql")).toEqual([]);
  expect(await singular("tests/usage_has_a_price.sql")).toEqual(
    [ONE, TWO, OTHER].map((id) => expect.objectContaining({ workspace_id: id, usage_date: "2026-03-01" })),
  );
  const config = PROPERTIES.flatMap(({ sources = [] }) => sources.flatMap(({ tables }) => tables)).find(
    ({ name }) => name === "data_freshness",
  )?.config;
  const age = async (vars = {}) => {
    const { sql } = render(config?.loaded_at_query as string, { this: "reporting.data_freshness", vars });
    return Number((await run(`SELECT extract(epoch FROM now() - (${sql})) / 3600 AS hours`))[0]?.hours);
  };
  expect(await age()).toBeLessThan(1);

  // Both: a mart that lost a row, and one source of two that stalls for two days.
  await client.query("RESET ROLE");
  await client.query(
    `DELETE FROM ${TARGET}.usage_etl__user_daily WHERE source_id = 'other' AND usage_date = '2026-03-02'`,
  );
  await client.query(`
    UPDATE usage.coverage SET fetched_at = now() - interval '2 days'
    FROM usage.trace_scope s JOIN usage.source src USING (source_id)
    WHERE coverage.scope_id = s.scope_id AND src.slug = 'other' AND s.group_by = 'user'`);
  expect(await singular("tests/marts_equal_the_views.sql")).toEqual([
    expect.objectContaining({ group_by: "user", source_id: "other", traces: "16", mart_traces: "9" }),
  ]);
  expect(await singular("tests/every_source_is_fresh.sql")).toEqual([
    expect.objectContaining({ source_id: "other", group_by: "user" }),
  ]);
  expect(await age()).toBeGreaterThan(Number(config?.freshness.error_after.count));
  const onlyDefault = { usage_etl_sources: ["default"] };
  expect(await singular("tests/every_source_is_fresh.sql", onlyDefault)).toEqual([]);
  expect(await age(onlyDefault)).toBeLessThan(1);
  // A source that was never loaded has no time at all.
  await addSource(store, { slug: "silent", workspaceIds: ["00000000-0000-4000-8000-000000000008"] });
  expect(await singular("tests/every_source_is_fresh.sql", { usage_etl_sources: ["silent"] })).toEqual([
    expect.objectContaining({ source_id: "silent", fetched_at: null }),
  ]);
});

type Rows = (readonly [day: string, id: string, traces: number])[];

/** Loads final days of a source, unless they are told to settle later. */
function loader(store: Store, sourceId: number) {
  return async (
    groupBy: GroupBy,
    workspaceId: string,
    [from, to]: readonly [string, string],
    rows: Rows,
    options: { settleAfterMs?: number } = {},
  ) => {
    const window = windowOf("day", from, to);
    await loadRows(store, { sourceId, workspaceId, groupBy, window, rows, ...options });
  };
}

/** Each mart has, day by day and id by id, the final figures of its view, and no other days. */
async function expectConserved(client: pg.Client): Promise<void> {
  for (const [groupBy, id] of [
    ["workspace", "workspace_id"],
    ["project", "project_id"],
    ["user", "user_id"],
    ["api_key", "api_key_short_key"],
  ]) {
    const figures = (from: string) =>
      `SELECT source_id, usage_date, workspace_id, ${id} AS id, traces FROM ${from} AND traces > 0 ORDER BY 1, 2, 3, 4`;
    const mart = await client.query(figures(`${TARGET}.usage_etl__${groupBy}_daily WHERE true`));
    const view = await client.query(figures(`reporting.fct_usage_${groupBy}_daily WHERE is_final`));
    expect(mart.rows).toEqual(view.rows);
    expect(view.rows.length, groupBy).toBeGreaterThan(3);
  }
}
