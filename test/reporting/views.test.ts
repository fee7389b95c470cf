import type pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/core/store/db/database.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { connectPlain, setupSource } from "../support/reporting.ts";
import { inSchema } from "../support/views.ts";

let store: Store;
let url: string;
let client: pg.Client;

beforeEach(async () => {
  ({ store, url } = await setupSource());
  client = await connectPlain(url);
});

const query = async (text: string): Promise<Record<string, unknown>[]> => (await client.query(text)).rows;

describe("the schemas of the views", () => {
  test("have columns of types that every client understands", async () => {
    const rows = await query(
      `SELECT DISTINCT format_type(a.atttypid, a.atttypmod) AS type FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
       WHERE c.relkind = 'v' AND a.attnum > 0 AND c.relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace)`,
    );
    const types = rows.map(({ type }) => String(type));
    expect(types.length).toBeGreaterThan(5);
    const understood = ["text", "date", "timestamp with time zone", "bigint", "integer", "boolean"];
    const exact = /^numeric\(\d+,\d+\)$/;
    expect(types.filter((type) => !understood.includes(type) && !exact.test(type))).toEqual([]);
  });

  test("are all that usage_reader reads", async () => {
    await client.query("SET ROLE usage_reader");
    const { rows } = await client.query(
      "SELECT table_name FROM information_schema.views WHERE table_schema IN ('reporting', 'reporting_detail')",
    );
    expect(rows.length).toBeGreaterThan(15);
    for (const { table_name } of rows) await client.query(`SELECT * FROM ${inSchema(table_name)} LIMIT 1`);
    await expect(client.query("SELECT * FROM usage.source")).rejects.toThrow(/permission denied/);
    await expect(client.query("DELETE FROM reporting.dim_date")).rejects.toThrow();
  });

  test("keep the views that customers built on them when migrate runs again", async () => {
    await query(
      "CREATE VIEW public.mine AS SELECT usage_date, traces FROM reporting.fct_usage_workspace_daily; GRANT SELECT ON public.mine TO usage_reader",
    );
    await migrate(store);
    expect(await query("SELECT count(*) >= 0 AS works FROM public.mine")).toEqual([{ works: "t" }]);
  });
});
