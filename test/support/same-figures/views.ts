import { writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { steady } from "./program.ts";

export async function readViews(url: string, out: string): Promise<void> {
  for (const [view, lines] of await rowsOfViews(url))
    writeFileSync(join(out, `${view}.view`), lines.map((line) => `${line}\n`).join(""));
}

export async function rowsOfViews(url: string): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
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
      found.set(viewname, rows.map((row) => steady(JSON.stringify(row))).sort());
    }
    return found;
  } finally {
    await client.end();
  }
}
