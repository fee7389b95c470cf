-- Days whose 24 hours are all loaded while the day itself is not. Only there the hours make up the day's figure.
CREATE OR REPLACE VIEW usage.day_of_hours AS
SELECT x.day_scope_id, x.hour_scope_id, day AS usage_date, t.settled, t.fetched_at, x.slug, x.group_by, x.workspace_id,
       x.workspace_name
FROM usage.cell_time x
CROSS JOIN LATERAL usage.days_of(x.days_of_hours) day
CROSS JOIN LATERAL (
  SELECT bool_and(c.settled) AS settled, min(c.fetched_at) AS fetched_at
  FROM usage.coverage c
  WHERE c.scope_id = x.hour_scope_id AND c.period_start < (day + 1)::timestamp AT TIME ZONE 'UTC'
    AND c.period_end > day::timestamp AT TIME ZONE 'UTC'
) t;

-- Traces of the hours of such a day, by entity. The sum is a subquery for each day and series, so that it reads these 24
-- hours alone, whatever the planner expects.
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

-- One row for each expected day of a cell, from the source's data start to today, with how it is loaded. The status holds
-- for every figure of the day, but for the difference between empty and ok: each figure has its own.
CREATE OR REPLACE VIEW usage.day_state AS
SELECT cell.day_scope_id, cell.hour_scope_id, cell.source_id, cell.slug, cell.data_start, cell.hourly_hours, cell.group_by,
       cell.workspace_id, cell.workspace_name, day::date AS usage_date, t.loaded, t.settled,
       CASE WHEN t.is_day THEN c.fetched_at[width_bucket(day::date, c.starts)] ELSE h.fetched_at END AS fetched_at,
       usage.figure_status(
         t.loaded, n.source_id IS NOT NULL, usage.failure_at(day::date, f.starts, f.ends, f.states), t.settled, NULL
       ) AS status,
       h.day_scope_id IS NOT NULL AS by_hours
FROM usage.cell cell
CROSS JOIN LATERAL generate_series(
  cell.data_start::timestamp, date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day'
) day
LEFT JOIN usage.day_coverage c ON c.scope_id = cell.day_scope_id
LEFT JOIN usage.day_failure f ON f.scope_id = cell.day_scope_id
LEFT JOIN usage.day_of_hours h ON h.day_scope_id = cell.day_scope_id AND h.usage_date = day::date
LEFT JOIN usage.source_fact n ON n.source_id = cell.source_id AND n.fact = 'no_day'
CROSS JOIN LATERAL (SELECT coalesce(c.loaded @> day::date, false) AS is_day) l
CROSS JOIN LATERAL (
  SELECT l.is_day, l.is_day OR h.day_scope_id IS NOT NULL AS loaded,
         CASE WHEN l.is_day THEN c.settled[width_bucket(day::date, c.starts)] ELSE coalesce(h.settled, false) END AS settled
) t;

-- Expected days of a cell that are not loaded. Read from the ranges, not day by day: mostly there are none.
CREATE OR REPLACE VIEW usage.missing_day AS
SELECT x.slug, x.group_by, day AS usage_date, x.workspace_id, x.workspace_name,
       usage.figure_status(
         false, n.source_id IS NOT NULL, usage.failure_at(day, f.starts, f.ends, f.states), false, NULL
       ) AS status
FROM usage.cell_time x
CROSS JOIN LATERAL usage.days_of(
  datemultirange(daterange(x.data_start, greatest(x.data_start, (now() AT TIME ZONE 'UTC')::date + 1)))
    - x.days - x.days_of_hours
) day
LEFT JOIN usage.day_failure f ON f.scope_id = x.day_scope_id
LEFT JOIN usage.source_fact n ON n.source_id = x.source_id AND n.fact = 'no_day';

-- Figures by day and entity. A day that is not loaded is one row without an entity.
CREATE OR REPLACE VIEW usage.daily_row AS
SELECT cell.slug, cell.group_by, r.bucket_start AS usage_date, cell.workspace_id, cell.workspace_name,
       e.dimension_id, e.dimension_name, r.traces,
       c.settled[width_bucket(r.bucket_start, c.starts)] AS settled,
       c.fetched_at[width_bucket(r.bucket_start, c.starts)] AS fetched_at,
       usage.figure_status(
         true, false, usage.failure_at(r.bucket_start, x.starts, x.ends, x.states),
         c.settled[width_bucket(r.bucket_start, c.starts)], r.traces
       ) AS status
FROM usage.cell cell
JOIN usage.series s ON s.scope_id = cell.day_scope_id
JOIN usage.dated_record r USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.day_coverage c ON c.scope_id = cell.day_scope_id
LEFT JOIN usage.day_failure x ON x.scope_id = cell.day_scope_id
UNION ALL
SELECT f.slug, f.group_by, f.usage_date, f.workspace_id, f.workspace_name, e.dimension_id, e.dimension_name, f.traces,
       f.settled, f.fetched_at,
       usage.figure_status(true, false, usage.failure_at(f.usage_date, x.starts, x.ends, x.states), f.settled, f.traces)
FROM usage.figure_of_hours f
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.day_failure x ON x.scope_id = f.day_scope_id
UNION ALL
SELECT slug, group_by, usage_date, workspace_id, workspace_name, NULL, NULL, NULL, false, NULL, status
FROM usage.missing_day;

-- Traces of a workspace by day: from its own record, or from its hours.
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
