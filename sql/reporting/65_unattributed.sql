-- The traces of a workspace's day that a dimension attributes, and the rest: records without an id, and traces in no
-- record. Null while either side may still change. Each cell is added up separately: a filter on the day reaches its
-- records, and a preview stops after the first cells.
CREATE OR REPLACE VIEW reporting_detail.usage_unattributed_daily AS
-- Read twice, so that a cell is computed once, not for each cell that it is compared with.
WITH cell AS (SELECT * FROM usage.trace_cell)
SELECT g.slug AS source_id, t.usage_date, g.workspace_id, g.workspace_name, g.group_by,
       t.workspace_traces, t.attributed_traces,
       CASE WHEN f.is_final THEN t.workspace_traces - t.attributed_traces END AS unattributed_traces, f.is_final
FROM cell g
JOIN cell w ON w.source_id = g.source_id AND w.workspace_id = g.workspace_id AND w.group_by = 'workspace'
CROSS JOIN LATERAL (
  SELECT part.usage_date,
         CASE WHEN w.loaded @> part.usage_date THEN coalesce(sum(part.of_workspace), 0)::bigint END AS workspace_traces,
         CASE WHEN g.loaded @> part.usage_date THEN coalesce(sum(part.attributed), 0)::bigint END AS attributed_traces
  FROM (
    SELECT day::date AS usage_date, NULL::bigint AS of_workspace, NULL::bigint AS attributed
    FROM generate_series(g.data_start::timestamp, date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day') day
    WHERE coalesce(g.expected_days @> day::date, false)
    UNION ALL
    SELECT r.bucket_start, CASE WHEN s.scope_id = w.day_scope_id THEN r.traces END,
           CASE WHEN s.scope_id = g.day_scope_id THEN r.traces END
    FROM usage.series s
    JOIN usage.dated_record r USING (series_id)
    JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id <> ''
    WHERE s.scope_id IN (w.day_scope_id, g.day_scope_id)
      -- A record outside the expected days makes no row.
      AND r.bucket_start >= g.data_start AND r.bucket_start <= (now() AT TIME ZONE 'UTC')::date
    UNION ALL
    SELECT day, CASE WHEN s.scope_id = w.hour_scope_id THEN h.traces END,
           CASE WHEN s.scope_id = g.hour_scope_id THEN h.traces END
    FROM usage.series s
    JOIN usage.entity e ON e.entity_id = s.entity_id AND e.external_id <> ''
    CROSS JOIN LATERAL usage.days_of(CASE WHEN s.scope_id = w.hour_scope_id THEN w.days_of_hours
                                          ELSE g.days_of_hours END) day
    CROSS JOIN LATERAL (
      SELECT sum(r.traces)::bigint AS traces
      FROM usage.hourly_record r
      WHERE r.series_id = s.series_id AND r.bucket_start >= day::timestamp AT TIME ZONE 'UTC'
        AND r.bucket_start < (day + 1)::timestamp AT TIME ZONE 'UTC'
    ) h
    WHERE s.scope_id IN (w.hour_scope_id, g.hour_scope_id) AND (w.days_of_hours <> '{}' OR g.days_of_hours <> '{}')
      AND day >= g.data_start AND day <= (now() AT TIME ZONE 'UTC')::date
  ) part
  GROUP BY part.usage_date
) t
CROSS JOIN LATERAL (
  SELECT w.final @> t.usage_date AND g.final @> t.usage_date AS is_final
) f
WHERE g.group_by <> 'workspace';
COMMENT ON VIEW reporting_detail.usage_unattributed_daily IS
  'Traces that name no project, user or API key, by day. Grain: UTC day x workspace x dimension other than workspace '
  '(key: source_id, usage_date, workspace_id, group_by). Traces and costs without an owner are another question: see '
  'the owner (unallocated) in fct_cost_owner_daily. Never add up over dimensions: each counts the same traces. Filter '
  'on usage_date or use LIMIT: ORDER BY alone adds up every day.';
CALL usage.comment_columns('{reporting_detail.usage_unattributed_daily}',
  'workspace_traces',
    'Traces of the day by workspace. Null: not loaded. Adds up over days and workspaces within one group_by.',
  'attributed_traces',
    'Traces of the day whose records have an id in the dimension. Null: not loaded. Adds up over days and workspaces '
    'within one group_by.',
  'unattributed_traces',
    'Traces of the day without an id in the dimension: in records without an id, or in no record at all. Null: one of '
    'the two counts is not final. Adds up over days and workspaces within one group_by.'
);
