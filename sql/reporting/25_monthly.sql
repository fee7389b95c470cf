CREATE OR REPLACE VIEW reporting_detail.fct_usage_workspace_monthly AS
SELECT m.slug AS source_id, m.month_start, m.workspace_id, m.workspace_name,
       CASE WHEN m.days_loaded = m.days_expected THEN coalesce(f.traces, 0) END AS traces,
       m.days_expected, m.days_loaded, m.days_loaded = m.days_expected AS is_complete, m.is_final,
       CASE WHEN m.days_loaded > 0 THEN coalesce(f.traces_loaded, 0) END AS traces_loaded,
       usage.is_month_over(m.month_start) AS is_month_over
FROM usage.month_state m
LEFT JOIN (
  SELECT slug, workspace_id, month_start, sum(traces)::bigint AS traces, sum(traces_loaded)::bigint AS traces_loaded
  FROM usage.monthly_row
  WHERE group_by = 'workspace'
  GROUP BY slug, workspace_id, month_start
) f ON f.slug = m.slug AND f.workspace_id = m.workspace_id AND f.month_start = m.month_start
WHERE m.group_by = 'workspace';
COMMENT ON VIEW reporting_detail.fct_usage_workspace_monthly IS 'Traces by workspace and month. Grain: calendar month (UTC) x workspace (key: source_id, month_start, workspace_id), every month from the data start on. Traces add up over months and workspaces. Null traces: at least one expected day is not loaded. Expected is every day that has ended, and today once it is loaded.';

-- each dimension but workspace
CREATE OR REPLACE VIEW reporting_detail.fct_usage_{dimension}_monthly AS
SELECT slug AS source_id, month_start, workspace_id, workspace_name, {columns}, traces, days_expected, days_loaded,
       days_loaded = days_expected AS is_complete, is_final, traces_loaded, usage.is_month_over(month_start) AS is_month_over
FROM usage.monthly_row d
WHERE group_by = '{dimension}';
COMMENT ON VIEW reporting_detail.fct_usage_{dimension}_monthly IS 'Traces by {title} and month. Grain: calendar month (UTC) x workspace x {title} (key: source_id, month_start, workspace_id, {id_column}), months with usage. A month x workspace with an expected day that is not loaded is one row with null id and null traces: take days for it. Traces add up over all of these. Never add them to those of another dimension.';

-- end
