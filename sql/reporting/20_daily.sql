CREATE OR REPLACE VIEW usage.workspace_day AS
SELECT d.slug, d.usage_date, d.workspace_entity_id, d.workspace_id, d.workspace_name,
       CASE WHEN d.loaded THEN coalesce(f.traces, 0) END AS traces, usage.is_final(d.status) AS is_final,
       CASE WHEN d.status = 'ok' AND coalesce(f.traces, 0) = 0 THEN 'empty' ELSE d.status END AS coverage_status,
       d.fetched_at, d.reconciled_at IS NOT NULL AS is_reconciled, d.reconciled_at, d.matched_at AS totals_matched_at,
       d.proved_at
FROM usage.expected_day d
-- The figure of a day is looked up, not joined: so a week costs the same however many years there are.
LEFT JOIN LATERAL (
  SELECT (coalesce(sum(r.traces), 0)
           + CASE WHEN d.by_hours THEN coalesce(usage.traces_of_hours(d.hour_series, d.usage_date), 0) ELSE 0 END)::bigint AS traces
  FROM usage.dated_record r
  WHERE r.series_id = ANY (d.day_series) AND r.bucket_start = d.usage_date
) f ON true
WHERE d.group_by = 'workspace';

CREATE OR REPLACE VIEW reporting.fct_usage_workspace_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, traces, is_final, coverage_status, fetched_at, is_reconciled, reconciled_at,
       totals_matched_at, proved_at
FROM usage.workspace_day;
COMMENT ON VIEW reporting.fct_usage_workspace_daily IS 'Traces by workspace and day. Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), every day from the data start to today. Traces add up over days and workspaces. Null traces: not loaded, which is not zero.';

-- each dimension but workspace
CREATE OR REPLACE VIEW reporting.fct_usage_{dimension}_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, {columns}, traces, usage.is_final(status) AS is_final,
       status AS coverage_status, fetched_at, reconciled_at IS NOT NULL AS is_reconciled, reconciled_at, matched_at AS totals_matched_at,
       proved_at
FROM usage.daily_row d
WHERE group_by = '{dimension}';
COMMENT ON VIEW reporting.fct_usage_{dimension}_daily IS 'Traces by {title} and day. Grain: UTC day x workspace x {title} (key: source_id, usage_date, workspace_id, {id_column}), days with usage. A day x workspace that is not loaded is one row with null id and null traces, which a filter on an id or name leaves out: see usage_coverage_daily. Traces add up over all of these. Never add them to those of another dimension. Filter on usage_date: without it, DISTINCT, min, max and ORDER BY read every record. Take lists from dim_workspace and dim_{dimension}, and the newest day from data_freshness.';

-- end
