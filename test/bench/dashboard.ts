import pg from "pg";
import { expand, queries } from "../tools/dashboard/dashboard.ts";

/**
 * `DATABASE_URL=... npm run bench:dashboard`: asks every query of the Grafana dashboard once of a database, with all sources and
 * workspaces and the time range that the dashboard opens with, and prints the slowest first. It only reads.
 */

const LIMIT_MS = 1000;
const DAY_MS = 86_400_000;

const client = new pg.Client({ connectionString: process.env.DATABASE_URL, options: process.env.PGOPTIONS });
await client.connect();
try {
  await client.query(
    "BEGIN READ ONLY; SET LOCAL statement_timeout = '60s'; SET LOCAL timezone = 'UTC'; SET LOCAL ROLE usage_reader",
  );
  const listOf = async (column: string) => {
    const { rows } = await client.query(
      `SELECT string_agg(DISTINCT quote_literal(${column}), ',') AS list FROM reporting.dim_workspace`,
    );
    return rows[0].list as string;
  };
  const shown = {
    from: new Date(Date.now() - 30 * DAY_MS).toISOString(),
    to: new Date().toISOString(),
    variables: { source: await listOf("source_id"), workspace: await listOf("workspace_id") },
  };
  const times: { title: string; rows: number; ms: number }[] = [];
  for (const { title, rawSql } of queries) {
    const start = performance.now();
    const { rows } = await client.query(expand(rawSql, shown));
    times.push({ title, rows: rows.length, ms: Math.round(performance.now() - start) });
  }
  for (const { title, rows, ms } of times.sort((a, b) => b.ms - a.ms))
    process.stdout.write(`| ${title} | ${rows} | ${ms} |${ms > LIMIT_MS ? " over the limit" : ""}\n`);
} finally {
  await client.end();
}
