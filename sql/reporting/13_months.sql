-- Calendar months of a cell. Expected days are all from the data start on that have ended, and today once it is loaded.
-- So a complete month stays complete when a new day begins. A month without an expected day has no row, nor has a month
-- in which the workspace is not expected.
CREATE OR REPLACE VIEW usage.month_state AS
SELECT x.day_scope_id, x.slug, x.group_by, x.workspace_id, x.workspace_name, month AS month_start,
       upper(t.span) - lower(t.span) AS days_expected,
       CASE
         WHEN x.loaded @> t.span THEN upper(t.span) - lower(t.span)
         ELSE usage.count_days(x.loaded * datemultirange(t.span))
       END AS days_loaded,
       (month + interval '1 month')::date <= x.today AND x.final @> t.span AS is_final,
       x.by_hours && t.span AS by_hours, x.workspace_entity_id
FROM (
  SELECT c.day_scope_id, c.slug, c.data_start, c.group_by, c.workspace_entity_id, c.workspace_id, c.workspace_name,
         (now() AT TIME ZONE 'UTC')::date AS today, c.days_of_hours AS by_hours, c.loaded, c.final, c.expected_days,
         -- Once for each cell that the filter keeps: see usage.expected_day.
         row_number() OVER (PARTITION BY c.slug, c.group_by, c.workspace_id) AS fence
  FROM usage.trace_cell c
) x
CROSS JOIN LATERAL usage.months_of(x.data_start, x.today) month
CROSS JOIN LATERAL (
  SELECT least((month + interval '1 month')::date, x.today + (x.loaded @> x.today)::integer) AS after
) u
CROSS JOIN LATERAL (SELECT daterange(least(greatest(month, x.data_start), u.after), u.after) AS span) t
WHERE NOT isempty(t.span) AND coalesce(x.expected_days @> month, false);

-- Figures of complete months by entity. Only a month with a day that is made of hours is more than its stored total. An
-- incomplete month is one row without an entity, with the traces of all entities on its loaded days. A query that reads
-- them looks them up for these few months alone.
CREATE OR REPLACE VIEW usage.monthly_row AS
SELECT cell.slug, cell.group_by, t.month_start, cell.workspace_id, cell.workspace_name, e.dimension_id,
       e.dimension_name, t.traces, m.days_expected[width_bucket(t.month_start, m.starts)] AS days_expected,
       m.days_loaded[width_bucket(t.month_start, m.starts)] AS days_loaded,
       m.is_final[width_bucket(t.month_start, m.starts)] AS is_final, t.traces AS traces_loaded,
       cell.workspace_entity_id, s.entity_id
FROM usage.cell cell
-- The months of a cell as arrays sorted by time, so they are joined once for each cell, not once for each row. In a
-- plain month no day is made of hours, so its stored totals are its figures.
JOIN (
  SELECT day_scope_id, array_agg(month_start ORDER BY month_start) AS starts,
         array_agg(days_expected ORDER BY month_start) AS days_expected,
         array_agg(days_loaded ORDER BY month_start) AS days_loaded,
         array_agg(is_final ORDER BY month_start) AS is_final,
         array_agg(days_loaded = days_expected AND NOT by_hours ORDER BY month_start) AS plain
  FROM usage.month_state
  GROUP BY day_scope_id
) m USING (day_scope_id)
JOIN usage.series s ON s.scope_id = cell.day_scope_id
JOIN usage.monthly_total t USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
WHERE m.plain[width_bucket(t.month_start, m.starts)]
UNION ALL
SELECT m.slug, m.group_by, f.month_start, m.workspace_id, m.workspace_name, e.dimension_id, e.dimension_name, f.traces,
       m.days_expected, m.days_loaded, m.is_final, f.traces, m.workspace_entity_id, f.entity_id
FROM usage.month_state m
JOIN (
  SELECT day_scope_id, entity_id, month_start, sum(traces)::bigint AS traces
  FROM (
    SELECT day_scope_id, entity_id, usage.month_of(usage_date) AS month_start, traces FROM usage.figure_of_hours
    UNION ALL
    SELECT h.day_scope_id, s.entity_id, h.month_start, t.traces
    FROM (
      SELECT DISTINCT x.day_scope_id, usage.month_of(day) AS month_start
      FROM usage.trace_cell x
      CROSS JOIN LATERAL usage.days_of(x.days_of_hours) day
    ) h
    JOIN usage.series s ON s.scope_id = h.day_scope_id
    JOIN usage.monthly_total t ON t.series_id = s.series_id AND t.month_start = h.month_start
  ) part
  GROUP BY day_scope_id, entity_id, month_start
) f ON f.day_scope_id = m.day_scope_id AND f.month_start = m.month_start
JOIN usage.labelled_entity e USING (entity_id)
WHERE m.days_loaded = m.days_expected AND m.by_hours
UNION ALL
SELECT m.slug, m.group_by, m.month_start, m.workspace_id, m.workspace_name, NULL, NULL, NULL, m.days_expected,
       m.days_loaded, false,
       CASE WHEN m.days_loaded > 0 THEN coalesce((
         SELECT sum(t.traces)
         FROM usage.series s
         JOIN usage.monthly_total t USING (series_id)
         WHERE s.scope_id = m.day_scope_id AND t.month_start = m.month_start
       ), 0) + CASE WHEN m.by_hours THEN coalesce((
         SELECT sum(h.traces)
         FROM usage.figure_of_hours h
         WHERE h.day_scope_id = m.day_scope_id AND usage.month_of(h.usage_date) = m.month_start
       ), 0) ELSE 0 END END::bigint, m.workspace_entity_id, NULL
FROM usage.month_state m
WHERE m.days_loaded < m.days_expected;

-- Months of both retention tiers. A month has no figure if one of its days from their beginning on is not available.
CREATE OR REPLACE VIEW usage.tiers_month AS
SELECT x.source_id, x.slug, x.group_by, x.workspace_entity_id, x.workspace_id, x.workspace_name, month AS month_start,
       x.day_scope_id, x.longlived_scope_id,
       x.tiers_loaded @> t.days AND NOT isempty(t.days) AND NOT x.tiers_not_available && t.days AS is_complete,
       CASE
         WHEN isempty(t.days) OR x.tiers_not_available && t.days THEN 'not_available'
         WHEN x.tiers_final @> t.days THEN 'ok'
         WHEN x.tiers_failed && t.days THEN 'failed'
         WHEN x.tiers_missing && t.days THEN 'missing'
         WHEN x.tiers_unverified && t.days THEN 'unverified'
         ELSE 'provisional'
       END AS status
-- Once for each cell that the filter keeps: see usage.expected_day.
FROM (
  SELECT *, row_number() OVER (PARTITION BY slug, group_by, workspace_id) AS fence FROM usage.tiered_cell
) x
CROSS JOIN (SELECT (now() AT TIME ZONE 'UTC')::date AS today) n
CROSS JOIN LATERAL usage.months_of(x.data_start, n.today) month
CROSS JOIN LATERAL (
  -- Every day that has ended, and today once it is loaded. Without OFFSET 0 it would be computed for each mention, and
  -- the tiers of a year of months by project would take 1.3 times as long.
  SELECT x.tiers_expected * datemultirange(daterange(month, (month + interval '1 month')::date))
           - (datemultirange(daterange(NULL, x.tiers_begin_on), daterange(n.today, NULL)) - x.tiers_loaded) AS days
  LIMIT ALL OFFSET 0
) t
WHERE t.days IS NOT NULL;
