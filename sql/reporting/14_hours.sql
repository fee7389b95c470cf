-- One row for each hour of a cell that is expected (the last USAGE_HOURLY_FOR), or loaded beyond that.
CREATE OR REPLACE VIEW usage.hour_state AS
SELECT cell.day_scope_id, cell.hour_scope_id, cell.source_id, cell.slug, cell.data_start, cell.hourly_hours, cell.group_by,
       cell.workspace_id, cell.workspace_name, hour AS usage_hour, t.loaded, t.settled,
       CASE WHEN t.loaded THEN c.fetched_at[width_bucket(hour, c.starts)] END AS fetched_at,
       usage.figure_status(
         t.loaded, n.source_id IS NOT NULL, usage.failure_at(hour, f.starts, f.ends, f.states), t.settled, NULL
       ) AS status
FROM usage.cell cell
LEFT JOIN usage.hour_coverage c ON c.scope_id = cell.hour_scope_id
LEFT JOIN usage.hour_failure f ON f.scope_id = cell.hour_scope_id
LEFT JOIN usage.source_fact n ON n.source_id = cell.source_id AND n.fact = 'no_hour'
CROSS JOIN LATERAL usage.hours_of(
  coalesce(c.loaded, '{}') * tstzmultirange(tstzrange(NULL, date_trunc('hour', now(), 'UTC') + interval '1 hour'))
    + tstzmultirange(usage.expected_hours(cell.data_start, cell.hourly_hours))
) hour
CROSS JOIN LATERAL (SELECT coalesce(c.loaded @> hour, false) AS loaded) l
CROSS JOIN LATERAL (
  SELECT l.loaded, CASE WHEN l.loaded THEN c.settled[width_bucket(hour, c.starts)] ELSE false END AS settled
) t;

-- Expected hours of a cell that are not loaded. Read from the ranges, not hour by hour: mostly there are none.
CREATE OR REPLACE VIEW usage.missing_hour AS
SELECT x.slug, x.group_by, hour AS usage_hour, x.workspace_id, x.workspace_name,
       usage.figure_status(
         false, n.source_id IS NOT NULL, usage.failure_at(hour, f.starts, f.ends, f.states), false, NULL
       ) AS status
FROM usage.cell_time x
CROSS JOIN LATERAL usage.hours_of(
  tstzmultirange(usage.expected_hours(x.data_start, x.hourly_hours)) - x.hours
) hour
LEFT JOIN usage.hour_failure f ON f.scope_id = x.hour_scope_id
LEFT JOIN usage.source_fact n ON n.source_id = x.source_id AND n.fact = 'no_hour';

-- Figures by hour and entity. An hour that is not loaded is one row without an entity.
CREATE OR REPLACE VIEW usage.hourly_row AS
SELECT cell.slug, cell.group_by, r.bucket_start AS usage_hour, cell.workspace_id, cell.workspace_name,
       e.dimension_id, e.dimension_name, r.traces,
       c.settled[width_bucket(r.bucket_start, c.starts)] AS settled,
       c.fetched_at[width_bucket(r.bucket_start, c.starts)] AS fetched_at,
       usage.figure_status(
         true, false, usage.failure_at(r.bucket_start, x.starts, x.ends, x.states),
         c.settled[width_bucket(r.bucket_start, c.starts)], r.traces
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
