-- Usage of other meters than traces of all tiers, by day: long-lived and short-lived traces, and deployment usage. Building
-- blocks; readers cannot see them.
--
-- The days of a cell are ranges, one for each reason why a figure is not there. So the status of a day takes a few searches.
-- Who reads these views materializes the cells that it needs: so the ranges are computed once for each cell, not for each row.

-- Source x meter x dimension x workspace, with its scope of days. Without a scope a meter has cells only where the server is
-- known not to count it: then none of their days is available. Deployment usage has a beginning of its own.
CREATE OR REPLACE VIEW usage.meter_cell AS
SELECT m.meter, m.kind, m.trace_tier, c.scope_id, w.slug, w.source_id, g.group_by, w.workspace_entity_id, w.workspace_id,
       w.workspace_name, w.data_start, coalesce(a.starts_on, w.data_start) AS begins_on,
       w.has_no_day OR a.is_available IS FALSE AS is_unavailable, w.configured_days
FROM (
  -- The name is looked up: a join with labelled_entity would sort the names of everybody.
  SELECT s.slug, s.source_id, s.data_start, e.entity_id AS workspace_entity_id, usage.shown_id(e.external_id) AS workspace_id,
         (
           SELECT n.name FROM usage.entity_name n WHERE n.entity_id = e.entity_id
           ORDER BY n.last_bucket DESC, n.fetch_number DESC, n.name LIMIT 1
         ) AS workspace_name,
         usage.expected_days(s.workspace_ids, e.external_id, e.entity_id, s.data_start) AS configured_days,
         EXISTS (SELECT FROM usage.source_fact n WHERE n.source_id = s.source_id AND n.fact = 'no_day') AS has_no_day
  FROM usage.workspace x
  JOIN usage.entity e USING (entity_id)
  JOIN usage.source s USING (source_id)
  -- Keeps its tables out of the queries that join it: planning them would take several times as long.
  OFFSET 0
) w
CROSS JOIN (
  -- each dimension
  SELECT '{dimension}'::text AS group_by UNION ALL
  -- end
  SELECT NULL WHERE false
) g
CROSS JOIN (
  VALUES ('traces', 'traces', 'all'), ('longlived', 'traces', 'longlived'), ('shortlived', 'traces', 'shortlived'),
         ('deployments', 'langsmith_deployments', 'all')
) m (meter, kind, trace_tier)
LEFT JOIN usage.every_scope c
  ON c.source_id = w.source_id AND c.kind = m.kind AND c.trace_tier = m.trace_tier AND c.group_by = g.group_by
 AND c.workspace_id = w.workspace_entity_id AND c.stride = 'day'
LEFT JOIN usage.source_meter a ON a.source_id = w.source_id AND a.meter = m.meter
WHERE c.scope_id IS NOT NULL OR a.is_available IS FALSE;

-- The days of each cell: expected, loaded by records of their own, and why they are not. A day that failed or is unverified may
-- show what was loaded before.
CREATE OR REPLACE VIEW usage.meter_days AS
SELECT c.meter, c.kind, c.trace_tier, c.scope_id, c.slug, c.source_id, c.group_by, c.workspace_entity_id, c.workspace_id,
       c.workspace_name, c.begins_on, e.expected, v.loaded, v.final,
       CASE WHEN c.is_unavailable THEN '{(,)}' ELSE datemultirange(daterange(NULL, c.begins_on)) END - v.loaded AS unavailable,
       f.failed, f.unverified, v.starts, v.fetched_at
FROM usage.meter_cell c
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(t.days), '{}') AS loaded, coalesce(range_agg(t.days) FILTER (WHERE v.final), '{}') AS final,
         array_agg(lower(t.days) ORDER BY t.days) AS starts, array_agg(v.fetched_at ORDER BY t.days) AS fetched_at
  FROM usage.coverage v
  CROSS JOIN LATERAL (
    SELECT daterange((v.period_start AT TIME ZONE 'UTC')::date, (v.period_end AT TIME ZONE 'UTC')::date) AS days
  ) t
  WHERE v.scope_id = c.scope_id
) v
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(t.days) FILTER (WHERE f.state = 'failed'), '{}') AS failed,
         coalesce(range_agg(t.days) FILTER (WHERE f.state = 'unverified'), '{}') AS unverified
  FROM usage.failure f
  CROSS JOIN LATERAL (
    SELECT daterange((f.period_start AT TIME ZONE 'UTC')::date, (f.period_end AT TIME ZONE 'UTC')::date) AS days
  ) t
  WHERE f.scope_id = c.scope_id
) f
CROSS JOIN LATERAL (
  -- Deployment usage may begin before the traces of its source.
  SELECT datemultirange(daterange(first, greatest(first, (now() AT TIME ZONE 'UTC')::date + 1))) * c.configured_days + v.loaded
           AS expected
  FROM least(c.data_start, c.begins_on) first
) e;

-- The days of each figure that is shown: those of long-lived traces and of deployment usage are those of their scope. Short-lived
-- traces are all less the long-lived ones. So each of their days needs both, and is no better than the worse one.
CREATE OR REPLACE VIEW usage.figure_days AS
SELECT x.*, x.final - x.failed - x.unverified AS sure, x.expected - x.loaded - x.unavailable - x.failed - x.unverified AS missing
FROM (
  SELECT meter, trace_tier, scope_id, NULL::integer AS trace_scope_id, slug, source_id, group_by, workspace_entity_id, workspace_id,
         workspace_name, begins_on, expected, loaded, final, unavailable, failed, unverified, starts, fetched_at,
         NULL::date[] AS trace_starts, NULL::timestamptz[] AS trace_fetched_at
  FROM usage.meter_days
  WHERE meter IN ('longlived', 'deployments')
  UNION ALL
  SELECT 'shortlived', 'shortlived', l.scope_id, a.scope_id, l.slug, l.source_id, l.group_by, l.workspace_entity_id, l.workspace_id,
         l.workspace_name, l.begins_on, l.expected + a.expected, l.loaded * a.loaded, l.final * a.final,
         l.unavailable + a.unavailable, l.failed + a.failed,
         -- Where one is unverified and the other was never asked for, the day is missing.
         (l.unverified + a.unverified)
           - (l.expected - l.loaded - l.failed - l.unverified) - (a.expected - a.loaded - a.failed - a.unverified),
         l.starts, l.fetched_at, a.starts, a.fetched_at
  FROM usage.meter_days l
  JOIN usage.meter_days a ON a.workspace_entity_id = l.workspace_entity_id AND a.group_by = l.group_by AND a.meter = 'traces'
  WHERE l.meter = 'longlived'
) x;

-- Status of a figure on a day of its cell, but for the difference between empty and ok.
CREATE OR REPLACE FUNCTION usage.day_status(
  day date, sure datemultirange, unavailable datemultirange, failed datemultirange, missing datemultirange,
  unverified datemultirange
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN sure @> day THEN 'ok'
  WHEN unavailable @> day THEN 'not_available'
  WHEN failed @> day THEN 'failed'
  WHEN missing @> day THEN 'missing'
  WHEN unverified @> day THEN 'unverified'
  ELSE 'provisional'
END;

-- Status of the short-lived traces of a day or month. They are inconsistent where there are more long-lived traces than traces:
-- then the one was requested before the other, or the platform contradicts itself.
CREATE OR REPLACE FUNCTION usage.shortlived_status(status text, traces bigint, longlived bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN longlived > traces THEN 'inconsistent' WHEN status = 'ok' AND traces = longlived THEN 'empty' ELSE status END;

-- Calendar months of each figure. Expected is every day from the beginning on that has ended, and today once it is loaded. A month
-- has no figure if one of these days is not available.
CREATE OR REPLACE VIEW usage.figure_months AS
SELECT x.meter, x.trace_tier, x.scope_id, x.trace_scope_id, x.slug, x.source_id, x.group_by, x.workspace_entity_id, x.workspace_id,
       x.workspace_name, month AS month_start, c.days_expected, c.days_loaded, c.status,
       c.days_expected > 0 AND c.days_loaded = c.days_expected AND c.status <> 'not_available' AS is_complete,
       c.status = 'ok' AND usage.is_month_over(month) AS is_final
FROM usage.figure_days x
CROSS JOIN LATERAL usage.months_of(lower(x.expected), (now() AT TIME ZONE 'UTC')::date) month
CROSS JOIN LATERAL (
  SELECT x.expected * datemultirange(daterange(month, (month + interval '1 month')::date))
           - (datemultirange(daterange((now() AT TIME ZONE 'UTC')::date, NULL)) - x.loaded) AS ended
  OFFSET 0
) e
CROSS JOIN LATERAL (
  SELECT e.ended - (datemultirange(daterange(NULL, x.begins_on)) - x.loaded) AS days
  OFFSET 0
) t
CROSS JOIN LATERAL (
  SELECT usage.count_days(t.days) AS days_expected, usage.count_days(t.days * x.loaded) AS days_loaded,
         CASE
           WHEN x.sure @> t.days AND NOT isempty(t.days) THEN 'ok'
           WHEN x.unavailable && t.days OR isempty(t.days) THEN 'not_available'
           WHEN x.failed && t.days THEN 'failed'
           WHEN x.missing && t.days THEN 'missing'
           WHEN x.unverified && t.days THEN 'unverified'
           ELSE 'provisional'
         END AS status
  OFFSET 0
) c
WHERE NOT isempty(e.ended);
