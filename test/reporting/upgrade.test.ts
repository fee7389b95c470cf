import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { openStore, type Store } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { createTestDatabase } from "../support/database.ts";

/** Upgrades from the schema of an earlier release, on which a customer has built views. */

const SQL = new URL("../../sql/migrations/", import.meta.url);
const LAST_MIGRATION = "0010_slice";
const VIEWS = readFileSync(new URL("previous/views.sql", import.meta.url), "utf8");

/** Two workspaces, two days of January and one of February, by workspace and by user; one day by its hours alone. */
const DATA = `
  INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    VALUES ('default', 'http://platform.test', '2026-01-30', 24, 'digest');
  INSERT INTO usage.entity (source_id, dimension, external_id)
    VALUES (1, 'workspace', 'w1'), (1, 'workspace', 'w2'), (1, 'user', 'u1'), (1, 'user', '');
  INSERT INTO usage.entity_name SELECT entity_id, 'name of ' || external_id, '2026-01-30Z', '2026-01-30Z', 1 FROM usage.entity;
  INSERT INTO usage.workspace (entity_id) VALUES (1), (2);
  INSERT INTO usage.scope (source_id, group_by, workspace_id, stride)
    SELECT 1, g, w, s FROM unnest('{workspace,user}'::text[]) g, generate_series(1, 2) w, unnest('{day,hour,week}'::text[]) s;
  INSERT INTO usage.series (scope_id, entity_id)
    SELECT scope_id, e FROM usage.scope, generate_series(1, 4) e
    WHERE (group_by = 'workspace' AND e = workspace_id) OR (group_by = 'user' AND e > 2);
  INSERT INTO usage.dated_record
    SELECT series_id, d, 10 * series_id + extract(day FROM d) FROM usage.series JOIN usage.scope USING (scope_id),
           unnest('{2026-01-30,2026-01-31,2026-02-01}'::date[]) d WHERE stride <> 'hour';
  INSERT INTO usage.hourly_record
    SELECT series_id, '2026-02-02Z'::timestamptz + make_interval(hours => h), h FROM usage.series JOIN usage.scope USING (scope_id),
           generate_series(0, 23) h WHERE stride = 'hour';
  INSERT INTO usage.coverage
    SELECT scope_id, '2026-01-30Z', CASE stride WHEN 'day' THEN '2026-02-02Z' ELSE '2026-03-06Z' END::timestamptz, true, 1, '2026-03-01Z'
    FROM usage.scope WHERE stride <> 'hour';
  INSERT INTO usage.coverage
    SELECT scope_id, '2026-02-02Z', '2026-02-03Z', true, 2, '2026-03-01Z' FROM usage.scope WHERE stride = 'hour'`;

let store: Store;
let client: pg.Client;
let role: string;

beforeEach(async ({ skip }) => {
  const { url, drop } = await createTestDatabase();
  client = new pg.Client({ connectionString: url });
  await client.connect();
  store = openStore({ url });
  role = `analyst_${new URL(url).pathname.slice(-12)}`;
  onTestFinished(async () => {
    await client.end();
    await store.close();
    await drop();
  });
  const mayCreate = await rows("SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user");
  if (mayCreate[0]?.[0] !== true) skip("this login may not create the role of a customer");
  onTestFinished(async () => void (await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)));
  await client.query(`CREATE SCHEMA usage; CREATE SCHEMA reporting; CREATE ROLE ${role}`);
  await client.query(
    `CREATE TABLE usage.kysely_migration (name varchar(255) PRIMARY KEY, timestamp varchar(255) NOT NULL)`,
  );
  await applyMigrations("", LAST_MIGRATION);
  await client.query(VIEWS);
  await client.query(DATA);
});

/** Applies the migrations after one, up to and with another, as an earlier release did. */
async function applyMigrations(after: string, last: string): Promise<void> {
  for (const file of readdirSync(SQL).sort()) {
    const name = file.replace(/\.sql$/, "");
    if (!file.endsWith(".sql") || name <= after || name > last) continue;
    await client.query(readFileSync(new URL(file, SQL), "utf8"));
    await client.query("INSERT INTO usage.kysely_migration VALUES ($1, now()::text)", [name]);
  }
}

const rows = async (text: string) => (await client.query({ text, rowMode: "array" })).rows;

/** Name, identity, grants and columns of each view, in the order of the columns. */
const views = async () => {
  const found = await rows(`
    SELECT c.relname, c.oid::text, coalesce(c.relacl::text, ''), array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'reporting'::regnamespace AND c.relkind = 'v' GROUP BY c.oid ORDER BY 1`);
  return found.map(([name, oid, grants, columns]) => ({ name, oid, grants, columns: columns as string[] }));
};

test("views keep their identity, grants and column order, and views of customers go on working", async () => {
  await client.query(`
    CREATE SCHEMA mart;
    CREATE VIEW mart.by_user AS
      SELECT u.*, w.coverage_status AS of_workspace
      FROM reporting.fct_usage_user_daily u
      JOIN reporting.fct_usage_workspace_daily w USING (source_id, usage_date, workspace_id);
    CREATE VIEW mart.hours AS SELECT * FROM reporting.fct_usage_user_hourly;
    GRANT USAGE ON SCHEMA reporting, mart TO ${role};
    GRANT SELECT ON reporting.fct_usage_user_daily, reporting.usage_record TO ${role};
    GRANT SELECT ON mart.by_user TO ${role}`);
  const figures = async () => ({
    byUser: await rows("SELECT * FROM mart.by_user WHERE usage_date < '2026-02-04' ORDER BY 1, 2, 3, 5"),
    hours: await rows("SELECT * FROM mart.hours WHERE usage_hour < '2026-02-04Z' ORDER BY 1, 2, 3, 5"),
  });
  const before = { views: await views(), figures: await figures() };
  expect(before.figures.byUser.length).toBeGreaterThan(10);
  expect(before.figures.hours.length).toBeGreaterThan(90);

  const { applied } = await migrate(store);
  expect(applied.length).toBeGreaterThan(0);

  const after = new Map((await views()).map((view) => [view.name, view]));
  for (const { name, oid, grants, columns } of before.views) {
    const now = after.get(name);
    expect(now?.oid, name).toBe(oid);
    expect(now?.columns.slice(0, columns.length), name).toEqual(columns);
    if (String(grants).includes(role)) expect(now?.grants, name).toContain(role);
  }
  expect(await figures()).toEqual(before.figures);
  await client.query(`SET ROLE ${role}`);
  for (const granted of ["reporting.fct_usage_user_daily", "reporting.usage_record", "mart.by_user"]) {
    expect((await rows(`SELECT count(*) > 0 FROM ${granted}`))[0]).toEqual([true]);
  }
  await client.query("RESET ROLE");
});

test("the totals of months are filled from existing records", async () => {
  await migrate(store);
  const counted = await rows(`
    SELECT series_id, date_trunc('month', bucket_start::timestamp)::date::text, sum(traces)::text, count(*)::integer
    FROM usage.dated_record GROUP BY 1, 2 ORDER BY 1, 2`);
  expect(counted.length).toBeGreaterThan(10);
  expect(
    await rows(
      "SELECT series_id, month_start::text, traces::text, records FROM usage.monthly_total ORDER BY 1, 2",
    ),
  ).toEqual(counted);
  // January is whole; February lacks days, so that no total is shown of it.
  expect(
    await rows(`
      SELECT month_start::text, workspace_id, traces, days_expected, days_loaded, is_complete, is_final
      FROM reporting.fct_usage_workspace_monthly WHERE month_start < '2026-03-01' ORDER BY 1, 2`),
  ).toEqual([
    ["2026-01-01", "w1", "81", 2, 2, true, true],
    ["2026-01-01", "w2", "141", 2, 2, true, true],
    ["2026-02-01", "w1", null, 28, 2, false, false],
    ["2026-02-01", "w2", null, 28, 2, false, false],
  ]);
});

test("every figure that 0.1 showed is shown after the upgrade", async () => {
  await applyMigrations(LAST_MIGRATION, "0041_monthly_total_in_place");
  await client.query(readFileSync(new URL("previous/views-0.1.sql", import.meta.url), "utf8"));
  await client.query(`
    INSERT INTO usage.sku (name) VALUES ('traces');
    INSERT INTO usage.price (sku_id, unit_price, currency, valid_from) VALUES (1, 0.0005, 'USD', '2026-01-01')`);
  // The columns of FOCUS are those of its version, the calendar has become longer, and records without an id count as
  // unattributed since.
  const before = (await views()).filter(({ name }) => !/focus|dim_date|unattributed/.test(name));
  // Seconds pass meanwhile.
  const namesOf = (columns: string[]) =>
    columns
      .filter((column) => !column.startsWith("lag"))
      .map((column) => `"${column.split(" ")[0]}"`)
      .join(", ");
  const columnsOf = new Map(before.map(({ name, columns }) => [name, namesOf(columns)]));
  const shown = async () => {
    const found: Record<string, unknown[]> = {};
    for (const [name, columns] of columnsOf) {
      found[name] = await rows(`SELECT t::text FROM (SELECT ${columns} FROM reporting.${name}) t ORDER BY 1`);
    }
    return found;
  };
  const figures = await shown();
  expect(Object.values(figures).filter((list) => list.length > 0).length).toBeGreaterThan(12);

  const { applied } = await migrate(store);
  expect(applied[0]).toBe("0042_dimension");
  expect(await shown()).toEqual(figures);
});
