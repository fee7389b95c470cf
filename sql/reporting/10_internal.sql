-- Building blocks of the reporting views. Readers cannot see them: they see the reporting schemas alone.
--
-- Names: here `source_id` is the number of a source and `slug` its name. The reporting schemas call the slug source_id.
--
-- The state of a scope is stored as sets of days or hours, joined once for each scope: @> finds a record's status in
-- them. A range join would compare each record with each range of its scope. Instants are arrays sorted by time, in
-- which width_bucket finds the one of a record.

-- An id as readers see it: (none) for an empty one. An id that the platform itself spells (none) gets a backslash in
-- front, and so does an id that would then look the same. So no two ids look alike. src/core/domain/usage/record.ts
-- does the same. This runs for each record: testing the first character with ascii spares nearly all of them the trim.
CREATE OR REPLACE FUNCTION usage.shown_id(id text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id = '' THEN '(none)' WHEN ascii(id) IN (40, 92) AND ltrim(id, '\') = '(none)' THEN '\' || id
            ELSE id END;

-- The platform's id of an id that is shown.
CREATE OR REPLACE FUNCTION usage.platform_id(id text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN id = '(none)' THEN '' WHEN ltrim(id, '\') = '(none)' THEN substr(id, 2) ELSE id END;

-- The current name of each entity: that of the newest fetch that named it. Names in time are in usage.name_in_time.
CREATE OR REPLACE VIEW usage.labelled_entity AS
SELECT e.entity_id, e.source_id, e.dimension, e.first_seen_at, e.last_seen_at, n.name AS dimension_name,
       usage.shown_id(e.external_id) AS dimension_id, e.external_id
FROM usage.entity e
LEFT JOIN (
  SELECT DISTINCT ON (entity_id) entity_id, name
  FROM usage.entity_name
  ORDER BY entity_id DESC, fetch_number DESC
) n USING (entity_id);

-- Whether a source reads a workspace: its configuration names it, or names no workspace and so reads all that the
-- platform lists.
CREATE OR REPLACE FUNCTION usage.is_configured(workspace_ids text[], external_id text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN workspace_ids = '{}' OR external_id = ANY (workspace_ids);

-- Calendar months in which a workspace has coverage or records, from the data start of its source on. A function,
-- because few workspaces need it: in the view itself, Postgres would expect this to run for each of them. Readers may
-- not read the tables, so it runs as its owner.
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
    FROM usage.trace_scope c
    JOIN usage.coverage v USING (scope_id)
    WHERE c.workspace_id = workspace AND v.period_end > data_start::timestamp AT TIME ZONE 'UTC'
    UNION ALL
    SELECT t.month_start
    FROM usage.trace_scope c
    JOIN usage.series s USING (scope_id)
    JOIN usage.monthly_total t USING (series_id)
    WHERE c.workspace_id = workspace AND c.group_by = 'workspace' AND c.stride = 'day'
      AND t.month_start >= date_trunc('month', data_start::timestamp)::date
  ) m
$$;

-- Days of each workspace that a close covers: whole months, the same that the views expect. But months after a
-- workspace left the listing are not covered if nothing of it was loaded in them.
CREATE OR REPLACE VIEW usage.required_workspace AS
SELECT w.entity_id AS workspace_id,
       CASE
         WHEN NOT usage.is_configured(s.workspace_ids, e.external_id)
           THEN usage.loaded_months(w.entity_id, s.data_start)
         WHEN w.unlisted_since IS NULL OR w.is_deleted OR s.workspace_ids <> '{}' THEN '{(,)}'
         ELSE usage.loaded_months(w.entity_id, s.data_start) + CASE
           WHEN w.unlisted_since >= s.data_start::timestamp AT TIME ZONE 'UTC' THEN datemultirange(daterange(
             NULL, (date_trunc('month', w.unlisted_since AT TIME ZONE 'UTC') + interval '1 month')::date
           ))
           ELSE '{}'
         END
       END AS days
FROM usage.workspace w
JOIN usage.entity e USING (entity_id)
JOIN usage.source s USING (source_id);

-- The name of a scope's kind and tier together (src/core/domain/usage/meter.ts).
CREATE OR REPLACE FUNCTION usage.meter_of(kind text, trace_tier text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN kind = 'langsmith_deployments' THEN 'deployments' WHEN kind <> 'traces' THEN kind
            WHEN trace_tier = 'all' THEN 'traces'
  ELSE trace_tier END;

-- The amount of a stored number: measures with digits after the point are stored as whole numbers
-- (src/core/domain/usage/amount.ts).
CREATE OR REPLACE FUNCTION usage.amount_of(measure text, stored numeric) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE measure
  WHEN 'lcu' THEN stored * 0.000001
  WHEN 'lsu' THEN stored * 0.000001
  WHEN 'compute_standard_units' THEN stored * 0.000001
  WHEN 'storage_standard_units' THEN stored * 0.000001
  WHEN 'spend_usd' THEN stored * 0.000000001
  ELSE stored
END;

-- Measures that the platform may not give for an item (src/core/domain/usage/meter.ts).
CREATE OR REPLACE FUNCTION usage.is_standard_unit(measure text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN measure IN ('compute_standard_units', 'storage_standard_units');

-- Stored buckets with an item for which the platform gave no number: the measure has no record there, but LCU has one.
-- Without a record of LCU there was no item, so the measure is zero.
CREATE OR REPLACE VIEW usage.unknown_unit AS
SELECT c.scope_id, c.entity_id, m.measure, r.bucket_start AS usage_date
FROM usage.series c
JOIN usage.dated_record r USING (series_id)
CROSS JOIN (VALUES ('compute_standard_units'), ('storage_standard_units')) m (measure)
WHERE c.measure = 'lcu' AND NOT EXISTS (
  SELECT FROM usage.series s
  JOIN usage.dated_record o USING (series_id)
  WHERE s.scope_id = c.scope_id AND s.entity_id = c.entity_id AND s.measure = m.measure
    AND o.bucket_start = r.bucket_start
);

-- Wanted meters that the server may or may not count, and the first day for which that is not known. A day is known if
-- the server said, a month after the day, that it had counted nothing: usage may come late.
CREATE OR REPLACE VIEW usage.unknown_meter AS
SELECT a.source_id, a.meter, a.evidence, a.learned_at AS since,
       greatest(coalesce(a.starts_on, s.data_start), (a.none_until AT TIME ZONE 'UTC')::date - 31) AS unknown_from
FROM usage.source_meter a
JOIN usage.source s USING (source_id)
WHERE a.state = 'not_known' AND (s.wanted_meters IS NULL OR a.meter = ANY (s.wanted_meters));

-- Source x meter x dimension x workspace, with its scope of days and, for traces, its scope of hours. A workspace that
-- was never planned has no scope but has cells of traces, whose days are all missing. Another meter has a cell in three
-- cases: it has scopes; the server is known not to count it, so none of its days is available; or that is not known, so
-- all its days are missing. Deployment usage has its own beginning.
CREATE OR REPLACE VIEW usage.cell AS
SELECT c.meter, c.kind, c.trace_tier, c.scope_id AS day_scope_id, h.scope_id AS hour_scope_id, c.source_id, s.slug,
       s.data_start, coalesce(u.unknown_from, a.starts_on, s.data_start) AS begins_on, s.hourly_hours, c.group_by,
       c.workspace_id AS workspace_entity_id, usage.shown_id(e.external_id) AS workspace_id,
       -- Looked up: a join with labelled_entity would sort the names of everybody.
       (
         SELECT n.name FROM usage.entity_name n WHERE n.entity_id = c.workspace_id
         ORDER BY n.fetch_number DESC LIMIT 1
       ) AS workspace_name,
       coalesce(a.state IN ('not_counted', 'nothing_yet'), false)
         OR EXISTS (SELECT FROM usage.source_fact n WHERE n.source_id = c.source_id AND n.fact = 'no_day')
           AS has_no_days,
       EXISTS (SELECT FROM usage.source_fact n WHERE n.source_id = c.source_id AND n.fact = 'no_hour') AS has_no_hours,
       -- No sync loads a workspace that is not configured, so only the months in which it was loaded count.
       CASE WHEN usage.is_configured(s.workspace_ids, e.external_id) THEN '{(,)}'
            ELSE usage.loaded_months(e.entity_id, s.data_start) END AS expected_days
FROM (
  SELECT usage.meter_of(d.kind, d.trace_tier) AS meter, d.kind, d.trace_tier, d.scope_id, d.source_id, d.group_by,
         d.workspace_id
  FROM usage.scope d
  WHERE d.stride = 'day'
  UNION ALL
  SELECT m.meter, m.kind, m.trace_tier, NULL, e.source_id, m.group_by, w.entity_id
  FROM usage.workspace w
  JOIN usage.entity e USING (entity_id)
  CROSS JOIN usage.meter_dimension m
  WHERE NOT EXISTS (
    SELECT FROM usage.scope d
    WHERE d.source_id = e.source_id AND d.workspace_id = w.entity_id AND d.group_by = m.group_by AND d.stride = 'day'
      AND usage.meter_of(d.kind, d.trace_tier) = m.meter
  ) AND (
    m.meter = 'traces'
    OR EXISTS (
      SELECT FROM usage.source_meter a
      WHERE a.source_id = e.source_id AND a.meter = m.meter AND a.state IN ('not_counted', 'nothing_yet')
    )
    OR EXISTS (SELECT FROM usage.unknown_meter u WHERE u.source_id = e.source_id AND u.meter = m.meter)
  )
) c
JOIN usage.source s ON s.source_id = c.source_id
JOIN usage.entity e ON e.entity_id = c.workspace_id
LEFT JOIN usage.source_meter a ON a.source_id = c.source_id AND a.meter = c.meter
LEFT JOIN usage.unknown_meter u ON u.source_id = c.source_id AND u.meter = c.meter
LEFT JOIN usage.trace_scope h
  ON h.source_id = c.source_id AND h.group_by = c.group_by AND h.workspace_id = c.workspace_id AND h.stride = 'hour'
 AND c.meter = 'traces';

-- The days of each cell by status, from usage.day_state and what the source says. `final`, `failed`, `unverified`,
-- `missing` and `not_available` do not overlap; loaded days in none of them are provisional.
--
-- OFFSET 0: each set is computed once for a cell, not for each mention. Without it here or in usage.trace_cell, totals
-- of workspaces from three years of months would take 1.4 times as long.
CREATE OR REPLACE VIEW usage.day_cell AS
SELECT c.meter, c.kind, c.trace_tier, c.day_scope_id, c.hour_scope_id, c.source_id, c.slug, c.data_start, c.begins_on,
       c.hourly_hours, c.group_by, c.workspace_entity_id, c.workspace_id, c.workspace_name, c.expected_days, r.*
FROM usage.cell c
LEFT JOIN usage.day_state s ON s.scope_id = c.day_scope_id
CROSS JOIN LATERAL (
  SELECT l.expected, d.loaded, d.final, n.days AS not_available, d.failed - n.days AS failed,
         d.unverified - n.days AS unverified,
         l.expected - d.loaded - n.days - d.failed - d.unverified AS missing, d.traced, d.failed AS stored_failed,
         d.unverified AS stored_unverified
  FROM (
    SELECT coalesce(s.loaded, '{}') AS loaded, coalesce(s.final, '{}') AS final, coalesce(s.failed, '{}') AS failed,
           coalesce(s.unverified, '{}') AS unverified, coalesce(s.traced, '{}') AS traced,
           least(c.data_start, c.begins_on) AS first
  ) d
  CROSS JOIN LATERAL (
    -- Other usage than traces of all tiers may begin before the traces of its source.
    SELECT datemultirange(daterange(d.first, greatest(d.first, (now() AT TIME ZONE 'UTC')::date + 1))) * c.expected_days
             + CASE WHEN c.meter = 'traces' THEN '{}' ELSE d.loaded END AS expected
  ) l
  CROSS JOIN LATERAL (
    SELECT CASE WHEN c.has_no_days THEN '{(,)}' ELSE datemultirange(daterange(NULL, c.begins_on)) END - d.loaded AS days
  ) n
  LIMIT ALL OFFSET 0
) r;

-- Days that hours fill: the day is neither loaded nor unverified (hours of an unverified day may show an invalidated
-- zero), and its 24 hours are loaded.
CREATE OR REPLACE FUNCTION usage.days_made_of_hours(
  whole_days datemultirange, loaded datemultirange, unverified datemultirange
)
RETURNS datemultirange
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(whole_days - coalesce(loaded, '{}') - coalesce(unverified, '{}'), '{}');

-- The cells of traces of all tiers, with the days that hours fill.
CREATE OR REPLACE VIEW usage.trace_cell AS
SELECT c.day_scope_id, c.hour_scope_id, c.source_id, c.slug, c.data_start, c.group_by, c.workspace_entity_id,
       c.workspace_id, c.workspace_name, c.expected_days, c.expected, c.loaded AS own_days, h.*
FROM usage.day_cell c
LEFT JOIN usage.hour_state o ON o.scope_id = c.hour_scope_id
CROSS JOIN LATERAL (
  SELECT w.days AS days_of_hours, c.loaded + w.days AS loaded,
         c.final + (coalesce(o.whole_final_days * w.days, '{}') - c.stored_failed * w.days) AS final,
         c.not_available - w.days AS not_available, c.failed + c.stored_failed * w.days AS failed, c.unverified,
         c.missing - w.days AS missing, c.traced + coalesce(o.traced * w.days, '{}') AS traced
  FROM (SELECT usage.days_made_of_hours(o.whole_days, c.loaded, c.stored_unverified) AS days) w
  LIMIT ALL OFFSET 0
) h
WHERE c.meter = 'traces';

-- The cells of traces, joined with the days of both retention tiers. Short-lived traces are all traces less the
-- long-lived ones, so each of their days needs both and has the worse status. The tiers are looked up for each cell:
-- with a join, the planner would compute the cells of long-lived traces again for each cell. Null: tiers are not
-- loaded.
CREATE OR REPLACE VIEW usage.tiered_cell AS
SELECT x.*, t.longlived_scope_id, t.begins_on AS tiers_begin_on, t.expected AS tiers_expected, t.loaded AS tiers_loaded,
       t.final AS tiers_final, t.not_available AS tiers_not_available, t.failed AS tiers_failed,
       t.expected - t.loaded - t.not_available - t.failed - t.unverified AS tiers_missing,
       t.unverified AS tiers_unverified
FROM usage.trace_cell x
LEFT JOIN LATERAL (
  SELECT max(l.day_scope_id) AS longlived_scope_id, max(l.begins_on) AS begins_on,
         range_agg(l.expected + x.expected) AS expected, range_agg(l.loaded * x.own_days) AS loaded,
         range_agg(l.final * x.final * x.own_days) AS final,
         range_agg(l.not_available + x.not_available) AS not_available,
         range_agg(l.failed + x.failed) AS failed,
         -- If one of the two is unverified and the other was never requested, the day is missing.
         range_agg(l.unverified + x.unverified - l.missing - x.missing - x.days_of_hours) AS unverified
  FROM usage.day_cell l
  WHERE l.meter = 'longlived' AND l.group_by = x.group_by AND l.workspace_entity_id = x.workspace_entity_id
) t ON true;

-- The tiers alone, one row for each dimension and workspace. GROUP BY shows the planner that a join finds at most one
-- row, so a query that reads no tier does not compute it. The planner does not see that for a column that a query
-- filters on, so the position replaces the dimension.
CREATE OR REPLACE VIEW usage.tier_cell AS
SELECT usage.dimension_position(group_by) AS place, workspace_entity_id, max(longlived_scope_id) AS longlived_scope_id,
       range_agg(tiers_loaded) AS loaded, range_agg(tiers_final) AS final,
       range_agg(tiers_not_available) AS not_available, range_agg(tiers_failed) AS failed,
       range_agg(tiers_missing) AS missing, range_agg(tiers_unverified) AS unverified
FROM usage.tiered_cell
GROUP BY 1, 2;

-- The hours of each cell of traces in the same way. Without OFFSET 0 the coverage of a month would take 1.1 times as
-- long. It covers the hours that are kept up to date, and any others that are loaded.
CREATE OR REPLACE VIEW usage.hour_cell AS
SELECT c.day_scope_id, c.hour_scope_id, c.source_id, c.slug, c.data_start, c.hourly_hours, c.group_by,
       c.workspace_entity_id, c.workspace_id, c.workspace_name, x.*
FROM usage.cell c
LEFT JOIN usage.hour_state h ON h.scope_id = c.hour_scope_id
CROSS JOIN LATERAL (
  SELECT d.loaded, d.final, d.expected, t.shown, n.hours AS not_available, d.failed - n.hours AS failed,
         d.unverified - n.hours AS unverified, t.shown - d.loaded - n.hours - d.failed - d.unverified AS missing,
         d.traced
  FROM (
    SELECT coalesce(h.loaded, '{}') AS loaded, coalesce(h.final, '{}') AS final, coalesce(h.failed, '{}') AS failed,
           coalesce(h.unverified, '{}') AS unverified, coalesce(h.traced, '{}') AS traced,
           -- A source keeps the last `hourly_hours` up to date, from the start of a UTC day on, and the current hour.
           tstzmultirange(tstzrange(least(r.first, r.after), r.after)) * usage.time_of(c.expected_days) AS expected,
           tstzmultirange(tstzrange(NULL, r.after)) AS past
    FROM (
      SELECT greatest(
               c.data_start::timestamp AT TIME ZONE 'UTC',
               date_trunc('day', now() - make_interval(hours => c.hourly_hours), 'UTC')
             ) AS first,
             date_trunc('hour', now(), 'UTC') + interval '1 hour' AS after
    ) r
  ) d
  CROSS JOIN LATERAL (SELECT d.loaded * d.past + d.expected AS shown) t
  CROSS JOIN LATERAL (SELECT CASE WHEN c.has_no_hours THEN t.shown - d.loaded ELSE '{}' END AS hours) n
  LIMIT ALL OFFSET 0
) x
WHERE c.meter = 'traces';

-- When the loaded time of each scope was fetched: arrays sorted by time, joined once for each scope. A query computes
-- only those that it reads.
CREATE OR REPLACE VIEW usage.fetched AS
SELECT scope_id, array_agg(period_start ORDER BY period_start) AS hours,
       array_agg((period_start AT TIME ZONE 'UTC')::date ORDER BY period_start) AS days,
       array_agg(fetched_at ORDER BY period_start) AS fetched_at
FROM usage.coverage
GROUP BY scope_id;
