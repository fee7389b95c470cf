-- Usage of other meters than traces of all tiers, by day: long-lived and short-lived traces, deployments, sandboxes and
-- evaluators. Building blocks; readers cannot see them.
--
-- The days of a cell are ranges, one for each reason why a figure is not there. So the status of a day takes a few searches.
-- Who reads these views materializes the cells that it needs: so the ranges are computed once for each cell, not for each row.

-- The days of each figure that is shown: those of most meters are those of their scope. Short-lived
-- traces are all less the long-lived ones. So each of their days needs both, and is no better than the worse one. When they were fetched
-- are subqueries, for each cell by the key: joined, all coverage would be grouped again for each cell.
CREATE OR REPLACE VIEW usage.figure_days AS
SELECT x.*, x.expected - x.loaded - x.not_available - x.failed - x.unverified AS missing
FROM (
  SELECT c.meter, c.trace_tier, c.day_scope_id AS scope_id, NULL::integer AS trace_scope_id, c.slug, c.source_id, c.group_by,
         c.workspace_entity_id, c.workspace_id, c.workspace_name, c.begins_on, c.expected, c.loaded, c.final, c.not_available,
         c.failed, c.unverified,
         ARRAY(SELECT (v.period_start AT TIME ZONE 'UTC')::date FROM usage.coverage v WHERE v.scope_id = c.day_scope_id ORDER BY v.period_start) AS starts,
         ARRAY(SELECT v.fetched_at FROM usage.coverage v WHERE v.scope_id = c.day_scope_id ORDER BY v.period_start) AS fetched_at,
         NULL::date[] AS trace_starts, NULL::timestamptz[] AS trace_fetched_at
  FROM usage.day_cell c
  WHERE c.meter NOT IN ('traces', 'shortlived')
  UNION ALL
  SELECT 'shortlived', 'shortlived', l.day_scope_id, a.day_scope_id, l.slug, l.source_id, l.group_by, l.workspace_entity_id,
         l.workspace_id, l.workspace_name, l.begins_on, l.expected + a.expected, l.loaded * a.loaded, l.final * a.final,
         l.not_available + a.not_available, l.failed + a.failed,
         -- Where one is unverified and the other was never asked for, the day is missing.
         l.unverified + a.unverified - l.missing - a.missing,
         ARRAY(SELECT (v.period_start AT TIME ZONE 'UTC')::date FROM usage.coverage v WHERE v.scope_id = l.day_scope_id ORDER BY v.period_start),
         ARRAY(SELECT v.fetched_at FROM usage.coverage v WHERE v.scope_id = l.day_scope_id ORDER BY v.period_start),
         ARRAY(SELECT (v.period_start AT TIME ZONE 'UTC')::date FROM usage.coverage v WHERE v.scope_id = a.day_scope_id ORDER BY v.period_start),
         ARRAY(SELECT v.fetched_at FROM usage.coverage v WHERE v.scope_id = a.day_scope_id ORDER BY v.period_start)
  FROM usage.day_cell l
  JOIN usage.day_cell a ON a.workspace_entity_id = l.workspace_entity_id AND a.group_by = l.group_by AND a.meter = 'traces'
  WHERE l.meter = 'longlived'
) x;

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
           WHEN x.final @> t.days AND NOT isempty(t.days) THEN 'ok'
           WHEN x.not_available && t.days OR isempty(t.days) THEN 'not_available'
           WHEN x.failed && t.days THEN 'failed'
           WHEN x.missing && t.days THEN 'missing'
           WHEN x.unverified && t.days THEN 'unverified'
           ELSE 'provisional'
         END AS status
  OFFSET 0
) c
WHERE NOT isempty(e.ended);
