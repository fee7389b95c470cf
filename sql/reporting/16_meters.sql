-- Usage of other meters than traces of all tiers, by day: long-lived and short-lived traces, deployments, sandboxes and
-- evaluators. Building blocks; readers cannot see them.
--
-- The days of a cell are ranges, one for each reason why a figure is missing. So the status of a day takes a few
-- searches. Callers materialize the cells that they need, so that the ranges are computed once for each cell, not for
-- each row.

-- The days of each figure that is shown. For most meters these are the days of their scope. The times of their requests
-- are subqueries for each cell by the key: with a join, all coverage would be grouped again for each cell.
CREATE OR REPLACE VIEW usage.figure_days AS
SELECT c.meter, c.trace_tier, c.day_scope_id AS scope_id, NULL::integer AS trace_scope_id, c.slug, c.source_id,
       c.group_by, c.workspace_entity_id, c.workspace_id, c.workspace_name, c.expected, c.loaded, c.final,
       c.not_available, c.failed, c.unverified, c.missing,
       ARRAY(SELECT (v.period_start AT TIME ZONE 'UTC')::date FROM usage.coverage v
             WHERE v.scope_id = c.day_scope_id ORDER BY v.period_start) AS starts,
       ARRAY(SELECT v.fetched_at FROM usage.coverage v WHERE v.scope_id = c.day_scope_id ORDER BY v.period_start)
         AS fetched_at
FROM usage.day_cell c
WHERE c.meter NOT IN ('traces', 'shortlived')
UNION ALL
SELECT 'shortlived', 'shortlived', x.longlived_scope_id, x.day_scope_id, x.slug, x.source_id, x.group_by,
       x.workspace_entity_id, x.workspace_id, x.workspace_name, x.tiers_expected, x.tiers_loaded, x.tiers_final,
       x.tiers_not_available, x.tiers_failed, x.tiers_unverified, x.tiers_missing, NULL, NULL
FROM usage.tiered_cell x
WHERE x.tiers_loaded IS NOT NULL;

-- Each expected day of each measure by workspace, except all traces. Long-lived and short-lived traces have their own
-- status here, as they are charged. A scope has one id, unless a response spells it in two ways.
CREATE OR REPLACE VIEW usage.measured_day AS
SELECT x.slug, d.usage_date, g.meter, m.measure, x.workspace_id, x.workspace_name, f.quantity, f.status,
       CASE WHEN t.loaded THEN x.fetched_at[width_bucket(d.usage_date, x.starts)] END AS fetched_at,
       nullif(p.reconciled_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS reconciled_at,
       nullif(p.matched_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS matched_at,
       nullif(p.proved_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS proved_at
FROM usage.meter_dimension g
JOIN usage.figure_days x USING (group_by, meter)
-- coalesce, because the planner expects one day in a thousand to match a bare @>.
JOIN (
  SELECT usage_date
  FROM usage.days_between(
    -- least ignores a null, which means that no usage of other meters is known.
    least((SELECT min(data_start) FROM usage.source), (SELECT min(starts_on) FROM usage.source_meter)),
    (now() AT TIME ZONE 'UTC')::date
  ) usage_date
  ORDER BY usage_date DESC
) d ON coalesce(x.expected @> d.usage_date, false)
CROSS JOIN LATERAL (
  SELECT x.loaded @> d.usage_date AS loaded,
         usage.status_at(d.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status
) t
JOIN usage.measure m ON m.meter = g.meter AND m.is_reported
-- The figure of a day is looked up, not joined, so a week costs the same however many years are stored.
LEFT JOIN LATERAL (
  SELECT coalesce(sum(r.traces) FILTER (WHERE s.scope_id = x.scope_id), 0) AS stored,
         coalesce(sum(r.traces) FILTER (WHERE s.scope_id = x.trace_scope_id), 0) AS traces
  FROM usage.series s
  JOIN usage.dated_record r USING (series_id)
  WHERE s.scope_id IN (x.scope_id, x.trace_scope_id) AND r.bucket_start = d.usage_date
    AND (g.kind = 'traces' OR s.measure = m.measure)
) l ON t.loaded
CROSS JOIN LATERAL (
  SELECT usage.is_standard_unit(m.measure) AND EXISTS (
           SELECT FROM usage.unknown_unit o
           WHERE o.scope_id = x.scope_id AND o.measure = m.measure AND o.usage_date = d.usage_date
         ) AS is_unknown
) k
CROSS JOIN LATERAL (
  SELECT CASE WHEN k.is_unknown THEN NULL
              WHEN x.trace_scope_id IS NULL THEN usage.amount_of(m.measure, l.stored)
              WHEN l.traces >= l.stored THEN l.traces - l.stored END AS quantity,
         CASE WHEN k.is_unknown THEN 'not_available'
              WHEN x.trace_scope_id IS NOT NULL
                THEN usage.shortlived_status(t.status, l.traces::bigint, l.stored::bigint)
              WHEN t.status = 'ok' AND l.stored = 0 THEN 'empty' ELSE t.status END AS status
) f
-- A total without a number for an item proves nothing about standard units.
LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id AND NOT usage.is_standard_unit(m.measure)
WHERE x.group_by = 'workspace' AND g.meter <> 'traces';
