CREATE OR REPLACE VIEW reporting_detail.fct_month_close_by_dimension AS
SELECT src.slug AS source_id, m.month_start, c.group_by, w.dimension_id AS workspace_id, w.dimension_name AS workspace_name,
       e.dimension_id, CASE WHEN e.dimension <> 'user' THEN e.dimension_name END AS dimension_name, coalesce(t.traces, 0) AS closed_traces,
       now.traces - coalesce(t.traces, 0) AS adjustment_traces, now.traces AS current_traces, m.closed_at
FROM usage.month_close m
JOIN usage.source src USING (source_id)
JOIN usage.trace_scope c ON c.source_id = m.source_id AND c.stride = 'day'
JOIN usage.series s USING (scope_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
LEFT JOIN usage.closed_workspace x ON x.close_id = m.close_id AND x.workspace_id = c.workspace_id
LEFT JOIN usage.closed_total t ON t.close_id = m.close_id AND t.series_id = s.series_id
CROSS JOIN LATERAL (
  SELECT coalesce(sum(r.traces), 0)::bigint AS traces
  FROM usage.dated_record r
  WHERE r.series_id = s.series_id AND r.bucket_start >= m.month_start
    AND r.bucket_start < (m.month_start + interval '1 month')::date
) now
-- What was left out of the close is no adjustment of it.
WHERE (now.traces > 0 OR t.traces > 0) AND x.is_left_out IS NOT TRUE;
COMMENT ON VIEW reporting_detail.fct_month_close_by_dimension IS 'Closed months by project, user, API key or workspace: traces when closed, and what changed since. Grain: closed calendar month x dimension x workspace x id (key: source_id, month_start, group_by, workspace_id, dimension_id). Costs are in fct_month_close_cost. closed_traces never change. Later changes are adjustment_traces, and the sum of both is current_traces. Workspaces that were left out are in fct_month_close only. Never add up over dimensions.';

CREATE OR REPLACE VIEW reporting_detail.fct_month_close AS
SELECT src.slug AS source_id, m.month_start, w.dimension_id AS workspace_id, w.dimension_name AS workspace_name, x.is_left_out,
       CASE WHEN NOT x.is_left_out THEN coalesce(t.traces, 0) END AS closed_traces, m.closed_at, m.settle_after_seconds,
       m.accepted_disagreements, CASE WHEN NOT x.is_left_out THEN now.traces - coalesce(t.traces, 0) END AS adjustment_traces,
       CASE WHEN NOT x.is_left_out THEN now.traces END AS current_traces
FROM usage.month_close m
JOIN usage.source src USING (source_id)
JOIN usage.closed_workspace x USING (close_id)
JOIN usage.labelled_entity w ON w.entity_id = x.workspace_id
LEFT JOIN (
  SELECT t.close_id, c.workspace_id, sum(t.traces)::bigint AS traces
  FROM usage.closed_total t
  JOIN usage.series s USING (series_id)
  JOIN usage.trace_scope c USING (scope_id)
  WHERE c.group_by = 'workspace'
  GROUP BY t.close_id, c.workspace_id
) t ON t.close_id = x.close_id AND t.workspace_id = x.workspace_id
CROSS JOIN LATERAL (
  SELECT coalesce(sum(r.traces), 0)::bigint AS traces
  FROM usage.trace_scope c
  JOIN usage.series s USING (scope_id)
  JOIN usage.dated_record r USING (series_id)
  WHERE c.source_id = m.source_id AND c.group_by = 'workspace' AND c.stride = 'day' AND c.workspace_id = x.workspace_id
    AND r.bucket_start >= m.month_start AND r.bucket_start < (m.month_start + interval '1 month')::date
) now;
COMMENT ON VIEW reporting_detail.fct_month_close IS 'Closed months by workspace: traces when closed, and what changed since. Grain: closed calendar month x workspace (key: source_id, month_start, workspace_id). Its traces as they were closed, which never change, later changes as adjustment_traces, and current_traces, the sum of both; null where the workspace was left out. All add up over months and workspaces. By project, user and key: fct_month_close_by_dimension. Costs: fct_month_close_cost.';
