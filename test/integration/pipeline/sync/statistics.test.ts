import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../../../src/core/store/db/database.ts";
import { analyzeStale } from "../../../../src/core/store/db/statistics.ts";
import { migrate } from "../../../../src/core/store/migrate.ts";
import { setup } from "../../../support/source.ts";

const OFF = `
  SELECT format('ALTER TABLE usage.%I SET (autovacuum_enabled = off)', relname) AS text
  FROM pg_class WHERE relnamespace = 'usage'::regnamespace AND relkind = 'r'`;
const UNKNOWN = `
  SELECT relname FROM pg_class
  WHERE relnamespace = 'usage'::regnamespace AND relkind = 'r' AND reltuples < 0 AND pg_relation_size(oid) > 0`;

test("the first load leaves statistics of every table that it filled, and so does migrate of what has none", async () => {
  const bench = await setup({ days: 2, workspaces: [0], hourlyForMs: 0 });
  for (const { text } of await bench.sql<{ text: string }>(OFF)) await bench.sql(text);
  await bench.sync();
  expect(await bench.sql(UNKNOWN)).toEqual([]);

  await bench.sql("UPDATE pg_class SET reltuples = -1 WHERE oid = 'usage.scope'::regclass");
  await migrate(bench.store);
  expect(await bench.sql(UNKNOWN)).toEqual([]);

  // A role that owns no table may analyze none, and is not told so by a warning for each.
  const url = new URL(bench.databaseUrl);
  const role = `loader_${url.pathname.slice(-12)}`;
  await bench.sql(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA usage TO ${role}`);
  await bench.sql("UPDATE pg_class SET reltuples = -1 WHERE oid = 'usage.scope'::regclass");
  url.username = role;
  const other = openStore({ url: url.href });
  onTestFinished(async () => {
    await other.close();
    await bench.sql(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
  expect(await analyzeStale(other.db)).toEqual([]);
});
