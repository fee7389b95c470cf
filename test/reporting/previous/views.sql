-- The views of an earlier release, as its `migrate` left them: what upgrade.test.ts starts from. Its last migration is 0010.

-- What the reporting views are made of. Not for readers: they see the schema reporting alone.

-- The current name of each entity: that of the latest bucket, ties by the newest fetch.
CREATE OR REPLACE VIEW usage.labelled_entity AS
SELECT e.entity_id, e.source_id, e.dimension, e.first_seen_at, e.last_seen_at, n.name,
       CASE WHEN e.external_id = '' THEN '(none)' ELSE e.external_id END AS label
FROM usage.entity e
LEFT JOIN (
  SELECT DISTINCT ON (entity_id) entity_id, name
  FROM usage.entity_name
  ORDER BY entity_id, last_bucket DESC, fetch_number DESC, name
) n USING (entity_id);

-- Source x grouping x workspace: what a day's figure is kept for, as one scope of days and one of hours.
CREATE OR REPLACE VIEW usage.cell AS
SELECT d.scope_id AS day_scope_id, h.scope_id AS hour_scope_id, d.source_id, s.slug, s.data_start, s.hourly_hours,
       d.group_by, w.label AS workspace_id, w.name AS workspace_name
FROM usage.scope d
JOIN usage.source s USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = d.workspace_id
LEFT JOIN usage.scope h
  ON h.source_id = d.source_id AND h.kind = d.kind AND h.trace_tier = d.trace_tier AND h.group_by = d.group_by
 AND h.workspace_id = d.workspace_id AND h.stride = 'hour'
WHERE d.stride = 'day' AND d.kind = 'traces' AND d.trace_tier = 'all';

-- Days whose 24 hours are all loaded while the day itself is not: only there do hours make up a day's figure.
CREATE OR REPLACE VIEW usage.day_of_hours AS
SELECT cell.day_scope_id, cell.hour_scope_id, day::date AS usage_date,
       bool_and(c.settled) AS settled, min(c.fetched_at) AS fetched_at
FROM usage.cell cell
JOIN usage.coverage c ON c.scope_id = cell.hour_scope_id
CROSS JOIN LATERAL generate_series(
  date_trunc('day', c.period_start AT TIME ZONE 'UTC'),
  date_trunc('day', (c.period_end - interval '1 microsecond') AT TIME ZONE 'UTC'),
  interval '1 day'
) day
WHERE NOT EXISTS (
  SELECT FROM usage.coverage d
  WHERE d.scope_id = cell.day_scope_id
    AND d.period_start <= day AT TIME ZONE 'UTC' AND d.period_end > day AT TIME ZONE 'UTC'
)
GROUP BY cell.day_scope_id, cell.hour_scope_id, day
HAVING sum(
  least(c.period_end, (day + interval '1 day') AT TIME ZONE 'UTC') - greatest(c.period_start, day AT TIME ZONE 'UTC')
) = interval '24 hours';

-- Figures of a cell by day and entity, each with the coverage that it stands in. Records exist only inside coverage.
CREATE OR REPLACE VIEW usage.daily_figure AS
SELECT s.scope_id AS day_scope_id, s.entity_id, r.bucket_start AS usage_date, r.traces, c.settled, c.fetched_at
FROM usage.scope d
JOIN usage.series s USING (scope_id)
JOIN usage.dated_record r USING (series_id)
JOIN usage.coverage c
  ON c.scope_id = d.scope_id
 AND c.period_start <= r.bucket_start::timestamp AT TIME ZONE 'UTC'
 AND c.period_end > r.bucket_start::timestamp AT TIME ZONE 'UTC'
WHERE d.stride = 'day'
UNION ALL
SELECT h.day_scope_id, s.entity_id, h.usage_date, sum(r.traces)::bigint, h.settled, h.fetched_at
FROM usage.day_of_hours h
JOIN usage.series s ON s.scope_id = h.hour_scope_id
JOIN usage.hourly_record r
  ON r.series_id = s.series_id
 AND r.bucket_start >= h.usage_date::timestamp AT TIME ZONE 'UTC'
 AND r.bucket_start < (h.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
GROUP BY h.day_scope_id, s.entity_id, h.usage_date, h.settled, h.fetched_at;

-- One row a day that is expected of a cell, from the source's data start to today, with how it is loaded.
CREATE OR REPLACE VIEW usage.day_state AS
SELECT cell.*, day::date AS usage_date,
       (c.scope_id IS NOT NULL OR h.day_scope_id IS NOT NULL) AS loaded,
       coalesce(c.settled, h.settled, false) AS settled,
       coalesce(c.fetched_at, h.fetched_at) AS fetched_at,
       -- What came before is the same for every figure of the day; empty and ok are told apart by the figures.
       CASE
         WHEN c.scope_id IS NULL AND h.day_scope_id IS NULL AND n.source_id IS NOT NULL THEN 'not_available'
         WHEN f.state = 'failed' THEN 'failed'
         WHEN c.scope_id IS NULL AND h.day_scope_id IS NULL AND f.state IS NULL THEN 'missing'
         WHEN f.state = 'unverified' THEN 'unverified'
         WHEN NOT coalesce(c.settled, h.settled) THEN 'provisional'
         ELSE 'ok'
       END AS status
FROM usage.cell cell
CROSS JOIN LATERAL generate_series(
  cell.data_start::timestamp, date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day'
) day
LEFT JOIN usage.coverage c
  ON c.scope_id = cell.day_scope_id
 AND c.period_start <= day AT TIME ZONE 'UTC' AND c.period_end > day AT TIME ZONE 'UTC'
LEFT JOIN usage.day_of_hours h ON h.day_scope_id = cell.day_scope_id AND h.usage_date = day::date
LEFT JOIN usage.failure f
  ON f.scope_id = cell.day_scope_id
 AND f.period_start <= day AT TIME ZONE 'UTC' AND f.period_end > day AT TIME ZONE 'UTC'
LEFT JOIN usage.source_fact n ON n.source_id = cell.source_id AND n.fact = 'no_day';

-- One row an hour that is expected of a cell (the last USAGE_HOURLY_FOR) or loaded beyond that.
CREATE OR REPLACE VIEW usage.hour_state AS
SELECT cell.*, hour AS usage_hour, c.scope_id IS NOT NULL AS loaded, coalesce(c.settled, false) AS settled, c.fetched_at,
       CASE
         WHEN c.scope_id IS NULL AND n.source_id IS NOT NULL THEN 'not_available'
         WHEN f.state = 'failed' THEN 'failed'
         WHEN c.scope_id IS NULL AND f.state IS NULL THEN 'missing'
         WHEN f.state = 'unverified' THEN 'unverified'
         WHEN NOT c.settled THEN 'provisional'
         ELSE 'ok'
       END AS status
FROM usage.cell cell
CROSS JOIN LATERAL (
  SELECT hour
  FROM generate_series(
    greatest(
      cell.data_start::timestamp AT TIME ZONE 'UTC',
      date_trunc('day', now() AT TIME ZONE 'UTC' - make_interval(hours => cell.hourly_hours)) AT TIME ZONE 'UTC'
    ),
    date_trunc('hour', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC',
    interval '1 hour'
  ) hour
  UNION
  SELECT hour
  FROM usage.coverage c
  CROSS JOIN LATERAL generate_series(c.period_start, c.period_end - interval '1 hour', interval '1 hour') hour
  WHERE c.scope_id = cell.hour_scope_id AND hour <= now()
) expected
LEFT JOIN usage.coverage c ON c.scope_id = cell.hour_scope_id AND c.period_start <= hour AND c.period_end > hour
LEFT JOIN usage.failure f ON f.scope_id = cell.hour_scope_id AND f.period_start <= hour AND f.period_end > hour
LEFT JOIN usage.source_fact n ON n.source_id = cell.source_id AND n.fact = 'no_hour';

-- Figures by day and entity, and one row without entity for each day that is not loaded.
CREATE OR REPLACE VIEW usage.daily_row AS
SELECT cell.slug, cell.group_by, f.usage_date, cell.workspace_id, cell.workspace_name,
       e.label AS dimension_id, e.name AS dimension_name, f.traces, f.settled, f.fetched_at,
       CASE
         WHEN x.state IS NOT NULL THEN x.state
         WHEN NOT f.settled THEN 'provisional'
         WHEN f.traces = 0 THEN 'empty'
         ELSE 'ok'
       END AS status
FROM usage.cell cell
JOIN usage.daily_figure f USING (day_scope_id)
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.failure x
  ON x.scope_id = cell.day_scope_id
 AND x.period_start <= f.usage_date::timestamp AT TIME ZONE 'UTC'
 AND x.period_end > f.usage_date::timestamp AT TIME ZONE 'UTC'
UNION ALL
SELECT slug, group_by, usage_date, workspace_id, workspace_name, NULL, NULL, NULL, false, NULL, status
FROM usage.day_state
WHERE NOT loaded;

CREATE OR REPLACE VIEW usage.hourly_row AS
SELECT cell.slug, cell.group_by, r.bucket_start AS usage_hour, cell.workspace_id, cell.workspace_name,
       e.label AS dimension_id, e.name AS dimension_name, r.traces, c.settled, c.fetched_at,
       CASE
         WHEN x.state IS NOT NULL THEN x.state
         WHEN NOT c.settled THEN 'provisional'
         WHEN r.traces = 0 THEN 'empty'
         ELSE 'ok'
       END AS status
FROM usage.cell cell
JOIN usage.series s ON s.scope_id = cell.hour_scope_id
JOIN usage.hourly_record r USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
JOIN usage.coverage c
  ON c.scope_id = cell.hour_scope_id AND c.period_start <= r.bucket_start AND c.period_end > r.bucket_start
LEFT JOIN usage.failure x
  ON x.scope_id = cell.hour_scope_id AND x.period_start <= r.bucket_start AND x.period_end > r.bucket_start
UNION ALL
SELECT slug, group_by, usage_hour, workspace_id, workspace_name, NULL, NULL, NULL, false, NULL, status
FROM usage.hour_state
WHERE NOT loaded;
CREATE OR REPLACE VIEW reporting.fct_usage_workspace_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name,
       CASE WHEN d.loaded THEN coalesce(sum(f.traces), 0)::bigint END AS traces,
       d.loaded AND d.settled AND d.status IN ('ok', 'empty') AS is_final,
       CASE WHEN d.status = 'ok' AND coalesce(sum(f.traces), 0) = 0 THEN 'empty' ELSE d.status END AS coverage_status,
       d.fetched_at
FROM usage.day_state d
LEFT JOIN usage.daily_figure f ON f.day_scope_id = d.day_scope_id AND f.usage_date = d.usage_date
WHERE d.group_by = 'workspace'
GROUP BY d.slug, d.usage_date, d.workspace_id, d.workspace_name, d.loaded, d.settled, d.status, d.fetched_at;

CREATE OR REPLACE VIEW reporting.fct_usage_project_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, dimension_id AS project_id,
       dimension_name AS project_name, traces, settled AND status IN ('ok', 'empty') AS is_final,
       status AS coverage_status, fetched_at
FROM usage.daily_row
WHERE group_by = 'project';

CREATE OR REPLACE VIEW reporting.fct_usage_user_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, dimension_id AS user_id,
       dimension_name AS user_email, traces, settled AND status IN ('ok', 'empty') AS is_final,
       status AS coverage_status, fetched_at
FROM usage.daily_row
WHERE group_by = 'user';

CREATE OR REPLACE VIEW reporting.fct_usage_api_key_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, dimension_id AS api_key_short_key,
       traces, settled AND status IN ('ok', 'empty') AS is_final, status AS coverage_status, fetched_at
FROM usage.daily_row
WHERE group_by = 'api_key';
CREATE OR REPLACE VIEW reporting.fct_usage_workspace_hourly AS
SELECT h.slug AS source_id, h.usage_hour, h.workspace_id, h.workspace_name,
       CASE WHEN h.loaded THEN coalesce(sum(r.traces), 0)::bigint END AS traces,
       h.loaded AND h.settled AND h.status IN ('ok', 'empty') AS is_final,
       CASE WHEN h.status = 'ok' AND coalesce(sum(r.traces), 0) = 0 THEN 'empty' ELSE h.status END AS coverage_status,
       h.fetched_at
FROM usage.hour_state h
LEFT JOIN usage.series s ON s.scope_id = h.hour_scope_id
LEFT JOIN usage.hourly_record r ON r.series_id = s.series_id AND r.bucket_start = h.usage_hour
WHERE h.group_by = 'workspace'
GROUP BY h.slug, h.usage_hour, h.workspace_id, h.workspace_name, h.loaded, h.settled, h.status, h.fetched_at;

CREATE OR REPLACE VIEW reporting.fct_usage_project_hourly AS
SELECT slug AS source_id, usage_hour, workspace_id, workspace_name, dimension_id AS project_id,
       dimension_name AS project_name, traces, settled AND status IN ('ok', 'empty') AS is_final,
       status AS coverage_status, fetched_at
FROM usage.hourly_row
WHERE group_by = 'project';

CREATE OR REPLACE VIEW reporting.fct_usage_user_hourly AS
SELECT slug AS source_id, usage_hour, workspace_id, workspace_name, dimension_id AS user_id,
       dimension_name AS user_email, traces, settled AND status IN ('ok', 'empty') AS is_final,
       status AS coverage_status, fetched_at
FROM usage.hourly_row
WHERE group_by = 'user';

CREATE OR REPLACE VIEW reporting.fct_usage_api_key_hourly AS
SELECT slug AS source_id, usage_hour, workspace_id, workspace_name, dimension_id AS api_key_short_key,
       traces, settled AND status IN ('ok', 'empty') AS is_final, status AS coverage_status, fetched_at
FROM usage.hourly_row
WHERE group_by = 'api_key';
CREATE OR REPLACE VIEW reporting.usage_record AS
SELECT src.slug AS source_id, c.group_by, c.stride, r.bucket_start AS period_start,
       r.bucket_start + interval '1 hour' AS period_end, w.label AS workspace_id, e.label AS dimension_id,
       e.name AS dimension_name, r.traces, v.settled AS is_settled, v.fetched_at
FROM usage.hourly_record r
JOIN usage.series s USING (series_id)
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
JOIN usage.coverage v
  ON v.scope_id = c.scope_id AND v.period_start <= r.bucket_start AND v.period_end > r.bucket_start
UNION ALL
SELECT src.slug, c.group_by, c.stride, r.bucket_start::timestamp AT TIME ZONE 'UTC',
       (r.bucket_start + CASE c.stride WHEN 'day' THEN 1 WHEN 'week' THEN 7 WHEN 'month' THEN 30 ELSE 365 END)::timestamp
         AT TIME ZONE 'UTC',
       w.label, e.label, e.name, r.traces, v.settled, v.fetched_at
FROM usage.dated_record r
JOIN usage.series s USING (series_id)
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
JOIN usage.coverage v
  ON v.scope_id = c.scope_id
 AND v.period_start <= r.bucket_start::timestamp AT TIME ZONE 'UTC'
 AND v.period_end > r.bucket_start::timestamp AT TIME ZONE 'UTC';

CREATE OR REPLACE VIEW reporting.usage_restatement AS
SELECT src.slug AS source_id, c.group_by, c.stride, t.bucket_start AS period_start, w.label AS workspace_id,
       e.label AS dimension_id, t.old_traces, t.new_traces, t.restated_at
FROM usage.restatement t
JOIN usage.series s USING (series_id)
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id;

CREATE OR REPLACE VIEW reporting.usage_reconciliation AS
SELECT src.slug AS source_id, c.group_by, c.stride, d.bucket_start AS period_start, w.label AS workspace_id,
       CASE WHEN d.external_id = '' THEN '(none)' ELSE d.external_id END AS dimension_id,
       d.stored_traces, d.export_traces, d.kind, d.state, d.found_at
FROM usage.reconciliation_difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id;
CREATE OR REPLACE VIEW reporting.dim_date AS
SELECT day::date AS usage_date, extract(isoyear FROM day)::integer AS iso_year, extract(week FROM day)::integer AS iso_week,
       extract(isodow FROM day)::integer AS iso_weekday, date_trunc('month', day)::date AS month_start,
       date_trunc('year', day)::date AS year_start
FROM (SELECT min(data_start) AS first FROM usage.source) s
CROSS JOIN LATERAL generate_series(
  s.first::timestamp, date_trunc('day', now() AT TIME ZONE 'UTC'), interval '1 day'
) day;

CREATE OR REPLACE VIEW reporting.dim_workspace AS
SELECT src.slug AS source_id, e.label AS workspace_id, e.name AS workspace_name, e.first_seen_at, e.last_seen_at,
       w.is_deleted, w.unlisted_since
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
JOIN usage.workspace w USING (entity_id);

CREATE OR REPLACE VIEW reporting.dim_project AS
SELECT src.slug AS source_id, e.label AS project_id, e.name AS project_name, e.first_seen_at, e.last_seen_at
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
WHERE e.dimension = 'project';

CREATE OR REPLACE VIEW reporting.dim_user AS
SELECT src.slug AS source_id, e.label AS user_id, e.name AS user_email, e.first_seen_at, e.last_seen_at
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
WHERE e.dimension = 'user';

CREATE OR REPLACE VIEW reporting.dim_api_key AS
SELECT src.slug AS source_id, e.label AS api_key_short_key, e.first_seen_at, e.last_seen_at
FROM usage.labelled_entity e
JOIN usage.source src USING (source_id)
WHERE e.dimension = 'api_key';
CREATE OR REPLACE VIEW reporting.usage_coverage_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.group_by, 'day'::text AS stride,
       CASE
         WHEN d.status = 'ok' AND NOT EXISTS (
           SELECT FROM usage.series s JOIN usage.dated_record r USING (series_id)
           WHERE s.scope_id = d.day_scope_id AND r.bucket_start = d.usage_date AND r.traces > 0
         ) AND NOT EXISTS (
           SELECT FROM usage.day_of_hours h
           JOIN usage.series s ON s.scope_id = h.hour_scope_id
           JOIN usage.hourly_record r USING (series_id)
           WHERE h.day_scope_id = d.day_scope_id AND h.usage_date = d.usage_date AND r.traces > 0
             AND r.bucket_start >= d.usage_date::timestamp AT TIME ZONE 'UTC'
             AND r.bucket_start < (d.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
         ) THEN 'empty'
         ELSE d.status
       END AS status
FROM usage.day_state d
UNION ALL
-- A day's hours have the first status that any of them has, in the order of the documentation.
SELECT h.slug, h.usage_date, h.workspace_id, h.group_by, 'hour',
       CASE
         WHEN h.worst < 6 THEN (ARRAY['not_available', 'failed', 'missing', 'unverified', 'provisional'])[h.worst]
         WHEN EXISTS (
           SELECT FROM usage.series s JOIN usage.hourly_record r USING (series_id)
           WHERE s.scope_id = h.hour_scope_id AND r.traces > 0
             AND r.bucket_start >= h.usage_date::timestamp AT TIME ZONE 'UTC'
             AND r.bucket_start < (h.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
         ) THEN 'ok'
         ELSE 'empty'
       END
FROM (
  SELECT slug, (usage_hour AT TIME ZONE 'UTC')::date AS usage_date, workspace_id, group_by, hour_scope_id,
         min(array_position(
           ARRAY['not_available', 'failed', 'missing', 'unverified', 'provisional', 'ok'], status
         )) AS worst
  FROM usage.hour_state
  GROUP BY 1, 2, 3, 4, 5
) h;

CREATE OR REPLACE VIEW reporting.data_freshness AS
SELECT src.slug AS source_id, c.group_by, c.stride, max(v.period_end) AS loaded_until,
       max(v.period_end) FILTER (WHERE v.settled) AS settled_until, max(v.fetched_at) AS fetched_at,
       extract(epoch FROM now() - max(v.fetched_at))::bigint AS lag_seconds
FROM usage.scope c
JOIN usage.source src USING (source_id)
JOIN usage.coverage v USING (scope_id)
GROUP BY src.slug, c.group_by, c.stride;
-- Progress is counted from the slices, which prune removes some time after the end: then the counts are 0.
CREATE OR REPLACE VIEW reporting.backfill_status AS
SELECT src.slug AS source_id, b.backfill_id, b.state, b.stride, b.period_start, b.period_end,
       count(s.slice_id) FILTER (WHERE s.state = 'done') AS done,
       count(s.slice_id) FILTER (WHERE s.state = 'failed') AS failed,
       count(s.slice_id) AS total, b.created_at, b.finished_at
FROM usage.backfill b
JOIN usage.source src USING (source_id)
LEFT JOIN usage.slice s USING (backfill_id)
GROUP BY b.backfill_id, src.slug;
