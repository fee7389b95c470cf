-- Traces of each cell by day that carry an id: by workspace all of them. Days and figures are unions and grouped, not joined:
-- then a filter on the day reaches the records.
CREATE OR REPLACE VIEW usage.day_side AS
SELECT source_id, slug, group_by, workspace_id, workspace_name, usage_date,
       CASE WHEN bool_or(loaded) THEN coalesce(sum(traces), 0)::bigint END AS traces, bool_or(is_final) AS is_final
FROM (
  SELECT source_id, slug, group_by, workspace_id, workspace_name, usage_date, loaded,
         usage.is_final(status) AS is_final, NULL::bigint AS traces
  FROM usage.day_state
  UNION ALL
  SELECT cell.source_id, cell.slug, cell.group_by, cell.workspace_id, cell.workspace_name, r.bucket_start, NULL, NULL, r.traces
  FROM usage.cell cell
  JOIN usage.series s ON s.scope_id = cell.day_scope_id
  JOIN usage.dated_record r USING (series_id)
  JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id <> ''
  UNION ALL
  SELECT cell.source_id, f.slug, f.group_by, f.workspace_id, f.workspace_name, f.usage_date, NULL, NULL, f.traces
  FROM usage.figure_of_hours f
  JOIN usage.cell cell USING (day_scope_id)
  JOIN usage.entity e ON e.entity_id = f.entity_id AND e.external_id <> ''
) part
GROUP BY source_id, slug, group_by, workspace_id, workspace_name, usage_date
-- A record outside the expected days makes no row.
HAVING bool_or(loaded) IS NOT NULL;

-- What a dimension attributes of a workspace's day, and the rest: records without an id, and what no record names. Null while
-- either side may still change.
CREATE OR REPLACE VIEW reporting.usage_unattributed_daily AS
SELECT g.slug AS source_id, g.usage_date, g.workspace_id, g.workspace_name, g.group_by,
       w.traces AS workspace_traces, g.traces AS attributed_traces,
       CASE WHEN w.is_final AND g.is_final THEN w.traces - g.traces END AS unattributed_traces,
       w.is_final AND g.is_final AS is_final
FROM usage.day_side g
JOIN usage.day_side w
  ON w.source_id = g.source_id AND w.workspace_id = g.workspace_id AND w.usage_date = g.usage_date
 AND w.group_by = 'workspace'
WHERE g.group_by <> 'workspace';
COMMENT ON VIEW reporting.usage_unattributed_daily IS 'Grain: UTC day x workspace x dimension other than workspace (key: source_id, usage_date, workspace_id, group_by). Never add up over dimensions: each is another view of the same traces.';
