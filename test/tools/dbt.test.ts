import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { keyOf, listViews } from "../../src/core/store/db/views.ts";
import { createPrices } from "../support/charges.ts";
import { dbtKeyTest, dbtSources } from "../support/dbt-sources.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";
import { compileTest, whereOf } from "./dbt/generic-tests.ts";
import { PROPERTIES } from "./dbt/package.ts";

const DOCS = new URL("../../docs/", import.meta.url);

test("the committed files match the views", async () => {
  const { store } = await setupSource();
  const views = await listViews(store.db);
  for (const [path, made] of [
    ["dbt/models/sources.yml", dbtSources(views)],
    ["dbt/tests/usage_keys_are_unique.sql", dbtKeyTest(views)],
  ] as const) {
    const committed = await readFile(new URL(path, DOCS), "utf8").catch(() => "");
    expect(committed, "Run `npm run schema` and read the diff.").toBe(made);
  }
});

test("every view has a key, a comment, and a comment on each column", async () => {
  const { store } = await setupSource();
  for (const view of await listViews(store.db)) {
    const names = view.columns.map(({ name }) => name);
    expect(keyOf(view).length, `${view.name} has no "(key: ...)" in its comment`).toBeGreaterThan(0);
    expect(names, view.name).toEqual(expect.arrayContaining([...keyOf(view)]));
    for (const said of [view, ...view.columns])
      expect(said.comment, `${view.name}.${said.name}`).not.toBe("");
  }
});

test("the dbt tests pass on usage of every dimension with missing days, and fail on doubled rows", async () => {
  const { store, url, sourceId } = await setupSource();
  for (const groupBy of GROUPINGS) {
    for (const workspaceId of WORKSPACES) {
      const id = groupBy === "workspace" ? workspaceId : "00000000-0000-4000-8000-00000000000a";
      const load = (window: ReturnType<typeof windowOf>, bucket: string, traces: number) =>
        loadRows(store, { sourceId, workspaceId, groupBy, window, rows: [[bucket, id, traces, "a name"]] });
      await load(windowOf("day", "2026-03-01", "2026-03-03"), "2026-03-01", 3);
      await load(windowOf("day", "2026-03-01", "2026-03-03"), "2026-03-01", 4);
      await load(windowOf("hour", "2026-03-01T00:00Z", "2026-03-01T10:00Z"), "2026-03-01T03:00:00Z", 3);
    }
  }
  await createPrices(store, [{ unitPrice: "1" }, { sku: "retention", unitPrice: "1" }]);

  const client = await connectPlain(url, "usage_reader");
  const expand = (sql: string) =>
    sql.replaceAll(
      /\{\{ source\('usage(_detail)?', '(\w+)'\) \}\}/g,
      (_, detail = "", view) => `reporting${detail}.${view}`,
    );
  const keys = expand(await readFile(new URL("dbt/tests/usage_keys_are_unique.sql", DOCS), "utf8"));
  expect(keys).not.toContain("{{");
  expect((await client.query(keys)).rows).toEqual([]);
  const doubled = keys.replaceAll(
    /reporting(?:_detail)?\.\w+/g,
    "(SELECT * FROM $& UNION ALL SELECT * FROM $&) v",
  );
  const found = new Set((await client.query(doubled)).rows.map(({ view_name }) => view_name));
  expect([...found]).toEqual(
    expect.arrayContaining(["dim_user", "fct_usage_user_daily", "fct_usage_workspace_hourly"]),
  );
  // All of a large view would take minutes, and so would the records, whose key is a constraint.
  expect(keys).toMatch(
    /FROM reporting_detail\.fct_usage_by_id_hourly\nWHERE usage_hour >= now\(\) - interval '3 days'\nGROUP/,
  );
  expect(keys).not.toContain("usage_record");

  let tested = 0;
  for (const { name: view, columns } of PROPERTIES.flatMap(({ sources = [] }) =>
    sources.flatMap(({ tables }) => tables),
  )) {
    const quoted = columns.map(({ name, quote }) => (quote === true ? `"${name}"` : name));
    const tests = columns.flatMap(({ data_tests = [] }, i) =>
      data_tests.map((one) => ({ one, column: quoted[i] as string })),
    );
    // The usage here is older than the time that the tests look at: so they run over all of it, and their condition by itself.
    const where = [...new Set(tests.flatMap(({ one }) => whereOf(one) ?? [])), "true"].join(" AND ");
    await client.query(`SELECT FROM ${inSchema(view)} WHERE ${where} LIMIT 1`);
    // A copy: planning the view takes longer than the test.
    await client.query(
      `CREATE TEMPORARY TABLE ${view} AS SELECT ${quoted.join(", ")} FROM ${inSchema(view)}`,
    );
    for (const { one, column } of tests) {
      const broken = compileTest(one, { relation: `pg_temp.${view}`, column, everything: true });
      expect((await client.query(broken)).rowCount, `${JSON.stringify(one)} of ${view}.${column}`).toBe(0);
      tested++;
    }
  }
  expect(tested).toBeGreaterThan(150);
});
