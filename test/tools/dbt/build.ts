import type pg from "pg";
import { MODELS, type Rendered, render, TARGET } from "./package.ts";

/** Workspace days that a run wrote, by incremental model, each as `date workspace`. */
export type Written = ReadonlyMap<string, readonly string[]>;

/** Builds all models as dbt-postgres does, each after those that it refers to. Returns what the incremental ones wrote. */
export async function dbtRun(client: pg.Client): Promise<Written> {
  const written = new Map<string, readonly string[]>();
  for (const name of inOrder()) {
    const relation = `${TARGET}.${name}`;
    const { rows } = await client.query("SELECT to_regclass($1) IS NOT NULL AS found", [relation]);
    const isIncremental = rows[0].found === "t";
    const rendered = render(MODELS.get(name) as string, { this: relation, isIncremental });
    if (rendered.config.materialized === "incremental")
      written.set(name, await runIncremental(client, { relation, rendered, isIncremental }));
    else if (rendered.config.materialized === "table") {
      await client.query(`DROP TABLE IF EXISTS ${relation} CASCADE`);
      await client.query(`CREATE TABLE ${relation} AS (\n${rendered.sql}\n)`);
      await client.query(render(rendered.config.post_hook as string, { this: relation }).sql);
    } else await client.query(`CREATE OR REPLACE VIEW ${relation} AS (\n${rendered.sql}\n)`);
  }
  return written;
}

/** The strategy delete+insert, in one transaction with the hook. */
async function runIncremental(
  client: pg.Client,
  { relation, rendered, isIncremental }: { relation: string; rendered: Rendered; isIncremental: boolean },
): Promise<readonly string[]> {
  const { sql, config } = rendered;
  const key = (config.unique_key as string[]).join(", ");
  await client.query("BEGIN");
  await client.query(`CREATE TEMPORARY TABLE batch ON COMMIT DROP AS (\n${sql}\n)`);
  if (isIncremental) {
    await client.query(`DELETE FROM ${relation} WHERE (${key}) IN (SELECT DISTINCT ${key} FROM batch)`);
    await client.query(`INSERT INTO ${relation} SELECT * FROM batch`);
  } else await client.query(`CREATE TABLE ${relation} AS SELECT * FROM batch`);
  const { rows } = await client.query<{ day: string }>(
    "SELECT DISTINCT usage_date || ' ' || right(workspace_id, 1) AS day FROM batch ORDER BY 1",
  );
  await client.query(render(config.post_hook as string, { this: relation }).sql);
  await client.query("COMMIT");
  return rows.map(({ day }) => day);
}

function inOrder(): string[] {
  const order: string[] = [];
  const visit = (name: string) => {
    if (order.includes(name)) return;
    const text = MODELS.get(name) as string;
    // The macro days_to_write refers to stg_usage_etl__final_day.
    const found = [...text.matchAll(/ref\('(\w+)'\)/g)].map((one) => one[1] as string);
    for (const needed of [...found, ...(text.includes("days_to_write") ? ["stg_usage_etl__final_day"] : [])])
      visit(needed);
    order.push(name);
  };
  for (const name of MODELS.keys()) visit(name);
  return order;
}
