-- Days whose 24 hours are all loaded while the day itself is not: only there do hours make up a day's figure.
CREATE OR REPLACE VIEW usage.day_of_hours AS
SELECT x.day_scope_id, x.hour_scope_id, day AS usage_date, t.settled, t.fetched_at, x.slug, x.group_by, x.workspace_id,
       x.workspace_name
FROM usage.cell_time x
CROSS JOIN LATERAL usage.days_of(usage.whole_days(x.hours) - x.days) day
CROSS JOIN LATERAL (
  SELECT bool_and(c.settled) AS settled, min(c.fetched_at) AS fetched_at
  FROM usage.coverage c
  WHERE c.scope_id = x.hour_scope_id AND c.period_start < (day + 1)::timestamp AT TIME ZONE 'UTC'
    AND c.period_end > day::timestamp AT TIME ZONE 'UTC'
) t;

-- What the hours of such a day come to, by entity. The sum stands by itself for each day and series, so that it is made of
-- these 24 hours alone, whatever the planner expects.
CREATE OR REPLACE VIEW usage.figure_of_hours AS
SELECT h.day_scope_id, s.entity_id, h.usage_date, f.traces, h.settled, h.fetched_at, h.slug, h.group_by, h.workspace_id,
       h.workspace_name
FROM usage.day_of_hours h
JOIN usage.series s ON s.scope_id = h.hour_scope_id
CROSS JOIN LATERAL (
  SELECT sum(r.traces)::bigint AS traces
  FROM usage.hourly_record r
  WHERE r.series_id = s.series_id
    AND r.bucket_start >= h.usage_date::timestamp AT TIME ZONE 'UTC'
    AND r.bucket_start < (h.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
) f
WHERE f.traces IS NOT NULL;

-- Figures of a cell by day and entity, each with the coverage that it stands in. Records exist only inside coverage.
CREATE OR REPLACE VIEW usage.daily_figure AS
SELECT s.scope_id AS day_scope_id, s.entity_id, r.bucket_start AS usage_date, r.traces,
       c.settled[width_bucket(r.bucket_start, c.starts)] AS settled,
       c.fetched_at[width_bucket(r.bucket_start, c.starts)] AS fetched_at
FROM usage.scope d
JOIN usage.series s USING (scope_id)
JOIN usage.dated_record r USING (series_id)
LEFT JOIN usage.day_coverage c ON c.scope_id = d.scope_id
WHERE d.stride = 'day'
UNION ALL
SELECT day_scope_id, entity_id, usage_date, traces, settled, fetched_at
FROM usage.figure_of_hours;

-- One row a day that is expected of a cell, from the source's data start to today, with how it is loaded.
CREATE OR REPLACE VIEW usage.day_state AS
SELECT cell.day_scope_id, cell.hour_scope_id, cell.source_id, cell.slug, cell.data_start, cell.hourly_hours, cell.group_by,
       cell.workspace_id, cell.workspace_name, day::date AS usage_date, t.is_day OR h.day_scope_id IS NOT NULL AS loaded,
       CASE WHEN t.is_day THEN c.settled[width_bucket(day::date, c.starts)] ELSE coalesce(h.settled, false) END AS settled,
       CASE WHEN t.is_day THEN c.fetched_at[width_bucket(day::date, c.starts)] ELSE h.fetched_at END AS fetched_at,
       -- What came before is the same for every figure of the day; empty and ok are told apart by the figures.
       CASE
         WHEN NOT t.is_day AND h.day_scope_id IS NULL AND n.source_id IS NOT NULL THEN 'not_available'
         WHEN t.failure = 'failed' THEN 'failed'
         WHEN NOT t.is_day AND h.day_scope_id IS NULL AND t.failure IS NULL THEN 'missing'
         WHEN t.failure = 'unverified' THEN 'unverified'
         WHEN NOT CASE WHEN t.is_day THEN c.settled[width_bucket(day::date, c.starts)] ELSE h.settled END THEN 'provisional'
         ELSE 'ok'
       END AS status,
       h.day_scope_id IS NOT NULL AS by_hours
FROM usage.cell cell
CROSS JOIN LATERAL generate_series(
  cell.data_start::timestamp, date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day'
) day
LEFT JOIN usage.day_coverage c ON c.scope_id = cell.day_scope_id
LEFT JOIN usage.day_failure f ON f.scope_id = cell.day_scope_id
LEFT JOIN usage.day_of_hours h ON h.day_scope_id = cell.day_scope_id AND h.usage_date = day::date
LEFT JOIN usage.source_fact n ON n.source_id = cell.source_id AND n.fact = 'no_day'
CROSS JOIN LATERAL (
  SELECT coalesce(c.loaded @> day::date, false) AS is_day,
         CASE
           WHEN day::date < f.ends[width_bucket(day::date, f.starts)] THEN f.states[width_bucket(day::date, f.starts)]
         END AS failure
) t;

-- Days that are expected of a cell and not loaded. Taken from the ranges, not day by day: mostly there are none.
CREATE OR REPLACE VIEW usage.missing_day AS
SELECT x.slug, x.group_by, day AS usage_date, x.workspace_id, x.workspace_name,
       CASE
         WHEN n.source_id IS NOT NULL THEN 'not_available'
         WHEN day < f.ends[width_bucket(day, f.starts)] THEN f.states[width_bucket(day, f.starts)]
         ELSE 'missing'
       END AS status
FROM usage.cell_time x
CROSS JOIN LATERAL usage.days_of(
  datemultirange(daterange(x.data_start, greatest(x.data_start, (now() AT TIME ZONE 'UTC')::date + 1)))
    - x.days - usage.whole_days(x.hours)
) day
LEFT JOIN usage.day_failure f ON f.scope_id = x.day_scope_id
LEFT JOIN usage.source_fact n ON n.source_id = x.source_id AND n.fact = 'no_day';

-- Figures by day and entity, and one row without entity for each day that is not loaded.
CREATE OR REPLACE VIEW usage.daily_row AS
SELECT cell.slug, cell.group_by, r.bucket_start AS usage_date, cell.workspace_id, cell.workspace_name,
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
JOIN usage.series s ON s.scope_id = cell.day_scope_id
JOIN usage.dated_record r USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.day_coverage c ON c.scope_id = cell.day_scope_id
LEFT JOIN usage.day_failure x ON x.scope_id = cell.day_scope_id
UNION ALL
SELECT f.slug, f.group_by, f.usage_date, f.workspace_id, f.workspace_name, e.label, e.name, f.traces, f.settled,
       f.fetched_at,
       CASE
         WHEN f.usage_date < x.ends[width_bucket(f.usage_date, x.starts)]
           THEN x.states[width_bucket(f.usage_date, x.starts)]
         WHEN NOT f.settled THEN 'provisional'
         WHEN f.traces = 0 THEN 'empty'
         ELSE 'ok'
       END
FROM usage.figure_of_hours f
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.day_failure x ON x.scope_id = f.day_scope_id
UNION ALL
SELECT slug, group_by, usage_date, workspace_id, workspace_name, NULL, NULL, NULL, false, NULL, status
FROM usage.missing_day;

-- What a workspace comes to a day: by its own record, or by its hours.
CREATE OR REPLACE VIEW usage.workspace_day AS
SELECT day_scope_id, usage_date, sum(traces)::bigint AS traces
FROM (
  SELECT d.scope_id AS day_scope_id, r.bucket_start AS usage_date, r.traces
  FROM usage.scope d
  JOIN usage.series s USING (scope_id)
  JOIN usage.dated_record r USING (series_id)
  WHERE d.group_by = 'workspace' AND d.stride = 'day'
  UNION ALL
  SELECT day_scope_id, usage_date, traces FROM usage.figure_of_hours WHERE group_by = 'workspace'
) f
GROUP BY day_scope_id, usage_date;
