-- Usage that is asked for by workspace: sandboxes and evaluators. Each has two measures, which are series of one scope. What the
-- "project" of such usage is called here is a sandbox or snapshot, or a rule that runs an evaluator, with ids of its own.

-- each meter by workspace
-- Days and months of each id, both measures side by side.
CREATE OR REPLACE VIEW usage.{dimension}_day AS
SELECT s.scope_id, s.entity_id, r.bucket_start AS usage_date,
       usage.amount_of('{first}', coalesce(sum(r.traces) FILTER (WHERE s.measure = '{first}'), 0)) AS {first},
       usage.amount_of('{second}', coalesce(sum(r.traces) FILTER (WHERE s.measure = '{second}'), 0)) AS {second}, c.group_by
FROM usage.scope c
JOIN usage.series s USING (scope_id)
JOIN usage.dated_record r USING (series_id)
WHERE c.kind = '{meter}' AND c.stride = 'day'
GROUP BY s.scope_id, s.entity_id, r.bucket_start, c.group_by;

CREATE OR REPLACE VIEW usage.{dimension}_month AS
SELECT s.scope_id, s.entity_id, t.month_start,
       usage.amount_of('{first}', coalesce(sum(t.traces) FILTER (WHERE s.measure = '{first}'), 0)) AS {first},
       usage.amount_of('{second}', coalesce(sum(t.traces) FILTER (WHERE s.measure = '{second}'), 0)) AS {second}, c.group_by
FROM usage.scope c
JOIN usage.series s USING (scope_id)
JOIN usage.monthly_total t USING (series_id)
WHERE c.kind = '{meter}' AND c.stride = 'day'
GROUP BY s.scope_id, s.entity_id, t.month_start, c.group_by;

CREATE OR REPLACE VIEW reporting_detail.fct_{views}_workspace_daily AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_days t WHERE t.group_by = 'workspace' AND t.meter = '{meter}')
SELECT x.slug AS source_id, d.usage_date, x.workspace_id, x.workspace_name,
       CASE WHEN t.loaded THEN coalesce(f.{first}, 0) END::{first_type} AS {first},
       CASE WHEN t.loaded THEN coalesce(f.{second}, 0) END::{second_type} AS {second},
       usage.is_final(t.status) AS is_final,
       CASE WHEN t.status = 'ok' AND coalesce(greatest(f.{first}, f.{second}), 0) = 0 THEN 'empty'
            ELSE t.status END AS coverage_status,
       CASE WHEN t.loaded THEN x.fetched_at[width_bucket(d.usage_date, x.starts)] END AS fetched_at,
       v.reconciled_at IS NOT NULL AS is_reconciled, v.reconciled_at, v.matched_at AS totals_matched_at, v.proved_at
FROM (
  SELECT usage_date
  FROM usage.days_between(
    (SELECT min(data_start) FROM usage.source),
    (now() AT TIME ZONE 'UTC')::date
  ) usage_date
  ORDER BY usage_date DESC
) d
JOIN x ON coalesce(x.expected @> d.usage_date, false)
CROSS JOIN LATERAL (
  SELECT x.loaded @> d.usage_date AS loaded,
         usage.day_status(d.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status
  OFFSET 0
) t
-- By workspace a scope has one id, but for an answer that spells it in two ways.
LEFT JOIN LATERAL (
  SELECT sum(r.{first}) AS {first}, sum(r.{second}) AS {second}
  FROM usage.{dimension}_day r
  WHERE r.scope_id = x.scope_id AND r.usage_date = d.usage_date
) f ON t.loaded
LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
CROSS JOIN LATERAL (
  SELECT nullif(p.reconciled_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS reconciled_at,
         nullif(p.matched_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS matched_at,
         nullif(p.proved_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS proved_at
) v;
COMMENT ON VIEW reporting_detail.fct_{views}_workspace_daily IS '{subject} by workspace and day. Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), every day from the data start to today: {about}. Both add up over days and workspaces, each by itself. Null: not loaded, which is not zero.';

CREATE OR REPLACE VIEW reporting_detail.fct_{views}_workspace_monthly AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_months t WHERE t.group_by = 'workspace' AND t.meter = '{meter}')
SELECT x.slug AS source_id, x.month_start, x.workspace_id, x.workspace_name,
       CASE WHEN x.is_complete THEN coalesce(f.{first}, 0) END::{first_type} AS {first},
       CASE WHEN x.is_complete THEN coalesce(f.{second}, 0) END::{second_type} AS {second},
       x.days_expected, x.days_loaded, x.is_complete, x.is_final,
       CASE WHEN x.status = 'ok' AND coalesce(greatest(f.{first}, f.{second}), 0) = 0 THEN 'empty'
            ELSE x.status END AS coverage_status,
       usage.is_month_over(x.month_start) AS is_month_over
FROM x
LEFT JOIN LATERAL (
  SELECT sum(r.{first}) AS {first}, sum(r.{second}) AS {second}
  FROM usage.{dimension}_month r
  WHERE r.scope_id = x.scope_id AND r.month_start = x.month_start
) f ON x.is_complete;
COMMENT ON VIEW reporting_detail.fct_{views}_workspace_monthly IS '{subject} by workspace and month. Grain: calendar month (UTC) x workspace (key: source_id, month_start, workspace_id). Both measures ({about}) add up over months and workspaces, each by itself. Null: at least one expected day is not loaded.';

CREATE OR REPLACE VIEW reporting_detail.fct_{views}_{dimension}_daily AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_days t WHERE t.group_by = 'project' AND t.meter = '{meter}')
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name, {columns}, d.{first}::{first_type} AS {first},
       d.{second}::{second_type} AS {second}, usage.is_final(d.status) AS is_final, d.status AS coverage_status, d.fetched_at,
       d.reconciled_at IS NOT NULL AS is_reconciled, d.reconciled_at, d.matched_at AS totals_matched_at, d.proved_at
FROM (
  SELECT x.slug, r.usage_date, x.workspace_id, x.workspace_name, e.dimension_id, e.dimension_name, r.{first}, r.{second},
         CASE WHEN x.final @> r.usage_date AND greatest(r.{first}, r.{second}) = 0 THEN 'empty'
              ELSE usage.day_status(r.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) END AS status,
         x.fetched_at[width_bucket(r.usage_date, x.starts)] AS fetched_at,
         nullif(p.reconciled_at[width_bucket(r.usage_date, p.starts)], '-infinity') AS reconciled_at,
         nullif(p.matched_at[width_bucket(r.usage_date, p.starts)], '-infinity') AS matched_at,
         nullif(p.proved_at[width_bucket(r.usage_date, p.starts)], '-infinity') AS proved_at
  FROM x
  LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
  JOIN usage.{dimension}_day r ON r.scope_id = x.scope_id AND r.group_by = 'project'
  JOIN usage.labelled_entity e USING (entity_id)
  UNION ALL
  SELECT x.slug, day, x.workspace_id, x.workspace_name, NULL, NULL, NULL, NULL,
         usage.day_status(day, x.final, x.not_available, x.failed, x.missing, x.unverified), NULL, NULL, NULL, NULL
  FROM x
  CROSS JOIN LATERAL usage.days_of(x.expected - x.loaded) day
) d;
COMMENT ON VIEW reporting_detail.fct_{views}_{dimension}_daily IS '{subject} by {title} and day. Grain: UTC day x workspace x {title} (key: source_id, usage_date, workspace_id, {id_column}), days with usage: {about}. A day x workspace that is not loaded is one row with null id and null measures. Both add up over all of these, each by itself. Never add them to those of the view by workspace. Filter on usage_date: without it every record is read.';

CREATE OR REPLACE VIEW reporting_detail.fct_{views}_{dimension}_monthly AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_months t WHERE t.group_by = 'project' AND t.meter = '{meter}')
SELECT d.slug AS source_id, d.month_start, d.workspace_id, d.workspace_name, {columns}, d.{first}::{first_type} AS {first},
       d.{second}::{second_type} AS {second}, d.days_expected, d.days_loaded, d.is_complete, d.is_final, d.status AS coverage_status,
       usage.is_month_over(d.month_start) AS is_month_over
FROM (
  SELECT x.slug, x.month_start, x.workspace_id, x.workspace_name, e.dimension_id, e.dimension_name, r.{first}, r.{second}, x.days_expected, x.days_loaded, x.is_complete, x.is_final,
         CASE WHEN x.status = 'ok' AND greatest(r.{first}, r.{second}) = 0 THEN 'empty'
              ELSE x.status END AS status
  FROM x
  JOIN usage.{dimension}_month r
    ON r.scope_id = x.scope_id AND r.month_start = x.month_start AND r.group_by = 'project'
  JOIN usage.labelled_entity e USING (entity_id)
  WHERE x.is_complete
  UNION ALL
  SELECT x.slug, x.month_start, x.workspace_id, x.workspace_name, NULL, NULL, NULL, NULL, x.days_expected, x.days_loaded, false,
         false, x.status
  FROM x
  WHERE NOT x.is_complete
) d;
COMMENT ON VIEW reporting_detail.fct_{views}_{dimension}_monthly IS '{subject} by {title} and month. Grain: calendar month (UTC) x workspace x {title} (key: source_id, month_start, workspace_id, {id_column}), months with usage: {about}. A month x workspace with an expected day that is not loaded is one row with null id and null measures. Both add up over all of these, each by itself. Never add them to those of the view by workspace.';

-- end
CREATE OR REPLACE VIEW reporting_detail.dim_sandbox AS
SELECT src.slug AS source_id, d.dimension_id AS sandbox_id, d.first_seen_at, d.last_seen_at
FROM usage.labelled_entity d
JOIN usage.source src USING (source_id)
WHERE d.dimension = 'sandbox';
COMMENT ON VIEW reporting_detail.dim_sandbox IS 'Each sandbox and snapshot. Grain: sandbox or snapshot (key: source_id, sandbox_id). The platform tells no names of them with their usage.';

CREATE OR REPLACE VIEW reporting_detail.dim_run_rule AS
SELECT src.slug AS source_id, d.dimension_id AS run_rule_id, d.dimension_name AS run_rule_name, r.evaluator_id, r.evaluator_name, r.project_id,
       r.project_name, r.dataset_id, r.dataset_name, r.weekly_limit_usd, d.first_seen_at, d.last_seen_at
FROM usage.labelled_entity d
JOIN usage.source src USING (source_id)
LEFT JOIN usage.run_rule r USING (entity_id)
WHERE d.dimension = 'run_rule';
COMMENT ON VIEW reporting_detail.dim_run_rule IS 'Each rule that runs an evaluator, with its current name. Grain: rule that runs an evaluator (key: source_id, run_rule_id), as the newest answer tells it: which evaluator it runs, on which project or dataset, and what it may spend a week. Names are not unique: join by the key.';
