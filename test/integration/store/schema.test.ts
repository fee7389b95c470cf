import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../../src/store/db/database.ts";
import { migrate, pendingMigrations } from "../../../src/store/db/migrate.ts";
import { createTestDatabase } from "../../support/database.ts";
import { dumpSchema } from "../../support/schema-dump.ts";
import { setupStore } from "./setup.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const SCHEMA = `${ROOT}sql/schema.sql`;

test("sql/schema.sql is what the migrations and views make", async () => {
  const { reader } = await setupStore();
  const schema = await dumpSchema(reader);
  if (process.env.UPDATE_SCHEMA === "1") await writeFile(SCHEMA, schema);
  const committed = await readFile(SCHEMA, "utf8").catch(() => "");
  expect(
    schema,
    "sql/schema.sql is not what the migrations make. Run `UPDATE_SCHEMA=1 npx vitest run test/integration/store/schema.test.ts` and read its diff",
  ).toBe(committed);
});

test("src/store/db/tables.ts is what kysely-codegen makes of the migrations", {
  timeout: 120_000,
}, async () => {
  const { url, reader } = await setupStore();
  // Its rows are for the tables: views are read by people and BI tools, and come and go with sql/reporting.
  const { rows } = await reader.query<{ name: string }>(
    "SELECT table_name::text AS name FROM information_schema.views WHERE table_schema = 'usage' ORDER BY 1",
  );
  const excluded = [...rows.map(({ name }) => name), "kysely_*"].map((name) => `usage.${name}`);
  const options = [
    ...["--dialect", "postgres", "--url", url, "--default-schema", "usage"],
    ...["--include-pattern", "usage.*", "--exclude-pattern", `{${excluded.join(",")}}`],
    ...[
      "--date-parser",
      "string",
      "--type-mapping",
      '{"int8":"number"}',
      "--out-file",
      "src/store/db/tables.ts",
    ],
  ];
  const run = promisify(execFile)(`${ROOT}node_modules/.bin/kysely-codegen`, [...options, "--verify"], {
    cwd: ROOT,
  });
  const output = await run.then(
    () => "",
    ({ stdout, stderr }) => `${stdout}\n${stderr}`,
  );
  expect(output, `Run kysely-codegen ${options.join(" ")}`).toBe("");
});

test("migrate may be started three times at once on an empty database", async () => {
  for (let round = 0; round < 3; round++) {
    const { url, drop } = await createTestDatabase();
    onTestFinished(drop);
    const stores = [1, 2, 3].map(() => openStore({ url, maxConnections: 2 }));
    const results = await Promise.all(stores.map((store) => migrate(store)));
    expect(await pendingMigrations((stores[0] as (typeof stores)[0]).db)).toEqual([]);
    await Promise.all(stores.map((store) => store.close()));
    // Each migration ran in one of them.
    const applied = results.flatMap((result) => result.applied);
    expect(applied.length).toBeGreaterThan(0);
    expect(applied.toSorted()).toEqual([...new Set(applied)].sort());

    const client = new pg.Client(url);
    await client.connect();
    const schema = await dumpSchema(client);
    await client.end();
    const { reader } = await setupStore();
    expect(schema).toBe(await dumpSchema(reader));
  }
});
