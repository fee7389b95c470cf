import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { dbtKeyTest, dbtSources } from "../../src/cli/export/dbt-files.ts";
import { GROUPINGS } from "../../src/domain/usage/record.ts";
import { importPrices } from "../../src/pipeline/import-prices.ts";
import { keyOf, listViews } from "../../src/store/report/views.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";

const DBT = new URL("../../docs/dbt/", import.meta.url);

interface Sources {
  sources: {
    tables: { name: string; columns: { name: string; quote?: boolean; data_tests?: string[] }[] }[];
  }[];
}

test("the committed files match the views", async () => {
  const { store } = await setupSource();
  const views = await listViews(store.db);
  for (const [path, made] of [
    ["models/sources.yml", dbtSources(views)],
    ["tests/usage_keys_are_unique.sql", dbtKeyTest(views)],
  ] as const) {
    const committed = await readFile(new URL(path, DBT), "utf8").catch(() => "");
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
  const price = { sku: "traces", unitPrice: "1", currency: "USD", validFrom: "2026-01-01" };
  const lines = ["traces", "retention"].map((sku) => ({
    ...{ where: sku, price: { ...price, sku, validTo: null, source: null, workspace: null } },
  }));
  await importPrices(store, { file: "prices", lines, replace: false });

  const client = await connectPlain(url, "usage_reader");
  const expand = (sql: string) => sql.replaceAll(/\{\{ source\('usage', '(\w+)'\) \}\}/g, "reporting.$1");
  const keys = expand(await readFile(new URL("tests/usage_keys_are_unique.sql", DBT), "utf8"));
  expect(keys).not.toContain("{{");
  expect((await client.query(keys)).rows).toEqual([]);
  const doubled = keys.replaceAll(
    /reporting\.(\w+)/g,
    "(SELECT * FROM reporting.$1 UNION ALL SELECT * FROM reporting.$1) v",
  );
  expect((await client.query(doubled)).rows.length).toBeGreaterThan(0);

  const { sources } = parse(await readFile(new URL("models/sources.yml", DBT), "utf8")) as Sources;
  let tested = 0;
  for (const { name: view, columns } of sources[0]?.tables ?? []) {
    for (const { name, quote, data_tests = [] } of columns) {
      const column = quote === true ? `"${name}"` : name;
      // Each of dbt's two tests as it compiles it; the column is read either way, as a client would.
      await client.query(`SELECT ${column} FROM reporting.${view} LIMIT 1`);
      for (const one of data_tests) {
        const broken =
          one === "not_null"
            ? `SELECT FROM reporting.${view} WHERE ${column} IS NULL`
            : `SELECT FROM reporting.${view} WHERE ${column} IS NOT NULL GROUP BY ${column} HAVING count(*) > 1`;
        expect((await client.query(broken)).rowCount, `${one} of ${view}.${name}`).toBe(0);
        tested++;
      }
    }
  }
  expect(tested).toBeGreaterThan(60);
});
