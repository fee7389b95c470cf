CREATE OR REPLACE VIEW reporting_detail.fct_usage_workspace_hourly AS
SELECT h.slug AS source_id, h.usage_hour, h.workspace_id, h.workspace_name,
       CASE WHEN h.loaded THEN coalesce(f.traces, 0) END AS traces, usage.is_final(h.status) AS is_final,
       CASE WHEN h.status = 'ok' AND coalesce(f.traces, 0) = 0 THEN 'empty' ELSE h.status END AS coverage_status,
       h.fetched_at
FROM usage.expected_hour h
LEFT JOIN LATERAL (
  SELECT sum(r.traces)::bigint AS traces
  FROM usage.hourly_record r
  WHERE r.series_id = ANY (h.hour_series) AND r.bucket_start = h.usage_hour
) f ON true
WHERE h.group_by = 'workspace';
COMMENT ON VIEW reporting_detail.fct_usage_workspace_hourly IS 'Traces by workspace and hour. Grain: UTC hour x workspace (key: source_id, usage_hour, workspace_id), every hour that is kept up to date or was loaded. Traces add up over hours and workspaces. Null traces: not loaded, which is not zero.';

-- each dimension but workspace
CREATE OR REPLACE VIEW reporting_detail.fct_usage_{dimension}_hourly AS
SELECT slug AS source_id, usage_hour, workspace_id, workspace_name, {columns}, traces, usage.is_final(status) AS is_final,
       status AS coverage_status, fetched_at
FROM usage.hourly_row d
WHERE group_by = '{dimension}';
COMMENT ON VIEW reporting_detail.fct_usage_{dimension}_hourly IS 'Traces by {title} and hour. Grain: UTC hour x workspace x {title} (key: source_id, usage_hour, workspace_id, {id_column}), hours with usage. An hour x workspace that is not loaded is one row with null id and null traces. Traces add up over all of these. Never add them to those of another dimension. Filter on usage_hour: without it, DISTINCT, min, max and ORDER BY read every record. Take lists from dim_workspace and dim_{dimension}, and the newest hour from data_freshness.';

-- end
