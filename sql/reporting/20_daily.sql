CREATE OR REPLACE VIEW reporting.fct_usage_workspace_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name,
       CASE WHEN d.loaded THEN coalesce(f.traces, 0) END AS traces,
       d.loaded AND d.settled AND d.status IN ('ok', 'empty') AS is_final,
       CASE WHEN d.status = 'ok' AND coalesce(f.traces, 0) = 0 THEN 'empty' ELSE d.status END AS coverage_status,
       d.fetched_at
FROM usage.day_state d
LEFT JOIN usage.workspace_day f ON f.day_scope_id = d.day_scope_id AND f.usage_date = d.usage_date
WHERE d.group_by = 'workspace';

CREATE OR REPLACE VIEW reporting.fct_usage_project_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, dimension_id AS project_id,
       dimension_name AS project_name, traces, settled AND status IN ('ok', 'empty') AS is_final,
       status AS coverage_status, fetched_at
FROM usage.daily_row
WHERE group_by = 'project';

CREATE OR REPLACE VIEW reporting.fct_usage_user_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, dimension_id AS user_id,
       dimension_name AS user_email, traces, settled AND status IN ('ok', 'empty') AS is_final,
       status AS coverage_status, fetched_at
FROM usage.daily_row
WHERE group_by = 'user';

CREATE OR REPLACE VIEW reporting.fct_usage_api_key_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, dimension_id AS api_key_short_key,
       traces, settled AND status IN ('ok', 'empty') AS is_final, status AS coverage_status, fetched_at
FROM usage.daily_row
WHERE group_by = 'api_key';
