-- Usage of deployments. Its three measures are series of one scope. What the platform calls a project of this kind of usage is a
-- deployment, with ids of its own: it never joins a project that has traces.

-- Days and months of each id, the measures side by side.
CREATE OR REPLACE VIEW usage.deployment_day AS
SELECT s.scope_id, s.entity_id, r.bucket_start AS usage_date,
       coalesce(sum(r.traces) FILTER (WHERE s.measure = 'nodes_executed'), 0)::bigint AS nodes_executed,
       coalesce(sum(r.traces) FILTER (WHERE s.measure = 'agent_runs'), 0)::bigint AS agent_runs,
       coalesce(sum(r.traces) FILTER (WHERE s.measure = 'agent_uptime_seconds'), 0)::bigint AS agent_uptime_seconds,
       c.group_by
FROM usage.scope c
JOIN usage.series s USING (scope_id)
JOIN usage.dated_record r USING (series_id)
WHERE c.kind = 'langsmith_deployments' AND c.stride = 'day'
GROUP BY s.scope_id, s.entity_id, r.bucket_start, c.group_by;

CREATE OR REPLACE VIEW usage.deployment_month AS
SELECT s.scope_id, s.entity_id, t.month_start,
       coalesce(sum(t.traces) FILTER (WHERE s.measure = 'nodes_executed'), 0)::bigint AS nodes_executed,
       coalesce(sum(t.traces) FILTER (WHERE s.measure = 'agent_runs'), 0)::bigint AS agent_runs,
       coalesce(sum(t.traces) FILTER (WHERE s.measure = 'agent_uptime_seconds'), 0)::bigint AS agent_uptime_seconds,
       c.group_by
FROM usage.scope c
JOIN usage.series s USING (scope_id)
JOIN usage.monthly_total t USING (series_id)
WHERE c.kind = 'langsmith_deployments' AND c.stride = 'day'
GROUP BY s.scope_id, s.entity_id, t.month_start, c.group_by;

CREATE OR REPLACE VIEW reporting_detail.fct_deployment_usage_workspace_daily AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_days t WHERE t.group_by = 'workspace' AND t.meter = 'deployments')
SELECT x.slug AS source_id, d.usage_date, x.workspace_id, x.workspace_name,
       CASE WHEN t.loaded THEN coalesce(f.nodes_executed, 0) END AS nodes_executed,
       CASE WHEN t.loaded THEN coalesce(f.agent_runs, 0) END AS agent_runs,
       CASE WHEN t.loaded THEN coalesce(f.agent_uptime_seconds, 0) END AS agent_uptime_seconds,
       usage.is_final(t.status) AS is_final,
       CASE WHEN t.status = 'ok' AND coalesce(greatest(f.nodes_executed, f.agent_runs, f.agent_uptime_seconds), 0) = 0 THEN 'empty'
            ELSE t.status END AS coverage_status,
       CASE WHEN t.loaded THEN x.fetched_at[width_bucket(d.usage_date, x.starts)] END AS fetched_at,
       v.reconciled_at IS NOT NULL AS is_reconciled, v.reconciled_at, v.matched_at AS totals_matched_at, v.proved_at
FROM (
  SELECT usage_date
  FROM usage.days_between(
    -- least passes over a null: no deployment usage is known.
    least((SELECT min(data_start) FROM usage.source), (SELECT min(starts_on) FROM usage.source_meter)),
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
  SELECT sum(r.nodes_executed)::bigint AS nodes_executed, sum(r.agent_runs)::bigint AS agent_runs,
         sum(r.agent_uptime_seconds)::bigint AS agent_uptime_seconds
  FROM usage.deployment_day r
  WHERE r.scope_id = x.scope_id AND r.usage_date = d.usage_date
) f ON t.loaded
LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
CROSS JOIN LATERAL (
  SELECT nullif(p.reconciled_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS reconciled_at,
         nullif(p.matched_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS matched_at,
         nullif(p.proved_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS proved_at
) v;
COMMENT ON VIEW reporting_detail.fct_deployment_usage_workspace_daily IS 'Deployment usage by workspace and day. Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), every day from the data start or the beginning of deployment usage, the earlier of both, to today. Its measures add up over days and workspaces, each by itself. Null: not loaded, or before the beginning, which is not zero. No part of it is a part of traces.';

CREATE OR REPLACE VIEW reporting_detail.fct_deployment_usage_workspace_monthly AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_months t WHERE t.group_by = 'workspace' AND t.meter = 'deployments')
SELECT x.slug AS source_id, x.month_start, x.workspace_id, x.workspace_name,
       CASE WHEN x.is_complete THEN coalesce(f.nodes_executed, 0) END AS nodes_executed,
       CASE WHEN x.is_complete THEN coalesce(f.agent_runs, 0) END AS agent_runs,
       CASE WHEN x.is_complete THEN coalesce(f.agent_uptime_seconds, 0) END AS agent_uptime_seconds,
       x.days_expected, x.days_loaded, x.is_complete, x.is_final,
       CASE WHEN x.status = 'ok' AND coalesce(greatest(f.nodes_executed, f.agent_runs, f.agent_uptime_seconds), 0) = 0 THEN 'empty'
            ELSE x.status END AS coverage_status,
       usage.is_month_over(x.month_start) AS is_month_over
FROM x
LEFT JOIN LATERAL (
  SELECT sum(r.nodes_executed)::bigint AS nodes_executed, sum(r.agent_runs)::bigint AS agent_runs,
         sum(r.agent_uptime_seconds)::bigint AS agent_uptime_seconds
  FROM usage.deployment_month r
  WHERE r.scope_id = x.scope_id AND r.month_start = x.month_start
) f ON x.is_complete;
COMMENT ON VIEW reporting_detail.fct_deployment_usage_workspace_monthly IS 'Deployment usage by workspace and month. Grain: calendar month (UTC) x workspace (key: source_id, month_start, workspace_id). Its measures add up over months and workspaces, each by itself. Null: at least one expected day is not loaded. Expected is every day from the beginning of deployment usage on that has ended, and today once it is loaded.';

-- each dimension but workspace
CREATE OR REPLACE VIEW reporting_detail.fct_deployment_usage_{deployment_dimension}_daily AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_days t WHERE t.group_by = '{dimension}' AND t.meter = 'deployments')
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name, {deployment_columns}, d.nodes_executed, d.agent_runs,
       d.agent_uptime_seconds, usage.is_final(d.status) AS is_final, d.status AS coverage_status, d.fetched_at,
       d.reconciled_at IS NOT NULL AS is_reconciled, d.reconciled_at, d.matched_at AS totals_matched_at, d.proved_at
FROM (
  SELECT x.slug, r.usage_date, x.workspace_id, x.workspace_name, e.dimension_id, e.dimension_name, r.nodes_executed, r.agent_runs,
         r.agent_uptime_seconds,
         CASE WHEN x.final @> r.usage_date AND greatest(r.nodes_executed, r.agent_runs, r.agent_uptime_seconds) = 0 THEN 'empty'
              ELSE usage.day_status(r.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) END AS status,
         x.fetched_at[width_bucket(r.usage_date, x.starts)] AS fetched_at,
         nullif(p.reconciled_at[width_bucket(r.usage_date, p.starts)], '-infinity') AS reconciled_at,
         nullif(p.matched_at[width_bucket(r.usage_date, p.starts)], '-infinity') AS matched_at,
         nullif(p.proved_at[width_bucket(r.usage_date, p.starts)], '-infinity') AS proved_at
  FROM x
  LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
  -- The dimension once more: this one reaches the records.
  JOIN usage.deployment_day r ON r.scope_id = x.scope_id AND r.group_by = '{dimension}'
  JOIN usage.labelled_entity e USING (entity_id)
  UNION ALL
  SELECT x.slug, day, x.workspace_id, x.workspace_name, NULL, NULL, NULL, NULL, NULL,
         usage.day_status(day, x.final, x.not_available, x.failed, x.missing, x.unverified), NULL, NULL, NULL, NULL
  FROM x
  CROSS JOIN LATERAL usage.days_of(x.expected - x.loaded) day
) d;
COMMENT ON VIEW reporting_detail.fct_deployment_usage_{deployment_dimension}_daily IS 'Deployment usage by {deployment_title} and day. Grain: UTC day x workspace x {deployment_title} (key: source_id, usage_date, workspace_id, {deployment_id_column}), days with deployment usage: nodes executed, agent runs, seconds of uptime. A day x workspace that is not loaded, or lies before the beginning of deployment usage, is one row with null id and null measures. Its measures add up over all of these, each by itself. Never add them to those of another dimension. Filter on usage_date: without it every record is read.';

CREATE OR REPLACE VIEW reporting_detail.fct_deployment_usage_{deployment_dimension}_monthly AS
WITH x AS MATERIALIZED (SELECT * FROM usage.figure_months t WHERE t.group_by = '{dimension}' AND t.meter = 'deployments')
SELECT d.slug AS source_id, d.month_start, d.workspace_id, d.workspace_name, {deployment_columns}, d.nodes_executed, d.agent_runs,
       d.agent_uptime_seconds, d.days_expected, d.days_loaded, d.is_complete, d.is_final, d.status AS coverage_status,
       usage.is_month_over(d.month_start) AS is_month_over
FROM (
  SELECT x.slug, x.month_start, x.workspace_id, x.workspace_name, e.dimension_id, e.dimension_name, r.nodes_executed, r.agent_runs,
         r.agent_uptime_seconds, x.days_expected, x.days_loaded, x.is_complete, x.is_final,
         CASE WHEN x.status = 'ok' AND greatest(r.nodes_executed, r.agent_runs, r.agent_uptime_seconds) = 0 THEN 'empty'
              ELSE x.status END AS status
  FROM x
  JOIN usage.deployment_month r
    ON r.scope_id = x.scope_id AND r.month_start = x.month_start AND r.group_by = '{dimension}'
  JOIN usage.labelled_entity e USING (entity_id)
  WHERE x.is_complete
  UNION ALL
  SELECT x.slug, x.month_start, x.workspace_id, x.workspace_name, NULL, NULL, NULL, NULL, NULL, x.days_expected, x.days_loaded, false,
         false, x.status
  FROM x
  WHERE NOT x.is_complete
) d;
COMMENT ON VIEW reporting_detail.fct_deployment_usage_{deployment_dimension}_monthly IS 'Deployment usage by {deployment_title} and month. Grain: calendar month (UTC) x workspace x {deployment_title} (key: source_id, month_start, workspace_id, {deployment_id_column}), months with deployment usage: nodes executed, agent runs, seconds of uptime. A month x workspace with an expected day that is not loaded, or before the beginning of deployment usage, is one row with null id and null measures. Its measures add up over all of these, each by itself. Never add them to those of another dimension.';

-- end
CREATE OR REPLACE VIEW reporting_detail.dim_deployment AS
SELECT src.slug AS source_id, d.dimension_id AS deployment_id, d.dimension_name AS deployment_name, d.first_seen_at, d.last_seen_at
FROM usage.labelled_entity d
JOIN usage.source src USING (source_id)
WHERE d.dimension = 'deployment';
COMMENT ON VIEW reporting_detail.dim_deployment IS 'Each deployment with its current name. Grain: deployment (key: source_id, deployment_id). Names are not unique: join by the key. Never join it to projects: their ids are others.';
