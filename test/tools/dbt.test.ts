import { readFile } from "node:fs/promises";
import type pg from "pg";
import { expect, test } from "vitest";
import { GROUPINGS, type GroupBy } from "../../src/core/domain/usage/record.ts";
import { failScopes } from "../../src/core/store/catalog/failures.ts";
import { scopesOf } from "../../src/core/store/catalog/scopes.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { keyOf, listViews } from "../../src/core/store/db/views.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { dbtFiles } from "../support/dbt-sources.ts";
import { setupDemoDatabase } from "../support/demo-database.ts";
import { setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { notInstalled, type PYTHON } from "./counterparts.ts";
import { type Ran, SCHEMAS, setupReader, troubles } from "./dbt/reader.ts";

const DOCS = new URL("../../docs/dbt/", import.meta.url);
const [ONE, TWO] = WORKSPACES;
const idsOf = (groupBy: GroupBy, workspaceId: string) =>
  groupBy === "workspace" ? [workspaceId] : [`${groupBy}-1`, `${groupBy}-2`];
const ID = {
  workspace: "workspace_id",
  project: "project_id",
  user: "user_id",
  api_key: "api_key_short_key",
};

test("the committed files match the views, which have keys and comments", async () => {
  const { store } = await setupSource();
  const views = await listViews(store.db);
  for (const [path, made] of dbtFiles(views)) {
    const committed = await readFile(new URL(path, DOCS), "utf8").catch(() => "");
    expect(committed, "Run `npm run schema` and read the diff.").toBe(made);
  }
  for (const view of views) {
    const names = view.columns.map(({ name }) => name);
    expect(keyOf(view).length, `${view.name} has no "(key: ...)" in its comment`).toBeGreaterThan(0);
    expect(names, view.name).toEqual(expect.arrayContaining([...keyOf(view)]));
    for (const said of [view, ...view.columns])
      expect(said.comment, `${view.name}.${said.name}`).not.toBe("");
  }
});

test.for(["dbt", "dbt-old"] satisfies (keyof typeof PYTHON)[])(
  "a project that installs the package builds it with %s, and its metrics give the figures of the views",
  async (environment, { skip }) => {
    const absent = notInstalled(environment);
    if (absent !== undefined) return skip(absent);
    const { dbt, admin, read, metrics } = await setupReader(await setupDemoDatabase(), environment);
    for (const command of [["deps"], ["parse"]]) expect(troubles(await dbt(...command))).toEqual([]);

    const first = await dbt("build");
    expect(troubles(first)).toEqual([]);
    const tests = first.results.filter(({ kind }) => kind === "test");
    expect(tests.length).toBeGreaterThan(40);
    expect(tests.length).toBeLessThan(80);
    await expectConserved(admin);
    const second = await dbt("build", "--select", "package:usage_etl");
    expect(troubles(second)).toEqual([]);

    const { results, error } = await dbt("source", "freshness", "--select", "source:usage_etl.usage.*");
    expect([error, results.map(({ name, status }) => `${name} ${status}`)]).toEqual([
      null,
      ["data_freshness pass"],
    ]);

    expect(troubles(await dbt("docs", "generate"))).toEqual([]);
    const { nodes } = read("target/manifest.json") as { nodes: Record<string, Described> };
    const catalog = (read("target/catalog.json") as { nodes: Record<string, Described> }).nodes;
    const models = Object.entries(nodes).filter(([id]) => id.startsWith("model.usage_etl."));
    expect(models.length).toBeGreaterThan(15);
    for (const [id, { description, columns }] of models) {
      expect(description, id).not.toBe("");
      expect(Object.keys(columns).sort(), id).toEqual(Object.keys(catalog[id]?.columns ?? {}).sort());
      for (const [name, column] of Object.entries(columns))
        expect(column.description, `${id}.${name}`).not.toBe("");
    }

    if (environment !== "dbt") return;
    const masked = ["--target", "masked", "--vars", "usage_etl_masked: true"];
    const ofMasked = await dbt("build", ...masked);
    expect(troubles(ofMasked)).toEqual([]);
    expect(first.results.length - ofMasked.results.length).toBeLessThan(6);
    expect(troubles(await dbt("parse"))).toEqual([]);
    const names = Object.values(
      (read("target/semantic_manifest.json") as { metrics: { name: string }[] }).metrics,
    );
    expect(names.map(({ name }) => name).sort()).toEqual(Object.keys(METRICS).sort());
    const [head = [], ...rows] = metrics(Object.keys(METRICS));
    const { rows: expected } = await admin.query<Record<string, string | null>>(`
      SELECT month, ${Object.keys(METRICS).join(", ")}
      FROM (SELECT DISTINCT date_trunc('month', usage_date)::date::text AS month FROM reporting.fct_usage_workspace_daily WHERE is_final) m
      ${Object.entries(METRICS)
        .map(
          ([name, [value, from]]) =>
            `LEFT JOIN (SELECT date_trunc('month', usage_date)::date::text AS month, ${value} AS ${name} FROM ${from} GROUP BY 1) ${name}_ USING (month)`,
        )
        .join("\n")} ORDER BY 1`);
    expect(expected.length).toBeGreaterThan(9);
    const asNumbers = (values: (string | null | undefined)[]) => values.map((value) => Number(value ?? 0));
    expect(rows.map(([month = "", ...values]) => [month.slice(0, 10), ...asNumbers(values)])).toEqual(
      expected.map((row) => [row.month, ...asNumbers(head.slice(1).map((name) => row[name]))]),
    );
  },
);

interface Described {
  readonly description: string;
  readonly columns: Readonly<Record<string, { description: string }>>;
}

const METRICS: Readonly<Record<string, readonly [value: string, from: string]>> = {
  usage_traces: ["sum(traces)", "reporting.fct_usage_workspace_daily WHERE is_final"],
  ...Object.fromEntries(
    (["project", "user", "api_key"] as const).flatMap((groupBy) => {
      const view = `reporting.fct_usage_${groupBy}_daily WHERE is_final`;
      const id = ID[groupBy];
      const active = `count(DISTINCT (source_id, ${id})) FILTER (WHERE ${id} <> '(none)' AND traces > 0)`;
      return [
        [`usage_${groupBy}_traces`, ["sum(traces)", view]],
        [`usage_active_${groupBy}s`, [active, view]],
        [
          `usage_unattributed_${groupBy}_traces`,
          [
            "sum(unattributed_traces)",
            `reporting_detail.usage_unattributed_daily WHERE is_final AND group_by = '${groupBy}'`,
          ],
        ],
      ];
    }),
  ),
  ...Object.fromEntries(
    ["usd", "eur"].map((currency) => [
      `usage_estimated_cost_${currency}`,
      [
        "sum(estimated_cost)",
        `reporting.fct_cost_workspace_daily WHERE is_final AND currency = upper('${currency}')`,
      ],
    ]),
  ),
};

test("marts hold the final days of the views, every later change of them reaches the next run, and what stalls fails", async ({
  skip,
}) => {
  const absent = notInstalled("dbt");
  if (absent !== undefined) return skip(absent);
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
      { settleAfterMs: 4e11 },
    );
  }
  const { dbt, admin } = await setupReader(url, "dbt");
  await dbt("deps");
  const run = async () => {
    const { rows } = await admin.query("SELECT txid_current()::text AS now");
    expect(troubles(await dbt("run", "--select", "package:usage_etl"))).toEqual([]);
    return writtenSince(admin, rows[0].now);
  };

  const first = await run();
  const days = (of: string) => ["01", "02", "03", "04"].map((day) => `2026-03-${day} ${of}`);
  for (const groupBy of GROUPINGS) expect(first[groupBy]).toEqual([...days("1"), ...days("2")].sort());
  await expectConserved(admin);
  const { rows } = await admin.query(
    `SELECT project_id, traces FROM ${SCHEMAS.plain}.usage_etl__project_daily WHERE usage_date = '2026-03-03'`,
  );
  expect(rows).toEqual(WORKSPACES.map(() => ({ project_id: null, traces: "0" })));

  const [p1] = idsOf("project", ONE) as [string];
  await load(
    "project",
    ONE,
    ["2026-03-01", "2026-03-05"],
    [
      ["2026-03-01", p1, 6],
      ["2026-03-04", p1, 13],
    ],
  );
  await load("user", ONE, ["2026-03-05", "2026-03-06"], [["2026-03-05", "user-1", 18]]);
  await failScopes(store, {
    scopeIds: await scopesOf(store.db, { sourceId, groupBy: "api_key", stride: "day", workspaceIds: [TWO] }),
    period: windowOf("day", "2026-03-02", "2026-03-03"),
    fetchToken: await drawFetchToken(store.db),
    ...({ state: "failed", code: "test", message: "test" } as const),
  });
  expect(await run()).toEqual({
    workspace: [],
    project: ["2026-03-01 1", "2026-03-02 1", "2026-03-04 1"],
    user: ["2026-03-05 1"],
    api_key: [],
  });
  await expectConserved(admin);
  const { rows: restated } = await admin.query(
    `SELECT usage_date, restatements, project_id, traces FROM ${SCHEMAS.plain}.usage_etl__project_daily
     WHERE workspace_id = '${ONE}' ORDER BY 1`,
  );
  expect(restated).toEqual([
    { usage_date: "2026-03-01", restatements: "2", project_id: p1, traces: "6" },
    { usage_date: "2026-03-02", restatements: "1", project_id: null, traces: "0" },
    { usage_date: "2026-03-03", restatements: "0", project_id: null, traces: "0" },
    { usage_date: "2026-03-04", restatements: "2", project_id: p1, traces: "13" },
  ]);
  expect(Object.values(await run()).flat()).toEqual([]);

  const failed = ({ error, results }: Ran) => [
    error,
    results.filter(({ status }) => status !== "pass").map(({ name }) => name),
  ];
  const SINGULAR = ["test", "--select", "marts_equal_the_views", "every_source_is_fresh"];
  const FRESHNESS = ["source", "freshness", "--select", "source:usage_etl.usage.*"];
  expect(failed(await dbt(...SINGULAR))).toEqual([null, []]);
  await load("user", ONE, ["2026-03-05", "2026-04-01"], [["2026-03-05", "user-1", 18]]);
  await run();
  await admin.query(`DELETE FROM ${SCHEMAS.plain}.usage_etl__user_daily WHERE usage_date = '2026-03-02'`);
  await admin.query(`
    UPDATE usage.coverage SET fetched_at = now() - interval '2 days'
    FROM usage.trace_scope s WHERE coverage.scope_id = s.scope_id AND s.group_by = 'user'`);
  expect(failed(await dbt(...SINGULAR))).toEqual([null, ["every_source_is_fresh", "marts_equal_the_views"]]);
  expect((await dbt(...FRESHNESS)).results.map(({ status }) => status)).toEqual(["error"]);
  const others = ["--vars", "usage_etl_sources: [other]"];
  expect(failed(await dbt(...SINGULAR, ...others))).toEqual([null, []]);
  await admin.query(`
    INSERT INTO ${SCHEMAS.plain}.usage_etl__user_daily SELECT * FROM ${SCHEMAS.plain}.usage_etl__user_daily`);
  const [, doubled] = failed(await dbt("test", "--select", "usage_etl__user_daily"));
  expect(doubled).toContainEqual(expect.stringMatching(/^unique_usage_etl__user_daily/));
});

async function writtenSince(client: pg.Client, transaction: string): Promise<Record<string, string[]>> {
  const written: Record<string, string[]> = {};
  for (const groupBy of GROUPINGS) {
    const { rows } = await client.query<{ day: string }>(
      `SELECT DISTINCT usage_date || ' ' || right(workspace_id, 1) AS day FROM ${SCHEMAS.plain}.usage_etl__${groupBy}_daily
       WHERE xmin::text::bigint > $1::bigint ORDER BY 1`,
      [transaction],
    );
    written[groupBy] = rows.map(({ day }) => day);
  }
  return written;
}

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

async function expectConserved(client: pg.Client): Promise<void> {
  for (const groupBy of GROUPINGS) {
    const figures = (from: string) =>
      `SELECT source_id, usage_date, workspace_id, ${ID[groupBy]} AS id, traces FROM ${from} AND traces > 0 ORDER BY 1, 2, 3, 4`;
    const mart = await client.query(figures(`${SCHEMAS.plain}.usage_etl__${groupBy}_daily WHERE true`));
    const view = await client.query(figures(`reporting.fct_usage_${groupBy}_daily WHERE is_final`));
    expect(mart.rows).toEqual(view.rows);
    expect(view.rows.length, groupBy).toBeGreaterThan(3);
  }
}
