CREATE OR REPLACE VIEW reporting_detail.fct_usage_monthly AS
SELECT m.slug AS source_id, m.month_start, 'workspace' AS group_by, m.workspace_id, m.workspace_name, m.workspace_id AS dimension_id,
       m.workspace_name AS dimension_name, CASE WHEN m.days_loaded = m.days_expected THEN coalesce(f.traces, 0) END AS traces,
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
WHERE m.group_by = 'workspace'
UNION ALL
SELECT slug, month_start, group_by, workspace_id, workspace_name, dimension_id, CASE WHEN group_by <> 'user' THEN dimension_name END, traces,
       days_expected, days_loaded, days_loaded = days_expected, is_final, traces_loaded, usage.is_month_over(month_start)
FROM usage.monthly_row
WHERE group_by <> 'workspace';
COMMENT ON VIEW reporting_detail.fct_usage_monthly IS 'Traces by month. Grain: calendar month (UTC) x dimension x workspace x id (key: source_id, month_start, group_by, workspace_id, dimension_id). Choose ONE group_by: traces add up over the rest, never over two dimensions. By workspace every month from the data start on, and null traces where at least one expected day is not loaded; by another dimension months with usage, and one row with null id and null traces for a month x workspace that is not complete: take days for it. Expected is every day that has ended, and today once it is loaded.';
