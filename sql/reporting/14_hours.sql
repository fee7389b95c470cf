-- One row an hour that is expected of a cell (the last USAGE_HOURLY_FOR) or loaded beyond that.
CREATE OR REPLACE VIEW usage.hour_state AS
SELECT cell.day_scope_id, cell.hour_scope_id, cell.source_id, cell.slug, cell.data_start, cell.hourly_hours, cell.group_by,
       cell.workspace_id, cell.workspace_name, hour AS usage_hour, t.loaded,
       CASE WHEN t.loaded THEN c.settled[width_bucket(hour, c.starts)] ELSE false END AS settled,
       CASE WHEN t.loaded THEN c.fetched_at[width_bucket(hour, c.starts)] END AS fetched_at,
       CASE
         WHEN NOT t.loaded AND n.source_id IS NOT NULL THEN 'not_available'
         WHEN t.failure = 'failed' THEN 'failed'
         WHEN NOT t.loaded AND t.failure IS NULL THEN 'missing'
         WHEN t.failure = 'unverified' THEN 'unverified'
         WHEN NOT c.settled[width_bucket(hour, c.starts)] THEN 'provisional'
         ELSE 'ok'
       END AS status
FROM usage.cell cell
LEFT JOIN usage.hour_coverage c ON c.scope_id = cell.hour_scope_id
LEFT JOIN usage.hour_failure f ON f.scope_id = cell.hour_scope_id
LEFT JOIN usage.source_fact n ON n.source_id = cell.source_id AND n.fact = 'no_hour'
CROSS JOIN LATERAL usage.hours_of(
  coalesce(c.loaded, '{}') * tstzmultirange(tstzrange(NULL, date_trunc('hour', now(), 'UTC') + interval '1 hour'))
    + tstzmultirange(usage.expected_hours(cell.data_start, cell.hourly_hours))
) hour
CROSS JOIN LATERAL (
  SELECT coalesce(c.loaded @> hour, false) AS loaded,
         CASE WHEN hour < f.ends[width_bucket(hour, f.starts)] THEN f.states[width_bucket(hour, f.starts)] END AS failure
) t;

-- Hours that are expected of a cell and not loaded. Taken from the ranges, not hour by hour: mostly there are none.
CREATE OR REPLACE VIEW usage.missing_hour AS
SELECT x.slug, x.group_by, hour AS usage_hour, x.workspace_id, x.workspace_name,
       CASE
         WHEN n.source_id IS NOT NULL THEN 'not_available'
         WHEN hour < f.ends[width_bucket(hour, f.starts)] THEN f.states[width_bucket(hour, f.starts)]
         ELSE 'missing'
       END AS status
FROM usage.cell_time x
CROSS JOIN LATERAL usage.hours_of(
  tstzmultirange(usage.expected_hours(x.data_start, x.hourly_hours)) - x.hours
) hour
LEFT JOIN usage.hour_failure f ON f.scope_id = x.hour_scope_id
LEFT JOIN usage.source_fact n ON n.source_id = x.source_id AND n.fact = 'no_hour';

CREATE OR REPLACE VIEW usage.hourly_row AS
SELECT cell.slug, cell.group_by, r.bucket_start AS usage_hour, cell.workspace_id, cell.workspace_name,
       e.label AS dimension_id, e.name AS dimension_name, r.traces,
       c.settled[width_bucket(r.bucket_start, c.starts)] AS settled,
       c.fetched_at[width_bucket(r.bucket_start, c.starts)] AS fetched_at,
       CASE
         WHEN r.bucket_start < x.ends[width_bucket(r.bucket_start, x.starts)]
           THEN x.states[width_bucket(r.bucket_start, x.starts)]
         WHEN NOT c.settled[width_bucket(r.bucket_start, c.starts)] THEN 'provisional'
         WHEN r.traces = 0 THEN 'empty'
         ELSE 'ok'
       END AS status
FROM usage.cell cell
JOIN usage.series s ON s.scope_id = cell.hour_scope_id
JOIN usage.hourly_record r USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.hour_coverage c ON c.scope_id = cell.hour_scope_id
LEFT JOIN usage.hour_failure x ON x.scope_id = cell.hour_scope_id
UNION ALL
SELECT slug, group_by, usage_hour, workspace_id, workspace_name, NULL, NULL, NULL, false, NULL, status
FROM usage.missing_hour;
