-- Traces of the hours of a day. A function, because few days are made of hours: in the view itself, Postgres would
-- expect this to run for each day, and compile the plan first. Readers may not read the table, so it runs as its owner.
CREATE OR REPLACE FUNCTION usage.traces_of_hours(series integer[], usage_date date) RETURNS bigint
LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT sum(r.traces)::bigint
  FROM usage.hourly_record r
  WHERE r.series_id = ANY (series) AND r.bucket_start >= usage_date::timestamp AT TIME ZONE 'UTC'
    AND r.bucket_start < (usage_date + 1)::timestamp AT TIME ZONE 'UTC'
$$;

-- Traces by entity of days whose 24 hours are all loaded while the day itself is not. Only on these days do the hours
-- make up the day's figure. The sum is a subquery for each day and series, so that it reads these 24 hours alone,
-- whatever the planner expects.
CREATE OR REPLACE VIEW usage.figure_of_hours AS
SELECT x.day_scope_id, s.entity_id, day AS usage_date, f.traces,
       usage.status_at(day, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status, t.fetched_at,
       x.slug, x.group_by, x.workspace_entity_id, x.workspace_id, x.workspace_name
FROM usage.trace_cell x
CROSS JOIN LATERAL usage.days_of(x.days_of_hours) day
CROSS JOIN LATERAL (
  SELECT min(c.fetched_at) AS fetched_at
  FROM usage.coverage c
  WHERE c.scope_id = x.hour_scope_id AND c.period_start < (day + 1)::timestamp AT TIME ZONE 'UTC'
    AND c.period_end > day::timestamp AT TIME ZONE 'UTC'
) t
JOIN usage.series s ON s.scope_id = x.hour_scope_id
CROSS JOIN LATERAL (
  SELECT sum(r.traces)::bigint AS traces
  FROM usage.hourly_record r
  WHERE r.series_id = s.series_id
    AND r.bucket_start >= day::timestamp AT TIME ZONE 'UTC'
    AND r.bucket_start < (day + 1)::timestamp AT TIME ZONE 'UTC'
) f
WHERE f.traces IS NOT NULL;

-- One row for each expected day of a cell, from the source's data start to today, with how it is loaded. The status
-- applies to every figure of the day, except that each figure is empty or ok separately. The days come as one list,
-- newest first: a filter on the day is applied to it once, and a query for the newest days stops early.
CREATE OR REPLACE VIEW usage.expected_day AS
SELECT x.slug, x.group_by, x.workspace_id, x.workspace_name, d.usage_date, t.loaded,
       CASE
         WHEN x.own_days @> d.usage_date THEN x.fetched_at[width_bucket(d.usage_date, x.fetched_days)]
         WHEN t.by_hours THEN (
           SELECT min(c.fetched_at) FROM usage.coverage c
           WHERE c.scope_id = x.hour_scope_id AND c.period_start < (d.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
             AND c.period_end > d.usage_date::timestamp AT TIME ZONE 'UTC'
         )
       END AS fetched_at,
       usage.status_at(d.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status,
       x.traced @> d.usage_date AS has_traces, t.by_hours, x.day_series, x.hour_series,
       nullif(p.reconciled_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS reconciled_at,
       nullif(p.matched_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS matched_at,
       nullif(p.proved_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS proved_at, x.workspace_entity_id,
       x.day_scope_id
FROM (
  SELECT usage_date
  FROM usage.days_between((SELECT min(data_start) FROM usage.source), (now() AT TIME ZONE 'UTC')::date) usage_date
  ORDER BY usage_date DESC
) d
-- coalesce, because the planner expects one day in a thousand to match a bare @>.
JOIN (
  SELECT c.*, f.days AS fetched_days, f.fetched_at,
         -- Only the view by workspace looks figures up. Other cells have thousands of series.
         CASE WHEN c.group_by = 'workspace'
                THEN ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = c.day_scope_id) END
           AS day_series,
         CASE WHEN c.group_by = 'workspace'
                THEN ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = c.hour_scope_id) END
           AS hour_series,
         -- This column is never read, so it is never computed. Like OFFSET 0, it keeps the planner from computing the
         -- others for each day: once for each cell is enough. But a filter on these columns still excludes the cells of
         -- other workspaces.
         row_number() OVER (PARTITION BY c.slug, c.group_by, c.workspace_id) AS fence
  FROM usage.trace_cell c
  LEFT JOIN usage.fetched f ON f.scope_id = c.day_scope_id
) x ON coalesce(x.expected @> d.usage_date, false)
-- Only a loaded day is proved, even if somebody deleted coverage by hand.
LEFT JOIN usage.day_proof p ON p.scope_id = x.day_scope_id AND x.own_days @> d.usage_date
CROSS JOIN LATERAL (
  SELECT x.loaded @> d.usage_date AS loaded, x.days_of_hours @> d.usage_date AS by_hours
) t;

-- Figures by day and entity. A day that is not loaded is one row without an entity.
CREATE OR REPLACE VIEW usage.daily_row AS
SELECT x.slug, x.group_by, r.bucket_start AS usage_date, x.workspace_entity_id, x.workspace_id, x.workspace_name,
       e.dimension_id, e.dimension_name, r.traces, c.fetched_at[width_bucket(r.bucket_start, c.days)] AS fetched_at,
       CASE WHEN r.traces = 0 AND x.final @> r.bucket_start THEN 'empty'
            ELSE usage.status_at(r.bucket_start, x.final, x.not_available, x.failed, x.missing, x.unverified)
       END AS status,
       nullif(p.reconciled_at[width_bucket(r.bucket_start, p.starts)], '-infinity') AS reconciled_at,
       nullif(p.matched_at[width_bucket(r.bucket_start, p.starts)], '-infinity') AS matched_at,
       nullif(p.proved_at[width_bucket(r.bucket_start, p.starts)], '-infinity') AS proved_at, s.entity_id
FROM usage.trace_cell x
JOIN usage.series s ON s.scope_id = x.day_scope_id
JOIN usage.dated_record r USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.fetched c ON c.scope_id = x.day_scope_id
LEFT JOIN usage.day_proof p ON p.scope_id = x.day_scope_id
UNION ALL
SELECT f.slug, f.group_by, f.usage_date, f.workspace_entity_id, f.workspace_id, f.workspace_name, e.dimension_id,
       e.dimension_name, f.traces, f.fetched_at,
       CASE WHEN f.traces = 0 AND f.status = 'ok' THEN 'empty' ELSE f.status END,
       -- Only the record of a day itself is ever compared, never its hours.
       NULL, NULL, NULL, f.entity_id
FROM usage.figure_of_hours f
JOIN usage.labelled_entity e USING (entity_id)
UNION ALL
-- Expected days that are not loaded. They are read from the sets, not day by day, since most cells have no such day.
SELECT x.slug, x.group_by, day, x.workspace_entity_id, x.workspace_id, x.workspace_name, NULL, NULL, NULL, NULL,
       usage.status_at(day, x.final, x.not_available, x.failed, x.missing, x.unverified), NULL, NULL, NULL, NULL
FROM usage.trace_cell x
CROSS JOIN LATERAL usage.days_of(x.expected - x.loaded) day;
