CREATE OR REPLACE VIEW reporting_detail.fct_usage_monthly AS
SELECT d.slug AS source_id, d.month_start, d.group_by, d.workspace_id, d.workspace_name, d.dimension_id,
       d.dimension_name, d.traces, d.days_expected, d.days_loaded, d.days_loaded = d.days_expected AS is_complete,
       d.is_final, d.traces_loaded, (d.month_start + interval '1 month') <= (now() AT TIME ZONE 'UTC') AS is_month_over,
       l.traces AS longlived_traces,
       CASE WHEN d.traces >= l.traces THEN d.traces - l.traces END AS shortlived_traces,
       usage.shortlived_status(t.status, d.traces, l.traces) AS tiers_status
FROM (
  SELECT m.slug, m.month_start, m.group_by, m.workspace_id, m.workspace_name, m.workspace_id AS dimension_id,
         m.workspace_name AS dimension_name,
         CASE WHEN m.days_loaded = m.days_expected THEN coalesce(f.traces, 0) END AS traces, m.days_expected,
         m.days_loaded, m.is_final,
         CASE WHEN m.days_loaded > 0 THEN coalesce(f.traces_loaded, 0) END AS traces_loaded, m.workspace_entity_id,
         NULL::integer AS entity_id
  FROM usage.month_state m
  LEFT JOIN (
    SELECT slug, workspace_id, month_start, sum(traces)::bigint AS traces, sum(traces_loaded)::bigint AS traces_loaded
    FROM usage.monthly_row
    WHERE group_by = 'workspace'
    GROUP BY slug, workspace_id, month_start
  ) f ON f.slug = m.slug AND f.workspace_id = m.workspace_id AND f.month_start = m.month_start
  WHERE m.group_by = 'workspace'
  UNION ALL
  SELECT slug, month_start, group_by, workspace_id, workspace_name, dimension_id,
         CASE WHEN group_by <> 'user' THEN dimension_name END, traces, days_expected, days_loaded, is_final,
         traces_loaded, workspace_entity_id, entity_id
  FROM usage.monthly_row
  WHERE group_by <> 'workspace'
) d
-- Groups and sums have at most one row, and the planner sees it: a query that reads no tier runs none of them. The
-- planner does not see that for a column that a query filters on, so the position replaces the dimension.
LEFT JOIN (
  SELECT workspace_entity_id, usage.dimension_position(group_by) AS place, month_start,
         max(longlived_scope_id) AS scope_id, bool_and(is_complete) AS is_complete, max(status) AS status
  FROM usage.tiers_month
  GROUP BY 1, 2, 3
) t
  ON t.workspace_entity_id = d.workspace_entity_id AND t.place = usage.dimension_position(d.group_by)
 AND t.month_start = d.month_start
LEFT JOIN LATERAL (
  SELECT sum(o.traces)::bigint AS traces
  FROM usage.series s
  JOIN usage.monthly_total o USING (series_id)
  WHERE s.scope_id = t.scope_id AND s.entity_id = d.entity_id AND o.month_start = d.month_start
) i ON true
-- A workspace adds up all ids: its long-lived traces may have another spelling of its id than its traces.
LEFT JOIN LATERAL (
  SELECT sum(o.traces)::bigint AS traces
  FROM usage.series s
  JOIN usage.monthly_total o USING (series_id)
  WHERE s.scope_id = t.scope_id AND o.month_start = d.month_start AND d.group_by = 'workspace'
) w ON true
CROSS JOIN LATERAL (
  SELECT CASE WHEN t.is_complete AND d.traces IS NOT NULL THEN coalesce(w.traces, i.traces, 0) END AS traces
) l;
COMMENT ON VIEW reporting_detail.fct_usage_monthly IS
  'Traces by month. Grain: calendar month (UTC) x dimension x workspace x id (key: source_id, month_start, group_by, '
  'workspace_id, dimension_id). Choose ONE group_by: traces add up over the other keys, never over two dimensions. By '
  'workspace there is a row for every month from the data start on; null traces: an expected day is not loaded. By '
  'another dimension there are months with usage, and one row with null id and null traces for an incomplete month of '
  'a workspace: read its days instead. Every day that has ended is expected, and today once it is loaded.';
CALL usage.comment_columns('{reporting_detail.fct_usage_monthly}',
  'days_expected',
    'Days of the month that are expected: from the data start on, every day that has ended, and today once it is '
    'loaded. Adds up over months of one workspace.',
  'days_loaded', 'Expected days that are loaded. Adds up over months of one workspace.',
  'is_complete', 'Whether every expected day is loaded. The current month is complete up to its last ended day.',
  'is_final', 'Whether the month is over and each of its days is final. Later changes are kept as restatements.',
  'traces_loaded',
    'Traces of the loaded days of the month. Once all days are loaded, the same as traces. On a row with a null id: of '
    'all ids. Adds up as traces do. Null: no day is loaded.'
);
