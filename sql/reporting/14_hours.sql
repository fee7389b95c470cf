-- One row for each hour of a cell that is expected (the last USAGE_HOURLY_FOR), or loaded beyond that. The hours come as one
-- list, newest first: a filter on the hour is applied to it once, and a query for the newest hours stops early.
CREATE OR REPLACE VIEW usage.hour_state AS
SELECT x.day_scope_id, x.hour_scope_id, x.source_id, x.slug, x.data_start, x.hourly_hours, x.group_by, x.workspace_id,
       x.workspace_name, h.usage_hour, t.loaded, t.final,
       CASE WHEN t.loaded THEN x.fetched_at[width_bucket(h.usage_hour, x.starts)] END AS fetched_at,
       usage.figure_status(
         t.loaded, x.is_unavailable, usage.failure_at(h.usage_hour, x.failure_starts, x.failure_ends, x.failure_states),
         t.final, NULL
       ) AS status,
       x.hour_series
FROM (
  SELECT usage_hour
  FROM usage.hours_between(
    least(
      (SELECT min(data_start) FROM usage.source)::timestamp AT TIME ZONE 'UTC', (SELECT min(period_start) FROM usage.coverage)
    ), date_trunc('hour', now(), 'UTC')
  ) usage_hour
  ORDER BY usage_hour DESC
) h
JOIN (
  SELECT cell.*, coalesce(c.loaded, '{}') AS loaded, c.starts, c.final, c.fetched_at, f.starts AS failure_starts,
         f.ends AS failure_ends, f.states AS failure_states, n.source_id IS NOT NULL AS is_unavailable,
         coalesce(c.loaded, '{}')
           + tstzmultirange(usage.expected_hours(cell.data_start, cell.hourly_hours)) * usage.time_of(cell.expected_days) AS shown,
         -- Only the view by workspace looks figures up. Other cells have thousands of series.
         CASE WHEN cell.group_by = 'workspace' THEN ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = cell.hour_scope_id) END
           AS hour_series,
         -- Once for each cell, and not for those that a filter leaves out: see usage.cell_days.
         row_number() OVER (PARTITION BY cell.slug, cell.group_by, cell.workspace_id) AS fence
  FROM usage.cell cell
  LEFT JOIN usage.hour_coverage c ON c.scope_id = cell.hour_scope_id
  LEFT JOIN usage.hour_failure f ON f.scope_id = cell.hour_scope_id
  LEFT JOIN usage.source_fact n ON n.source_id = cell.source_id AND n.fact = 'no_hour'
)
-- coalesce: of a bare @> the planner expects one hour in a thousand.
x ON coalesce(x.shown @> h.usage_hour, false)
CROSS JOIN LATERAL (SELECT x.loaded @> h.usage_hour AS loaded) l
CROSS JOIN LATERAL (
  SELECT l.loaded, CASE WHEN l.loaded THEN x.final[width_bucket(h.usage_hour, x.starts)] ELSE false END AS final
) t;

-- Expected hours of a cell that are not loaded. Read from the ranges, not hour by hour: mostly there are none.
CREATE OR REPLACE VIEW usage.missing_hour AS
SELECT x.slug, x.group_by, hour AS usage_hour, x.workspace_id, x.workspace_name,
       usage.figure_status(
         false, n.source_id IS NOT NULL, usage.failure_at(hour, f.starts, f.ends, f.states), false, NULL
       ) AS status
FROM usage.cell_time x
CROSS JOIN LATERAL usage.hours_of(
  tstzmultirange(usage.expected_hours(x.data_start, x.hourly_hours)) * usage.time_of(x.expected_days) - x.hours
) hour
LEFT JOIN usage.hour_failure f ON f.scope_id = x.hour_scope_id
LEFT JOIN usage.source_fact n ON n.source_id = x.source_id AND n.fact = 'no_hour';

-- Figures by hour and entity. An hour that is not loaded is one row without an entity.
CREATE OR REPLACE VIEW usage.hourly_row AS
SELECT cell.slug, cell.group_by, r.bucket_start AS usage_hour, cell.workspace_id, cell.workspace_name,
       e.dimension_id, e.dimension_name, r.traces,
       c.final[width_bucket(r.bucket_start, c.starts)] AS final,
       c.fetched_at[width_bucket(r.bucket_start, c.starts)] AS fetched_at,
       usage.figure_status(
         true, false, usage.failure_at(r.bucket_start, x.starts, x.ends, x.states),
         c.final[width_bucket(r.bucket_start, c.starts)], r.traces
       ) AS status
FROM usage.cell cell
JOIN usage.series s ON s.scope_id = cell.hour_scope_id
JOIN usage.hourly_record r USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.hour_coverage c ON c.scope_id = cell.hour_scope_id
LEFT JOIN usage.hour_failure x ON x.scope_id = cell.hour_scope_id
UNION ALL
SELECT slug, group_by, usage_hour, workspace_id, workspace_name, NULL, NULL, NULL, false, NULL, status
FROM usage.missing_hour;
