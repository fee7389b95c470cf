import { readFile } from "node:fs/promises";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../../src/core/store/db/database.ts";
import { pendingMigrations } from "../../../src/core/store/db/schema-version.ts";
import { migrate } from "../../../src/core/store/migrate.ts";
import { createTestDatabase } from "../../support/database.ts";
import { dumpSchema, ROOT } from "../../support/schema-dump.ts";
import { SCHEMA_TYPES, schemaTypes } from "../../support/schema-types.ts";
import { setupStore } from "./setup.ts";

const HINT = "Run `npm run schema` and read the diff.";

test("sql/schema.sql is the schema that the migrations and views make", async () => {
  const { reader } = await setupStore();
  const committed = await readFile(`${ROOT}sql/schema.sql`, "utf8").catch(() => "");
  expect(await dumpSchema(reader), HINT).toBe(committed);
});

test("src/core/store/db/schema.ts has the types of the tables that the migrations make", async () => {
  const { reader } = await setupStore();
  expect(await schemaTypes(reader), HINT).toBe(await readFile(SCHEMA_TYPES, "utf8"));
});

test("every permanent table has a primary key, so that a publication of all tables refuses no change", async () => {
  const { reader } = await setupStore();
  const withoutKey = async () => {
    const { rows } = await reader.query<{ name: string }>(
      `SELECT c.oid::regclass::text AS name FROM pg_class c
       WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND c.relnamespace::regnamespace::text !~ '^(pg_|information_schema$)'
         AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
       ORDER BY 1`,
    );
    return rows.map(({ name }) => name);
  };
  expect(await withoutKey()).toEqual([]);
  await reader.query("CREATE TABLE usage.planted (id integer NOT NULL UNIQUE)");
  expect(await withoutKey()).toEqual(["usage.planted"]);
});

test("migrate may start three times at once on an empty database", async () => {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  const stores = [1, 2, 3].map(() => openStore({ url, maxConnections: 2 }));
  const results = await Promise.all(stores.map((store) => migrate(store)));
  expect(await pendingMigrations((stores[0] as (typeof stores)[0]).db)).toEqual([]);
  await Promise.all(stores.map((store) => store.close()));
  const applied = results.flatMap((result) => result.applied);
  expect(applied.length).toBeGreaterThan(0);
  expect(applied.toSorted()).toEqual([...new Set(applied)].sort());

  const client = new pg.Client(url);
  await client.connect();
  const schema = await dumpSchema(client);
  await client.end();
  const { reader } = await setupStore();
  expect(schema).toBe(await dumpSchema(reader));
});

test("a login of a migrated database compiles no queries, unless somebody has set otherwise", async () => {
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  const name = new URL(url).pathname.slice(1);
  const request = async (text: string) => {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query(text);
    await client.end();
    return rows;
  };
  const store = openStore({ url, maxConnections: 2 });
  onTestFinished(() => store.close());
  await request(`ALTER DATABASE ${name} SET jit = on`);
  await migrate(store);
  expect(await request("SHOW jit")).toEqual([{ jit: "on" }]);
  await request(`ALTER DATABASE ${name} RESET jit`);
  await migrate(store);
  expect(await request("SHOW jit")).toEqual([{ jit: "off" }]);
});
