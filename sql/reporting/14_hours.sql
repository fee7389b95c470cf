-- One row for each hour of a cell that is expected (the last USAGE_HOURLY_FOR), or loaded beyond that. The hours come as one
-- list, newest first: a filter on the hour is applied to it once, and a query for the newest hours stops early.
CREATE OR REPLACE VIEW usage.expected_hour AS
SELECT x.slug, x.group_by, x.workspace_id, x.workspace_name, h.usage_hour, t.loaded,
       CASE WHEN t.loaded THEN x.fetched_at[width_bucket(h.usage_hour, x.starts)] END AS fetched_at,
       usage.hour_status(h.usage_hour, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status, x.hour_series
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
  SELECT c.*, f.starts, f.fetched_at,
         -- Only the view by workspace looks figures up. Other cells have thousands of series.
         CASE WHEN c.group_by = 'workspace' THEN ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = c.hour_scope_id) END
           AS hour_series,
         -- Once for each cell, and not for those that a filter leaves out: see usage.cell_days.
         row_number() OVER (PARTITION BY c.slug, c.group_by, c.workspace_id) AS fence
  FROM usage.hour_cell c
  LEFT JOIN usage.hour_fetched f ON f.scope_id = c.hour_scope_id
)
-- coalesce: of a bare @> the planner expects one hour in a thousand.
x ON coalesce(x.shown @> h.usage_hour, false)
CROSS JOIN LATERAL (SELECT x.loaded @> h.usage_hour AS loaded) t;

-- Figures by hour and entity. An hour that is not loaded is one row without an entity.
CREATE OR REPLACE VIEW usage.hourly_row AS
SELECT x.slug, x.group_by, r.bucket_start AS usage_hour, x.workspace_id, x.workspace_name,
       e.dimension_id, e.dimension_name, r.traces, c.fetched_at[width_bucket(r.bucket_start, c.starts)] AS fetched_at,
       CASE WHEN r.traces = 0 AND x.final @> r.bucket_start THEN 'empty'
            ELSE usage.hour_status(r.bucket_start, x.final, x.not_available, x.failed, x.missing, x.unverified) END AS status
FROM usage.hour_cell x
JOIN usage.series s ON s.scope_id = x.hour_scope_id
JOIN usage.hourly_record r USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.hour_fetched c ON c.scope_id = x.hour_scope_id
UNION ALL
-- Expected hours that are not loaded. Read from the sets, not hour by hour: mostly there are none.
SELECT x.slug, x.group_by, hour, x.workspace_id, x.workspace_name, NULL, NULL, NULL, NULL,
       usage.hour_status(hour, x.final, x.not_available, x.failed, x.missing, x.unverified)
FROM usage.hour_cell x
CROSS JOIN LATERAL usage.hours_of(x.expected - x.loaded) hour;
