import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { steady } from "./program.ts";

/** Writes every row of every public view: a file a view, a JSON object a row, in a fixed order. */
export async function readViews(url: string, out: string): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    types: { getTypeParser: () => (text: string) => text },
  });
  await client.connect();
  try {
    await client.query("SET timezone = 'UTC'; SET statement_timeout = '5min'; SET extra_float_digits = 1");
    const { rows: views } = await client.query(
      `SELECT schemaname, viewname FROM pg_views WHERE schemaname LIKE 'reporting%' ORDER BY 1, 2`,
    );
    for (const { schemaname, viewname } of views) {
      const { rows } = await client.query(`SELECT * FROM ${schemaname}.${viewname}`);
      const lines = rows.map((row) => steady(JSON.stringify(row))).sort();
      writeFileSync(join(out, `${viewname}.view`), lines.map((line) => `${line}\n`).join(""));
    }
  } finally {
    await client.end();
  }
}
