-- Parts of time as days and hours, for the views. They take what they work on as arguments and see no table. STRICT keeps
-- the planner from dissolving them into the query, where it would expect a thousand rows of each.

-- UTC days that lie wholly within.
CREATE OR REPLACE FUNCTION usage.whole_days(parts tstzmultirange) RETURNS datemultirange
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(range_agg(daterange(first, after)), '{}')
  FROM unnest(parts) part
  CROSS JOIN LATERAL (
    SELECT ((lower(part) + interval '1 day' - interval '1 microsecond') AT TIME ZONE 'UTC')::date AS first,
           (upper(part) AT TIME ZONE 'UTC')::date AS after
  ) d
  WHERE first < after
$$;

-- UTC days that lie within in part.
CREATE OR REPLACE FUNCTION usage.touched_days(parts tstzmultirange) RETURNS datemultirange
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(range_agg(daterange(
    (lower(part) AT TIME ZONE 'UTC')::date, ((upper(part) - interval '1 microsecond') AT TIME ZONE 'UTC')::date, '[]'
  )), '{}')
  FROM unnest(parts) part
$$;

CREATE OR REPLACE FUNCTION usage.days_of(parts datemultirange) RETURNS SETOF date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT lower(part) + n
  FROM unnest(parts) part CROSS JOIN LATERAL generate_series(0, upper(part) - lower(part) - 1) n
$$;

CREATE OR REPLACE FUNCTION usage.hours_of(parts tstzmultirange) RETURNS SETOF timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT generate_series(lower(part), upper(part) - interval '1 hour', interval '1 hour') FROM unnest(parts) part
$$;

CREATE OR REPLACE FUNCTION usage.count_days(parts datemultirange) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(sum(upper(part) - lower(part)), 0)::integer FROM unnest(parts) part
$$;

-- First days of the calendar months from one day's to another's.
CREATE OR REPLACE FUNCTION usage.months_of(first date, last date) RETURNS SETOF date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 36
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT generate_series(date_trunc('month', first::timestamp), last::timestamp, interval '1 month')::date
$$;

-- Hours that are kept up to date for a source: the last so many, from a whole day on, and the one under way.
CREATE OR REPLACE FUNCTION usage.expected_hours(data_start date, hourly_hours integer) RETURNS tstzrange
LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT tstzrange(least(first, after), after)
  FROM (
    SELECT greatest(
             data_start::timestamp AT TIME ZONE 'UTC',
             date_trunc('day', now() - make_interval(hours => hourly_hours), 'UTC')
           ) AS first,
           date_trunc('hour', now(), 'UTC') + interval '1 hour' AS after
  ) t
$$;
-- What the reporting views are made of. Not for readers: they see the schema reporting alone.
--
-- Coverage and failures are ranges, and a range join compares each record with each range of its scope. So each scope's
-- ranges come as arrays in the order of time, joined once a scope: width_bucket finds a record's range in them. Joins to
-- them are left joins on a key, which the planner leaves out where a query asks for nothing of theirs.

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

-- Loaded and settled time of each cell, of its days and of its hours, whole. Each sum stands by itself, so that a cell stays
-- one row for the planner too.
CREATE OR REPLACE VIEW usage.cell_time AS
SELECT cell.day_scope_id, cell.hour_scope_id, cell.source_id, cell.slug, cell.data_start, cell.hourly_hours, cell.group_by,
       cell.workspace_id, cell.workspace_name, d.days, d.final_days, h.hours, h.final_hours
FROM usage.cell cell
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(t.days), '{}') AS days, coalesce(range_agg(t.days) FILTER (WHERE v.settled), '{}') AS final_days
  FROM usage.coverage v
  CROSS JOIN LATERAL (
    SELECT daterange((v.period_start AT TIME ZONE 'UTC')::date, (v.period_end AT TIME ZONE 'UTC')::date) AS days
  ) t
  WHERE v.scope_id = cell.day_scope_id
) d
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(tstzrange(v.period_start, v.period_end)), '{}') AS hours,
         coalesce(range_agg(tstzrange(v.period_start, v.period_end)) FILTER (WHERE v.settled), '{}') AS final_hours
  FROM usage.coverage v
  WHERE v.scope_id = cell.hour_scope_id
) h;

-- Loaded time of each scope of days: its ranges begin and end on UTC days.
CREATE OR REPLACE VIEW usage.day_coverage AS
SELECT v.scope_id, array_agg(v.first ORDER BY v.first) AS starts, array_agg(v.settled ORDER BY v.first) AS settled,
       array_agg(v.fetched_at ORDER BY v.first) AS fetched_at, range_agg(daterange(v.first, v.after)) AS loaded
FROM (
  SELECT c.scope_id, (c.period_start AT TIME ZONE 'UTC')::date AS first, (c.period_end AT TIME ZONE 'UTC')::date AS after,
         c.settled, c.fetched_at
  FROM usage.coverage c
  JOIN usage.scope s USING (scope_id)
  WHERE s.stride = 'day'
) v
GROUP BY v.scope_id;

CREATE OR REPLACE VIEW usage.day_failure AS
SELECT v.scope_id, array_agg(v.first ORDER BY v.first) AS starts, array_agg(v.after ORDER BY v.first) AS ends,
       array_agg(v.state ORDER BY v.first) AS states, range_agg(daterange(v.first, v.after)) AS failed
FROM (
  SELECT f.scope_id, (f.period_start AT TIME ZONE 'UTC')::date AS first, (f.period_end AT TIME ZONE 'UTC')::date AS after,
         f.state
  FROM usage.failure f
  JOIN usage.scope s USING (scope_id)
  WHERE s.stride = 'day'
) v
GROUP BY v.scope_id;

-- The same of each scope of hours.
CREATE OR REPLACE VIEW usage.hour_coverage AS
SELECT c.scope_id, array_agg(c.period_start ORDER BY c.period_start) AS starts,
       array_agg(c.settled ORDER BY c.period_start) AS settled, array_agg(c.fetched_at ORDER BY c.period_start) AS fetched_at,
       range_agg(tstzrange(c.period_start, c.period_end)) AS loaded
FROM usage.coverage c
JOIN usage.scope s USING (scope_id)
WHERE s.stride = 'hour'
GROUP BY c.scope_id;

CREATE OR REPLACE VIEW usage.hour_failure AS
SELECT f.scope_id, array_agg(f.period_start ORDER BY f.period_start) AS starts,
       array_agg(f.period_end ORDER BY f.period_start) AS ends, array_agg(f.state ORDER BY f.period_start) AS states,
       range_agg(tstzrange(f.period_start, f.period_end)) AS parts,
       coalesce(range_agg(tstzrange(f.period_start, f.period_end)) FILTER (WHERE f.state = 'failed'), '{}') AS failed
FROM usage.failure f
JOIN usage.scope s USING (scope_id)
WHERE s.stride = 'hour'
GROUP BY f.scope_id;
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
-- Calendar months of a cell. Expected is every day from the data start on that has ended, and today from when it is loaded,
-- so that a month is whole all the time and not each day anew. A month without an expected day is not there.
CREATE OR REPLACE VIEW usage.month_state AS
SELECT x.day_scope_id, x.slug, x.group_by, x.workspace_id, x.workspace_name, month AS month_start,
       upper(t.span) - lower(t.span) AS days_expected,
       CASE
         WHEN x.loaded @> t.span THEN upper(t.span) - lower(t.span)
         ELSE usage.count_days(x.loaded * datemultirange(t.span))
       END AS days_loaded,
       (month + interval '1 month')::date <= x.today AND x.final @> t.span AS is_final,
       x.by_hours && t.span AS by_hours
FROM (
  SELECT c.day_scope_id, c.slug, c.data_start, c.group_by, c.workspace_id, c.workspace_name,
         (now() AT TIME ZONE 'UTC')::date AS today, t.by_hours, c.days + t.by_hours AS loaded,
         c.final_days + usage.whole_days(c.final_hours) * t.by_hours - coalesce(f.failed, '{}') AS final
  FROM usage.cell_time c
  LEFT JOIN usage.day_failure f ON f.scope_id = c.day_scope_id
  CROSS JOIN LATERAL (SELECT usage.whole_days(c.hours) - c.days AS by_hours) t
  -- Once a cell, not once a month and mention.
  OFFSET 0
) x
CROSS JOIN LATERAL usage.months_of(x.data_start, x.today) month
CROSS JOIN LATERAL (
  SELECT least((month + interval '1 month')::date, x.today + (x.loaded @> x.today)::integer) AS after
) u
CROSS JOIN LATERAL (SELECT daterange(least(greatest(month, x.data_start), u.after), u.after) AS span) t
WHERE NOT isempty(t.span);

-- The months of a cell as arrays in the order of time, as its coverage is: a year by month and user is a row a month, user
-- and workspace. In a plain month no day is made of hours: its kept totals are its figures.
CREATE OR REPLACE VIEW usage.cell_months AS
SELECT day_scope_id, array_agg(month_start ORDER BY month_start) AS starts,
       array_agg(days_expected ORDER BY month_start) AS days_expected,
       array_agg(days_loaded ORDER BY month_start) AS days_loaded, array_agg(is_final ORDER BY month_start) AS is_final,
       array_agg(days_loaded = days_expected AND NOT by_hours ORDER BY month_start) AS plain
FROM usage.month_state
GROUP BY day_scope_id;

-- Figures of whole months by entity; only a month with a day that is made of hours is more than its kept total. A month
-- that is not whole is one row without entity.
CREATE OR REPLACE VIEW usage.monthly_row AS
SELECT cell.slug, cell.group_by, t.month_start, cell.workspace_id, cell.workspace_name, e.label AS dimension_id,
       e.name AS dimension_name, t.traces, m.days_expected[width_bucket(t.month_start, m.starts)] AS days_expected,
       m.days_loaded[width_bucket(t.month_start, m.starts)] AS days_loaded,
       m.is_final[width_bucket(t.month_start, m.starts)] AS is_final
FROM usage.cell cell
JOIN usage.cell_months m USING (day_scope_id)
JOIN usage.series s ON s.scope_id = cell.day_scope_id
JOIN usage.monthly_total t USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
WHERE m.plain[width_bucket(t.month_start, m.starts)]
UNION ALL
SELECT m.slug, m.group_by, f.month_start, m.workspace_id, m.workspace_name, e.label, e.name, f.traces, m.days_expected,
       m.days_loaded, m.is_final
FROM usage.month_state m
JOIN (
  SELECT day_scope_id, entity_id, month_start, sum(traces)::bigint AS traces
  FROM (
    SELECT day_scope_id, entity_id, usage.month_of(usage_date) AS month_start, traces FROM usage.figure_of_hours
    UNION ALL
    SELECT h.day_scope_id, s.entity_id, h.month_start, t.traces
    FROM (SELECT DISTINCT day_scope_id, usage.month_of(usage_date) AS month_start FROM usage.day_of_hours) h
    JOIN usage.series s ON s.scope_id = h.day_scope_id
    JOIN usage.monthly_total t ON t.series_id = s.series_id AND t.month_start = h.month_start
  ) part
  GROUP BY day_scope_id, entity_id, month_start
) f ON f.day_scope_id = m.day_scope_id AND f.month_start = m.month_start
JOIN usage.labelled_entity e USING (entity_id)
WHERE m.days_loaded = m.days_expected AND m.by_hours
UNION ALL
SELECT slug, group_by, month_start, workspace_id, workspace_name, NULL, NULL, NULL, days_expected, days_loaded, false
FROM usage.month_state
WHERE days_loaded < days_expected;
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
-- What was stored as settled at an instant: today's records with every restatement since then undone. A load stamps its
-- restatements and what it settles with one instant after its locks, so that for a scope they come in the order of its
-- loads. Only days are answered for: the figures that a day's hours stand in for are never settled as a day.
CREATE OR REPLACE FUNCTION usage.daily_as_of(as_of timestamptz, grouping_wanted text)
RETURNS TABLE (
  scope_id integer, entity_id integer, usage_date date, traces bigint, settled_at timestamptz
)
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
  -- Day by day, so that figures find theirs by a hash: over ranges every figure would be held against all of its scope's.
  WITH settled AS (
    SELECT t.scope_id, d::date AS usage_date, t.settled_at
    FROM usage.settlement t
    JOIN usage.scope s USING (scope_id)
    CROSS JOIN LATERAL generate_series(
      t.period_start AT TIME ZONE 'UTC', t.period_end AT TIME ZONE 'UTC' - interval '1 day', interval '1 day'
    ) d
    WHERE s.stride = 'day' AND s.group_by = grouping_wanted AND t.settled_at <= as_of
  ), undone AS (
    SELECT DISTINCT ON (r.series_id, r.bucket_start)
           r.series_id, (r.bucket_start AT TIME ZONE 'UTC')::date AS usage_date, r.old_traces
    FROM usage.restatement r
    JOIN usage.series x USING (series_id)
    JOIN usage.scope s USING (scope_id)
    WHERE r.restated_at > as_of AND s.stride = 'day' AND s.group_by = grouping_wanted
    ORDER BY r.series_id, r.bucket_start, r.fetch_number
  ), figure AS (
    SELECT series_id, usage_date,
           CASE WHEN u.series_id IS NULL THEN r.traces ELSE u.old_traces END AS traces
    FROM (
      SELECT r.series_id, r.bucket_start AS usage_date, r.traces
      FROM usage.dated_record r
      JOIN usage.series x USING (series_id)
      JOIN usage.scope s USING (scope_id)
      WHERE s.stride = 'day' AND s.group_by = grouping_wanted
    ) r
    FULL JOIN undone u USING (series_id, usage_date)
  )
  SELECT x.scope_id, x.entity_id, f.usage_date, f.traces, t.settled_at
  FROM figure f
  JOIN usage.series x USING (series_id)
  JOIN settled t ON t.scope_id = x.scope_id AND t.usage_date = f.usage_date
  WHERE f.traces > 0
$$;

-- Refuses what can not be answered to the trace: an instant that a load under way may still change (a load commits at most
-- fifteen minutes after the instant it stamps), and one from before the history that is kept.
CREATE OR REPLACE FUNCTION usage.check_as_of(as_of timestamptz) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  whole_since timestamptz := (SELECT max(history_since) FROM usage.source);
BEGIN
  IF as_of IS NULL THEN
    RAISE EXCEPTION 'as of when? The instant is null.' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF as_of > clock_timestamp() - interval '20 minutes' THEN
    RAISE EXCEPTION 'as of %: too young, loads under way may still change it.', as_of
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for an instant at least 20 minutes ago.';
  END IF;
  IF as_of < whole_since THEN
    RAISE EXCEPTION 'as of %: the history kept begins at %.', as_of, whole_since
      USING ERRCODE = 'invalid_parameter_value', HINT = 'USAGE_KEEP_HISTORY says how long it is kept.';
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_workspace_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, traces bigint, settled_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  -- Every settled day, with usage or without.
  RETURN QUERY
  SELECT src.slug, d.day::date, w.label, w.name, coalesce(f.traces, 0), t.settled_at
  FROM usage.settlement t
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  CROSS JOIN LATERAL generate_series(
    t.period_start AT TIME ZONE 'UTC', t.period_end AT TIME ZONE 'UTC' - interval '1 day', interval '1 day'
  ) d (day)
  LEFT JOIN (
    SELECT a.scope_id, a.usage_date, sum(a.traces)::bigint AS traces
    FROM usage.daily_as_of(as_of, 'workspace') a
    GROUP BY a.scope_id, a.usage_date
  ) f ON f.scope_id = t.scope_id AND f.usage_date = d.day::date
  WHERE s.stride = 'day' AND s.group_by = 'workspace' AND t.settled_at <= as_of;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_project_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, project_id text, project_name text,
  traces bigint, settled_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  RETURN QUERY
  SELECT src.slug, a.usage_date, w.label, w.name, e.label, e.name, a.traces, a.settled_at
  FROM usage.daily_as_of(as_of, 'project') a
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  JOIN usage.labelled_entity e ON e.entity_id = a.entity_id;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_user_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, user_id text, user_email text,
  traces bigint, settled_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  RETURN QUERY
  SELECT src.slug, a.usage_date, w.label, w.name, e.label, e.name, a.traces, a.settled_at
  FROM usage.daily_as_of(as_of, 'user') a
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  JOIN usage.labelled_entity e ON e.entity_id = a.entity_id;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_api_key_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, api_key_short_key text,
  traces bigint, settled_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  RETURN QUERY
  SELECT src.slug, a.usage_date, w.label, w.name, e.label, a.traces, a.settled_at
  FROM usage.daily_as_of(as_of, 'api_key') a
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  JOIN usage.labelled_entity e ON e.entity_id = a.entity_id;
END
$$;

REVOKE ALL ON FUNCTION
  reporting.usage_workspace_daily_as_of (timestamptz), reporting.usage_project_daily_as_of (timestamptz),
  reporting.usage_user_daily_as_of (timestamptz), reporting.usage_api_key_daily_as_of (timestamptz) FROM public;
COMMENT ON FUNCTION reporting.usage_workspace_daily_as_of (timestamptz) IS 'Grain: UTC day x workspace, every day that was settled at the instant: what was stored then. Refuses an instant younger than 20 minutes or older than the history kept.';
COMMENT ON FUNCTION reporting.usage_project_daily_as_of (timestamptz) IS 'Grain: UTC day x workspace x project with usage, days that were settled at the instant: what was stored then.';
COMMENT ON FUNCTION reporting.usage_user_daily_as_of (timestamptz) IS 'Grain: UTC day x workspace x user with usage, days that were settled at the instant: what was stored then.';
COMMENT ON FUNCTION reporting.usage_api_key_daily_as_of (timestamptz) IS 'Grain: UTC day x workspace x API key with usage, days that were settled at the instant: what was stored then.';
CREATE OR REPLACE VIEW reporting.fct_usage_workspace_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name,
       CASE WHEN d.loaded THEN coalesce(f.traces, 0) END AS traces,
       d.loaded AND d.settled AND d.status IN ('ok', 'empty') AS is_final,
       CASE WHEN d.status = 'ok' AND coalesce(f.traces, 0) = 0 THEN 'empty' ELSE d.status END AS coverage_status,
       d.fetched_at
FROM usage.day_state d
LEFT JOIN usage.workspace_day f ON f.day_scope_id = d.day_scope_id AND f.usage_date = d.usage_date
WHERE d.group_by = 'workspace';

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
CREATE OR REPLACE VIEW reporting.fct_usage_workspace_monthly AS
SELECT m.slug AS source_id, m.month_start, m.workspace_id, m.workspace_name,
       CASE WHEN m.days_loaded = m.days_expected THEN coalesce(f.traces, 0) END AS traces,
       m.days_expected, m.days_loaded, m.days_loaded = m.days_expected AS is_complete, m.is_final
FROM usage.month_state m
LEFT JOIN (
  SELECT slug, workspace_id, month_start, sum(traces)::bigint AS traces
  FROM usage.monthly_row
  WHERE group_by = 'workspace'
  GROUP BY slug, workspace_id, month_start
) f ON f.slug = m.slug AND f.workspace_id = m.workspace_id AND f.month_start = m.month_start
WHERE m.group_by = 'workspace';

CREATE OR REPLACE VIEW reporting.fct_usage_project_monthly AS
SELECT slug AS source_id, month_start, workspace_id, workspace_name, dimension_id AS project_id,
       dimension_name AS project_name, traces, days_expected, days_loaded, days_loaded = days_expected AS is_complete,
       is_final
FROM usage.monthly_row
WHERE group_by = 'project';

CREATE OR REPLACE VIEW reporting.fct_usage_user_monthly AS
SELECT slug AS source_id, month_start, workspace_id, workspace_name, dimension_id AS user_id, dimension_name AS user_email,
       traces, days_expected, days_loaded, days_loaded = days_expected AS is_complete, is_final
FROM usage.monthly_row
WHERE group_by = 'user';

CREATE OR REPLACE VIEW reporting.fct_usage_api_key_monthly AS
SELECT slug AS source_id, month_start, workspace_id, workspace_name, dimension_id AS api_key_short_key, traces,
       days_expected, days_loaded, days_loaded = days_expected AS is_complete, is_final
FROM usage.monthly_row
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

-- Differences from the CSV export, and totals that are not the sum of their days.
CREATE OR REPLACE VIEW reporting.usage_reconciliation AS
SELECT src.slug AS source_id, c.group_by, c.stride, d.bucket_start AS period_start, w.label AS workspace_id,
       CASE WHEN d.external_id = '' THEN '(none)' ELSE d.external_id END AS dimension_id,
       d.stored_traces, d.export_traces, d.kind, d.state, d.found_at,
       d.bucket_start
         + make_interval(hours => CASE c.stride WHEN 'hour' THEN 1 WHEN 'day' THEN 24 WHEN 'week' THEN 168 WHEN 'month' THEN 720 ELSE 8760 END)
         AS period_end,
       -- An address of a user is not for everybody who may see differences.
       CASE WHEN c.group_by <> 'user' OR d.kind <> 'name_differs' THEN d.export_says END AS export_says
FROM usage.reconciliation_difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
UNION ALL
SELECT src.slug, c.group_by,
       CASE extract(epoch FROM d.period_end - d.period_start)::bigint / 86400 WHEN 1 THEN 'day' WHEN 7 THEN 'week' WHEN 30 THEN 'month' WHEN 365 THEN 'year' END,
       d.period_start, w.label,
       CASE WHEN d.kind = 'grouping_total' THEN '(all)' WHEN d.external_id = '' THEN '(none)' ELSE d.external_id END,
       d.stored_traces, d.control_traces, d.kind, d.state, d.found_at, d.period_end, NULL
FROM usage.control_difference d
JOIN usage.scope c USING (scope_id)
JOIN usage.source src USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id;

-- How late counts still changed. Ages count from the end of the bucket; the class holds changes younger than its bound.
CREATE OR REPLACE VIEW reporting.usage_late_change AS
SELECT src.slug AS source_id, l.observed_on, l.group_by, l.stride, l.was_settled, l.age_hours, l.changes, l.traces_moved
FROM usage.late_change l
JOIN usage.source src USING (source_id);
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
-- Whether anything was used on a day is asked of one series after the other until one says so: in the order of their key,
-- else all series are read for each day.
CREATE OR REPLACE VIEW reporting.usage_coverage_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.group_by, 'day'::text AS stride,
       CASE
         WHEN d.status <> 'ok' THEN d.status
         WHEN NOT d.by_hours THEN coalesce((
           SELECT 'ok' FROM usage.series s JOIN usage.dated_record r USING (series_id)
           WHERE s.scope_id = d.day_scope_id AND r.bucket_start = d.usage_date AND r.traces > 0
           ORDER BY s.entity_id LIMIT 1
         ), 'empty')
         ELSE coalesce((
           SELECT 'ok' FROM usage.series s JOIN usage.hourly_record r USING (series_id)
           WHERE s.scope_id = d.hour_scope_id AND r.traces > 0
             AND r.bucket_start >= d.usage_date::timestamp AT TIME ZONE 'UTC'
             AND r.bucket_start < (d.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
           ORDER BY s.entity_id LIMIT 1
         ), 'empty')
       END AS status
FROM usage.day_state d
UNION ALL
-- A day's hours have the first status that any of them has, in the order of the documentation: told from ranges, since all
-- hours of three years are millions.
SELECT x.slug, day, x.workspace_id, x.group_by, 'hour',
       CASE
         WHEN n.source_id IS NOT NULL AND NOT x.hours @> t.part THEN 'not_available'
         WHEN f.failed && t.part THEN 'failed'
         WHEN NOT x.hours + coalesce(f.parts, '{}') @> t.part THEN 'missing'
         WHEN f.parts && t.part THEN 'unverified'
         WHEN NOT x.final_hours @> t.part THEN 'provisional'
         ELSE coalesce((
           SELECT 'ok' FROM usage.series s JOIN usage.hourly_record r USING (series_id)
           WHERE s.scope_id = x.hour_scope_id AND r.traces > 0
             AND r.bucket_start >= day::timestamp AT TIME ZONE 'UTC'
             AND r.bucket_start < (day + 1)::timestamp AT TIME ZONE 'UTC'
           ORDER BY s.entity_id LIMIT 1
         ), 'empty')
       END
FROM (
  SELECT c.*,
         c.hours * tstzmultirange(tstzrange(NULL, date_trunc('hour', now(), 'UTC') + interval '1 hour'))
           + tstzmultirange(usage.expected_hours(c.data_start, c.hourly_hours)) AS shown
  FROM usage.cell_time c
  -- Once a cell, not once a day and mention.
  OFFSET 0
) x
CROSS JOIN LATERAL usage.days_of(usage.touched_days(x.shown)) day
LEFT JOIN usage.hour_failure f ON f.scope_id = x.hour_scope_id
LEFT JOIN usage.source_fact n ON n.source_id = x.source_id AND n.fact = 'no_hour'
CROSS JOIN LATERAL (
  SELECT x.shown * tstzmultirange(
    tstzrange(day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC')
  ) AS part
) t;

CREATE OR REPLACE VIEW reporting.data_freshness AS
SELECT src.slug AS source_id, c.group_by, c.stride, max(v.period_end) AS loaded_until,
       max(v.period_end) FILTER (WHERE v.settled) AS settled_until, max(v.fetched_at) AS fetched_at,
       extract(epoch FROM now() - max(v.fetched_at))::bigint AS lag_seconds
FROM usage.scope c
JOIN usage.source src USING (source_id)
JOIN usage.coverage v USING (scope_id)
GROUP BY src.slug, c.group_by, c.stride;
-- Each cell's days with what they come to. Days and figures are put one under the other and grouped, not joined: then a
-- filter on the day reaches the records.
CREATE OR REPLACE VIEW usage.day_side AS
SELECT source_id, slug, group_by, workspace_id, workspace_name, usage_date,
       CASE WHEN bool_or(loaded) THEN coalesce(sum(traces), 0)::bigint END AS traces, bool_or(is_final) AS is_final
FROM (
  SELECT source_id, slug, group_by, workspace_id, workspace_name, usage_date, loaded,
         loaded AND settled AND status = 'ok' AS is_final, NULL::bigint AS traces
  FROM usage.day_state
  UNION ALL
  SELECT cell.source_id, cell.slug, cell.group_by, cell.workspace_id, cell.workspace_name, r.bucket_start, NULL, NULL, r.traces
  FROM usage.cell cell
  JOIN usage.series s ON s.scope_id = cell.day_scope_id
  JOIN usage.dated_record r USING (series_id)
  UNION ALL
  SELECT cell.source_id, f.slug, f.group_by, f.workspace_id, f.workspace_name, f.usage_date, NULL, NULL, f.traces
  FROM usage.figure_of_hours f
  JOIN usage.cell cell USING (day_scope_id)
) part
GROUP BY source_id, slug, group_by, workspace_id, workspace_name, usage_date
-- A record outside the days that are expected makes no row of its own.
HAVING bool_or(loaded) IS NOT NULL;

-- What a grouping names of a workspace's day, and the rest. Nothing is said of a day that either side may still change.
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
CREATE OR REPLACE VIEW reporting.usage_month_close AS
SELECT src.slug AS source_id, m.month_start, c.group_by, w.label AS workspace_id, w.name AS workspace_name,
       e.label AS dimension_id, e.name AS dimension_name, coalesce(t.traces, 0) AS closed_traces,
       now.traces - coalesce(t.traces, 0) AS adjustment_traces, now.traces AS current_traces, m.closed_at
FROM usage.month_close m
JOIN usage.source src USING (source_id)
JOIN usage.scope c ON c.source_id = m.source_id AND c.stride = 'day' AND c.kind = 'traces' AND c.trace_tier = 'all'
JOIN usage.series s USING (scope_id)
JOIN usage.labelled_entity w ON w.entity_id = c.workspace_id
JOIN usage.labelled_entity e ON e.entity_id = s.entity_id
LEFT JOIN usage.closed_total t ON t.close_id = m.close_id AND t.series_id = s.series_id
CROSS JOIN LATERAL (
  SELECT coalesce(sum(r.traces), 0)::bigint AS traces
  FROM usage.dated_record r
  WHERE r.series_id = s.series_id AND r.bucket_start >= m.month_start
    AND r.bucket_start < (m.month_start + interval '1 month')::date
) now
WHERE now.traces > 0 OR t.traces > 0;
-- Costs in the columns of FOCUS 1.2, estimated from imported prices. Names are written as FOCUS writes them, so that what
-- reads a FOCUS file reads this; columns of our own begin with x_, as FOCUS asks.
-- One grouping only, the workspace's: the others are views of the same traces, and would be charged again. Days without
-- traces are no charge: FOCUS wants a positive quantity.
CREATE OR REPLACE VIEW reporting.focus_cost_usage_estimated AS
-- Once, and not for each day: the prices are few, the entities are not.
WITH price AS MATERIALIZED (
  SELECT p.sku_id, k.name AS sku, p.price_id, p.unit_price, p.currency, p.valid_from, p.valid_to, p.source_id,
         p.workspace_id, w.external_id AS workspace
  FROM usage.price p
  JOIN usage.sku k USING (sku_id)
  LEFT JOIN usage.entity w ON w.entity_id = p.workspace_id
)
SELECT c.cost AS "BilledCost",
       coalesce(s.organization_id, s.slug) AS "BillingAccountId",
       coalesce(s.organization_name, s.slug) AS "BillingAccountName",
       'Organization'::text AS "BillingAccountType",
       p.currency AS "BillingCurrency",
       (date_trunc('month', u.usage_date::timestamp) + interval '1 month') AT TIME ZONE 'UTC' AS "BillingPeriodEnd",
       date_trunc('month', u.usage_date::timestamp) AT TIME ZONE 'UTC' AS "BillingPeriodStart",
       'Usage'::text AS "ChargeCategory",
       -- Null: no correction of an earlier billing period.
       NULL::text AS "ChargeClass",
       concat(
         'Estimate: ', u.traces, ' traces of ', coalesce(u.workspace_name, u.workspace_id), ' on ', to_char(u.usage_date, 'YYYY-MM-DD'), ' at ',
         trim_scale(p.unit_price), ' ', p.currency, ' each (', p.sku, ')'
       ) AS "ChargeDescription",
       'Usage-Based'::text AS "ChargeFrequency",
       (u.usage_date + 1)::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodEnd",
       u.usage_date::timestamp AT TIME ZONE 'UTC' AS "ChargePeriodStart",
       u.traces::numeric(20, 0) AS "ConsumedQuantity",
       'Traces'::text AS "ConsumedUnit",
       c.cost AS "ContractedCost",
       p.unit_price AS "ContractedUnitPrice",
       c.cost AS "EffectiveCost",
       -- No invoice: an estimate is not billed.
       NULL::text AS "InvoiceId",
       f.provider AS "InvoiceIssuerName",
       c.cost AS "ListCost",
       p.unit_price AS "ListUnitPrice",
       'Standard'::text AS "PricingCategory",
       u.traces::numeric(20, 0) AS "PricingQuantity",
       'Traces'::text AS "PricingUnit",
       f.provider AS "ProviderName",
       f.provider AS "PublisherName",
       'AI and Machine Learning'::text AS "ServiceCategory",
       'Agent platform traces'::text AS "ServiceName",
       'AI Platforms'::text AS "ServiceSubcategory",
       p.sku AS "SkuId",
       'Traces'::text AS "SkuMeter",
       p.price_id::text AS "SkuPriceId",
       u.workspace_id AS "SubAccountId",
       u.workspace_name AS "SubAccountName",
       'Workspace'::text AS "SubAccountType",
       '{}'::text AS "Tags",
       -- FOCUS 1.3 has these two in the place of ProviderName and PublisherName.
       f.provider AS "ServiceProviderName",
       f.provider AS "HostProviderName",
       u.source_id AS "x_SourceId",
       u.usage_date AS "x_UsageDate",
       u.is_final AS "x_IsFinal",
       u.coverage_status AS "x_CoverageStatus"
FROM reporting.fct_usage_workspace_daily u
JOIN usage.source s ON s.slug = u.source_id
CROSS JOIN LATERAL (
  SELECT DISTINCT ON (sku_id) sku, price_id, unit_price, currency
  FROM price
  WHERE valid_from <= u.usage_date AND (valid_to IS NULL OR valid_to > u.usage_date)
    AND (source_id IS NULL OR source_id = s.source_id) AND (workspace IS NULL OR workspace = u.workspace_id)
  -- The most specific price of each SKU.
  ORDER BY sku_id, workspace_id NULLS LAST, source_id NULLS LAST
) p
-- Whoever answers the billing requests is all that is known of the provider: its host, without scheme, port and path.
CROSS JOIN LATERAL (SELECT substring(s.base_url FROM '^[a-z]+://(?:[^/@]*@)?([^/:?#]+)') AS provider) f
-- Both factors are exact, and so is their product: 18 and 19 digits, ten of them after the point.
CROSS JOIN LATERAL (SELECT (p.unit_price * u.traces)::numeric(38, 10) AS cost) c
-- Without prices nothing is read at all.
WHERE u.traces > 0 AND EXISTS (SELECT FROM usage.price);
-- A probe without figures (under way, or ended before anything was compared) is one row with null grouping.
CREATE OR REPLACE VIEW reporting.metering_probe AS
SELECT src.slug AS source_id, p.probe_id, f.group_by, p.state, p.workspace_id, p.project_id,
       p.expected_traces::bigint AS expected_traces, f.billed_traces, f.others_added, f.others_removed, f.difference,
       p.started_at, p.sent_at, p.billed_at, p.finished_at,
       (extract(epoch FROM p.billed_at - p.sent_at) * 1000)::bigint AS delay_ms,
       p.code, p.message
FROM usage.probe p
JOIN usage.source src USING (source_id)
LEFT JOIN usage.probe_figure f USING (probe_id);
-- Twins of the views that carry e-mail addresses of users, for those who may not see them: the same columns in the same
-- order, with the start of the user's id in the place of the address. Made from the catalogue, so that no view that gets
-- such a column is forgotten.
DO $$
DECLARE
  one record;
BEGIN
  FOR one IN
    SELECT c.relname AS view,
           string_agg(
             CASE a.attname
               WHEN 'user_email' THEN
                 'CASE WHEN user_email IS NOT NULL THEN ''user '' || left(user_id, 8) END AS user_email'
               WHEN 'dimension_name' THEN
                 'CASE WHEN group_by <> ''user'' THEN dimension_name
                       WHEN dimension_name IS NOT NULL THEN ''user '' || left(dimension_id, 8) END AS dimension_name'
               ELSE quote_ident(a.attname)
             END,
             ', ' ORDER BY a.attnum
           ) AS columns
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'reporting'::regnamespace AND c.relkind = 'v' AND c.relname NOT LIKE '%\_masked'
    GROUP BY c.relname
    HAVING bool_or(a.attname IN ('user_email', 'dimension_name'))
    ORDER BY c.relname
  LOOP
    EXECUTE format(
      'CREATE OR REPLACE VIEW reporting.%I AS SELECT %s FROM reporting.%I', one.view || '_masked', one.columns, one.view
    );
  END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_user_daily_as_of_masked(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, user_id text, user_email text,
  traces bigint, settled_at timestamptz
)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT f.source_id, f.usage_date, f.workspace_id, f.workspace_name, f.user_id,
         CASE WHEN f.user_email IS NOT NULL THEN 'user ' || left(f.user_id, 8) END, f.traces, f.settled_at
  FROM reporting.usage_user_daily_as_of(as_of) f
$$;
COMMENT ON FUNCTION reporting.usage_user_daily_as_of_masked (timestamptz) IS 'As usage_user_daily_as_of, with the start of the user''s id in the place of the address.';
