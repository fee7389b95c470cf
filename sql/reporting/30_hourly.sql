CREATE OR REPLACE VIEW reporting.fct_usage_workspace_hourly AS
SELECT h.slug AS source_id, h.usage_hour, h.workspace_id, h.workspace_name,
       CASE WHEN h.loaded THEN coalesce(sum(r.traces), 0)::bigint END AS traces,
       h.loaded AND h.settled AND h.status IN ('ok', 'empty') AS is_final,
       CASE WHEN h.status = 'ok' AND coalesce(sum(r.traces), 0) = 0 THEN 'empty' ELSE h.status END AS coverage_status,
       h.fetched_at
FROM usage.hour_state h
LEFT JOIN usage.series s ON s.scope_id = h.hour_scope_id
LEFT JOIN usage.hourly_record r ON r.series_id = s.series_id AND r.bucket_start = h.usage_hour
WHERE h.group_by = 'workspace'
GROUP BY h.slug, h.usage_hour, h.workspace_id, h.workspace_name, h.loaded, h.settled, h.status, h.fetched_at;

CREATE OR REPLACE VIEW reporting.fct_usage_project_hourly AS
SELECT slug AS source_id, usage_hour, workspace_id, workspace_name, dimension_id AS project_id,
       dimension_name AS project_name, traces, settled AND status IN ('ok', 'empty') AS is_final,
       status AS coverage_status, fetched_at
FROM usage.hourly_row
WHERE group_by = 'project';

CREATE OR REPLACE VIEW reporting.fct_usage_user_hourly AS
SELECT slug AS source_id, usage_hour, workspace_id, workspace_name, dimension_id AS user_id,
       dimension_name AS user_email, traces, settled AND status IN ('ok', 'empty') AS is_final,
       status AS coverage_status, fetched_at
FROM usage.hourly_row
WHERE group_by = 'user';

CREATE OR REPLACE VIEW reporting.fct_usage_api_key_hourly AS
SELECT slug AS source_id, usage_hour, workspace_id, workspace_name, dimension_id AS api_key_short_key,
       traces, settled AND status IN ('ok', 'empty') AS is_final, status AS coverage_status, fetched_at
FROM usage.hourly_row
WHERE group_by = 'api_key';
