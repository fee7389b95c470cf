-- Building blocks of the reporting views. Readers cannot see them: they see the schema reporting alone.
--
-- Names: `source_id` is the number of a source here and `slug` its name; the schema reporting calls the slug source_id.
--
-- Coverage and failures are ranges, and a range join compares each record with each range of its scope. So the ranges of a
-- scope come as arrays sorted by time, joined once for each scope: width_bucket finds a record's range in them. They are
-- left joins on a key, which the planner leaves out of a query that reads no column of them.

-- An id as readers see it: (none) for an empty one. An id that the platform itself spells (none) gets a backslash in front, and
-- so does one that would then look the same. So no two ids are shown alike. src/domain/usage/record.ts does the same. It runs for
-- each record: ascii, of the first character, spares nearly all of them the trim.
CREATE OR REPLACE FUNCTION usage.shown_id(id text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id = '' THEN '(none)' WHEN ascii(id) IN (40, 92) AND ltrim(id, '\') = '(none)' THEN '\' || id ELSE id END;

-- The current name of each entity: the name in the latest bucket; among several, that of the newest fetch.
CREATE OR REPLACE VIEW usage.labelled_entity AS
SELECT e.entity_id, e.source_id, e.dimension, e.first_seen_at, e.last_seen_at, n.name AS dimension_name,
       usage.shown_id(e.external_id) AS dimension_id, e.external_id
FROM usage.entity e
LEFT JOIN (
  SELECT DISTINCT ON (entity_id) entity_id, name
  FROM usage.entity_name
  ORDER BY entity_id, last_bucket DESC, fetch_number DESC, name
) n USING (entity_id);

-- Whether the configuration of a source names a workspace, or names none: then it reads all that the platform lists.
CREATE OR REPLACE FUNCTION usage.is_configured(workspace_ids text[], external_id text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN workspace_ids = '{}' OR external_id = ANY (workspace_ids);

-- Calendar months in which a workspace has coverage or records, from the data start of its source on. A function, because few
-- workspaces need it: in the view itself, Postgres would expect this to run for each of them. Readers may not read the tables, so
-- it runs as its owner.
CREATE OR REPLACE FUNCTION usage.loaded_months(workspace integer, data_start date) RETURNS datemultirange
LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(range_agg(daterange(m.month_start, (m.month_start + interval '1 month')::date)), '{}')
  FROM (
    SELECT usage.months_of(
             greatest((v.period_start AT TIME ZONE 'UTC')::date, data_start),
             ((v.period_end - interval '1 microsecond') AT TIME ZONE 'UTC')::date
           ) AS month_start
    FROM usage.scope c
    JOIN usage.coverage v USING (scope_id)
    WHERE c.workspace_id = workspace AND v.period_end > data_start::timestamp AT TIME ZONE 'UTC'
    UNION ALL
    SELECT t.month_start
    FROM usage.scope c
    JOIN usage.series s USING (scope_id)
    JOIN usage.monthly_total t USING (series_id)
    WHERE c.workspace_id = workspace AND c.group_by = 'workspace' AND c.stride = 'day'
      AND t.month_start >= date_trunc('month', data_start::timestamp)::date
  ) m
$$;

-- Days of a workspace that the views expect. No sync loads a workspace that is not configured: there only the months in which it
-- was loaded count.
CREATE OR REPLACE FUNCTION usage.expected_days(workspace_ids text[], external_id text, workspace integer, data_start date)
RETURNS datemultirange
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN usage.is_configured(workspace_ids, external_id) THEN '{(,)}' ELSE usage.loaded_months(workspace, data_start) END;

-- Days of each workspace that a close is about (month-open-days.ts reads them here): whole months. They are those that the views
-- expect. But a workspace that left the listing has nothing to say about later months in which it was not loaded.
CREATE OR REPLACE VIEW usage.required_workspace AS
SELECT w.entity_id AS workspace_id,
       CASE
         WHEN w.unlisted_since IS NULL OR w.is_deleted OR s.workspace_ids <> '{}'
           THEN usage.expected_days(s.workspace_ids, e.external_id, w.entity_id, s.data_start)
         ELSE usage.loaded_months(w.entity_id, s.data_start) + CASE
           WHEN w.unlisted_since >= s.data_start::timestamp AT TIME ZONE 'UTC' THEN datemultirange(daterange(
             NULL, (date_trunc('month', w.unlisted_since AT TIME ZONE 'UTC') + interval '1 month')::date
           ))
           ELSE '{}'
         END
       END AS days
FROM usage.workspace w
JOIN usage.entity e USING (entity_id)
JOIN usage.source s USING (source_id)
-- Keeps its tables out of the queries that join it: planning them would take twice as long.
OFFSET 0;

-- Source x dimension x workspace, with its scope of days and its scope of hours.
CREATE OR REPLACE VIEW usage.cell AS
SELECT d.scope_id AS day_scope_id, h.scope_id AS hour_scope_id, d.source_id, s.slug, s.data_start, s.hourly_hours,
       d.group_by, w.dimension_id AS workspace_id, w.dimension_name AS workspace_name, w.entity_id AS workspace_entity_id,
       usage.expected_days(s.workspace_ids, w.external_id, w.entity_id, s.data_start) AS expected_days
FROM usage.scope d
JOIN usage.source s USING (source_id)
JOIN usage.labelled_entity w ON w.entity_id = d.workspace_id
LEFT JOIN usage.scope h
  ON h.source_id = d.source_id AND h.group_by = d.group_by
 AND h.workspace_id = d.workspace_id AND h.stride = 'hour'
WHERE d.stride = 'day';

-- Loaded and final time of each cell, as one multirange each. Hours stand in for a day that is neither loaded nor
-- unverified: there they may show the zero that was withdrawn (days_of_hours). Each sum is a subquery of its own, so that the planner still
-- expects one row for each cell.
CREATE OR REPLACE VIEW usage.cell_time AS
SELECT cell.day_scope_id, cell.hour_scope_id, cell.source_id, cell.slug, cell.data_start, cell.hourly_hours, cell.group_by,
       cell.workspace_id, cell.workspace_name, d.days, d.final_days, h.hours, h.final_hours,
       usage.whole_days(h.hours) - d.days - u.days AS days_of_hours, cell.workspace_entity_id,
       cell.expected_days
FROM usage.cell cell
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(t.days), '{}') AS days, coalesce(range_agg(t.days) FILTER (WHERE v.final), '{}') AS final_days
  FROM usage.coverage v
  CROSS JOIN LATERAL (
    SELECT daterange((v.period_start AT TIME ZONE 'UTC')::date, (v.period_end AT TIME ZONE 'UTC')::date) AS days
  ) t
  WHERE v.scope_id = cell.day_scope_id
) d
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(tstzrange(v.period_start, v.period_end)), '{}') AS hours,
         coalesce(range_agg(tstzrange(v.period_start, v.period_end)) FILTER (WHERE v.final), '{}') AS final_hours
  FROM usage.coverage v
  WHERE v.scope_id = cell.hour_scope_id
) h
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(daterange((f.period_start AT TIME ZONE 'UTC')::date, (f.period_end AT TIME ZONE 'UTC')::date)), '{}')
           AS days
  FROM usage.failure f
  WHERE f.scope_id = cell.day_scope_id AND f.state = 'unverified'
) u;

-- Loaded time of each scope of days. Its ranges begin and end on UTC days.
CREATE OR REPLACE VIEW usage.day_coverage AS
SELECT v.scope_id, array_agg(v.first ORDER BY v.first) AS starts, array_agg(v.final ORDER BY v.first) AS final,
       array_agg(v.fetched_at ORDER BY v.first) AS fetched_at, range_agg(daterange(v.first, v.after)) AS loaded
FROM (
  SELECT c.scope_id, (c.period_start AT TIME ZONE 'UTC')::date AS first, (c.period_end AT TIME ZONE 'UTC')::date AS after,
         c.final, c.fetched_at
  FROM usage.coverage c
  JOIN usage.scope s USING (scope_id)
  WHERE s.stride = 'day'
) v
GROUP BY v.scope_id;

-- Failures of each scope of days.
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

-- Loaded time of each scope of hours.
CREATE OR REPLACE VIEW usage.hour_coverage AS
SELECT c.scope_id, array_agg(c.period_start ORDER BY c.period_start) AS starts,
       array_agg(c.final ORDER BY c.period_start) AS final, array_agg(c.fetched_at ORDER BY c.period_start) AS fetched_at,
       range_agg(tstzrange(c.period_start, c.period_end)) AS loaded
FROM usage.coverage c
JOIN usage.scope s USING (scope_id)
WHERE s.stride = 'hour'
GROUP BY c.scope_id;

-- Failures of each scope of hours.
CREATE OR REPLACE VIEW usage.hour_failure AS
SELECT f.scope_id, array_agg(f.period_start ORDER BY f.period_start) AS starts,
       array_agg(f.period_end ORDER BY f.period_start) AS ends, array_agg(f.state ORDER BY f.period_start) AS states,
       range_agg(tstzrange(f.period_start, f.period_end)) AS parts,
       coalesce(range_agg(tstzrange(f.period_start, f.period_end)) FILTER (WHERE f.state = 'failed'), '{}') AS failed
FROM usage.failure f
JOIN usage.scope s USING (scope_id)
WHERE s.stride = 'hour'
GROUP BY f.scope_id;
