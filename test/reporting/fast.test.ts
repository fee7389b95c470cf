import { expect, test } from "vitest";
import { connectPlain, setupSource } from "../support/reporting.ts";
import { inSchema } from "../support/views.ts";

/**
 * Pages that views read before anything was analyzed: times would depend on the machine. Two workspaces with 50 users
 * each; 200 days, and 60 days of hours.
 */
const FILL = [
  `DO $$ DECLARE t text; BEGIN
     FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'usage'::regnamespace AND relkind = 'r' LOOP
       EXECUTE format('ALTER TABLE usage.%I SET (autovacuum_enabled = off)', t);
     END LOOP;
   END $$`,
  "UPDATE usage.source SET data_start = current_date - 200, hourly_hours = 1440",
  `INSERT INTO usage.entity (source_id, dimension, external_id)
   SELECT source_id, 'user', 'user-' || n FROM usage.source, generate_series(1, 50) n`,
  `INSERT INTO usage.series (scope_id, entity_id)
   SELECT scope_id, entity_id FROM usage.trace_scope c JOIN usage.entity e
     ON (group_by = 'user' AND dimension = 'user') OR (group_by = 'workspace' AND entity_id = c.workspace_id)`,
  `INSERT INTO usage.dated_record
   SELECT series_id, d::date, 1 FROM usage.series JOIN usage.trace_scope USING (scope_id),
          generate_series(current_date - 200, current_date, interval '1 day') d
   WHERE stride = 'day' ORDER BY 1, 2`,
  `INSERT INTO usage.hourly_record
   SELECT series_id, h, 1 FROM usage.series JOIN usage.trace_scope USING (scope_id),
          generate_series(date_trunc('hour', now()) - interval '60 days', now(), interval '1 hour') h
   WHERE stride = 'hour' AND group_by = 'workspace' ORDER BY 1, 2`,
  `INSERT INTO usage.coverage
   SELECT scope_id, start, stop, true, 1, now(), tstzmultirange(tstzrange(start, stop))
   FROM usage.trace_scope
   CROSS JOIN LATERAL (
     SELECT (now()::date - CASE stride WHEN 'day' THEN 200 ELSE 60 END)::timestamptz AS start, (now()::date + 1)::timestamptz AS stop
   ) t`,
];

const QUESTIONS: readonly [view: string, question: string, pages: number][] = [
  [
    "usage_coverage_daily",
    "WHERE source_id = 'default' AND stride = 'day' AND usage_date >= current_date - 150",
    6_000,
  ],
  ["fct_usage_workspace_daily", "WHERE usage_date >= current_date - 7", 400],
  ["fct_usage_workspace_daily", "ORDER BY usage_date DESC LIMIT 10", 400],
  ["fct_usage_workspace_hourly", "ORDER BY usage_hour DESC LIMIT 24", 400],
  ["fct_usage_workspace_hourly", "WHERE usage_hour >= now() - interval '1 day'", 600],
  ["fct_usage_workspace_daily", "WHERE usage_date BETWEEN current_date - 30 AND current_date", 800],
  ["fct_usage_workspace_hourly", "WHERE usage_hour BETWEEN now() - interval '30 days' AND now()", 8_000],
  ["usage_unattributed_daily", "LIMIT 10", 2_000],
  ["fct_usage_user_daily", "WHERE usage_date >= current_date - 7", 3_000],
];

test("views read what a question needs, without statistics", async () => {
  const { url } = await setupSource();
  const client = await connectPlain(url);
  for (const statement of FILL) await client.query(statement);
  const pages = [];
  for (const [view, question] of QUESTIONS) {
    const { rows } = await client.query(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM ${inSchema(view)} ${question}`,
    );
    const { Plan: plan } = JSON.parse(rows[0]["QUERY PLAN"])[0];
    expect(plan["Actual Rows"], `${view} ${question}`).toBeGreaterThan(0);
    pages.push({ view, question, read: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] });
  }
  const over = pages.filter(({ read }, i) => read > (QUESTIONS[i]?.[2] ?? 0));
  expect(over, JSON.stringify(pages, null, 2)).toEqual([]);
});

test("figures are looked up only where a query shows them", async () => {
  const { url } = await setupSource();
  const client = await connectPlain(url);
  for (const text of [
    "SELECT min(usage_hour), max(usage_hour) FROM reporting_detail.fct_usage_workspace_hourly",
    "SELECT DISTINCT workspace_name FROM reporting_detail.fct_usage_workspace_hourly",
    "SELECT max(usage_date) FROM reporting.fct_usage_workspace_daily",
  ]) {
    const { rows } = await client.query(`EXPLAIN ${text}`);
    expect(rows.map((row) => row["QUERY PLAN"]).join("\n")).not.toContain("_record");
  }
});

test("a filter on source, dimension or workspace leaves out other cells before anything is computed of them", async () => {
  const { url } = await setupSource();
  const client = await connectPlain(url);
  const { rows: found } = await client.query("SELECT min(workspace_id) AS id FROM reporting.dim_workspace");
  const workspace = `source_id = 'default' AND workspace_id = '${found[0].id}'`;
  for (const [view, question] of [
    ["fct_usage_workspace_daily", workspace],
    ["fct_usage_workspace_hourly", workspace],
    ["fct_usage_monthly", `${workspace} AND group_by = 'workspace'`],
    ["usage_coverage_daily", `${workspace} AND group_by = 'project'`],
    ["usage_month_to_date", "workspace_id IS NOT NULL"],
  ] as const) {
    const { rows } = await client.query(
      `EXPLAIN (VERBOSE) SELECT * FROM ${inSchema(view)} WHERE ${question}`,
    );
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan, view).not.toMatch(
      /Subquery Scan on .*\n( *Output: .*\n)? *Filter: .*(group_by|workspace_id|slug)/,
    );
    expect(plan, view).not.toContain("row_number");
  }
  const { rows } = await client.query(
    "EXPLAIN (VERBOSE) SELECT * FROM reporting_detail.usage_unattributed_daily",
  );
  expect(JSON.stringify(rows)).not.toContain("row_number");
});

test("owners are joined as a whole, whatever is filtered: else each owner is looked at for each id and day", async () => {
  const { url } = await setupSource();
  const client = await connectPlain(url);
  const month = "usage_date >= current_date - 60 AND usage_date < current_date - 30";
  for (const view of ["fct_usage_owner_daily", "fct_cost_owner_daily"]) {
    for (const filter of [
      month,
      `source_id = 'default' AND ${month}`,
      "usage_date >= current_date - 90",
      "owner = 'search'",
    ]) {
      const { rows } = await client.query(`EXPLAIN SELECT * FROM ${inSchema(view)} WHERE ${filter}`);
      const plan = rows.map((row) => row["QUERY PLAN"] as string);
      const at = plan.findIndex((line) => line.includes("CTE Scan on owned"));
      const depth = plan[at]?.search(/\S/) ?? 0;
      const around = plan.slice(0, at).findLast((line) => /->/.test(line) && line.search(/\S/) < depth);
      expect([view, filter, around?.trim()]).toEqual([
        view,
        filter,
        expect.stringMatching(/^-> {2}(Hash|Sort) /),
      ]);
    }
  }
});
