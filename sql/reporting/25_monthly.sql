CREATE OR REPLACE VIEW reporting.fct_usage_workspace_monthly AS
SELECT m.slug AS source_id, m.month_start, m.workspace_id, m.workspace_name,
       CASE WHEN m.days_loaded = m.days_expected THEN coalesce(f.traces, 0) END AS traces,
       m.days_expected, m.days_loaded, m.days_loaded = m.days_expected AS is_complete, m.is_final
FROM usage.month_state m
LEFT JOIN (
  SELECT slug, workspace_id, month_start, sum(traces)::bigint AS traces
  FROM usage.monthly_row
  WHERE group_by = 'workspace'
  GROUP BY slug, workspace_id, month_start
) f ON f.slug = m.slug AND f.workspace_id = m.workspace_id AND f.month_start = m.month_start
WHERE m.group_by = 'workspace';

CREATE OR REPLACE VIEW reporting.fct_usage_project_monthly AS
SELECT slug AS source_id, month_start, workspace_id, workspace_name, dimension_id AS project_id,
       dimension_name AS project_name, traces, days_expected, days_loaded, days_loaded = days_expected AS is_complete,
       is_final
FROM usage.monthly_row
WHERE group_by = 'project';

CREATE OR REPLACE VIEW reporting.fct_usage_user_monthly AS
SELECT slug AS source_id, month_start, workspace_id, workspace_name, dimension_id AS user_id, dimension_name AS user_email,
       traces, days_expected, days_loaded, days_loaded = days_expected AS is_complete, is_final
FROM usage.monthly_row
WHERE group_by = 'user';

CREATE OR REPLACE VIEW reporting.fct_usage_api_key_monthly AS
SELECT slug AS source_id, month_start, workspace_id, workspace_name, dimension_id AS api_key_short_key, traces,
       days_expected, days_loaded, days_loaded = days_expected AS is_complete, is_final
FROM usage.monthly_row
WHERE group_by = 'api_key';
