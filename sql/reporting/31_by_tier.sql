-- Traces by retention tier. Long-lived traces have records of their own; the short-lived ones are all traces less these. The
-- platform upgrades traces afterwards: that moves them from one tier to the other, and the sum stays.

CREATE OR REPLACE VIEW reporting_detail.fct_usage_workspace_by_tier_daily AS
WITH x AS MATERIALIZED (
  SELECT t.*, ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = t.scope_id) AS series,
         ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = t.trace_scope_id) AS trace_series
  FROM usage.figure_days t
  WHERE t.group_by = 'workspace' AND t.meter IN ('longlived', 'shortlived')
)
SELECT x.slug AS source_id, d.usage_date, x.workspace_id, x.workspace_name, x.trace_tier, f.traces,
       usage.is_final(f.status) AS is_final, f.status AS coverage_status,
       CASE WHEN t.loaded THEN least(
         x.fetched_at[width_bucket(d.usage_date, x.starts)], x.trace_fetched_at[width_bucket(d.usage_date, x.trace_starts)]
       ) END AS fetched_at,
       v.reconciled_at IS NOT NULL AS is_reconciled, v.reconciled_at, v.matched_at AS totals_matched_at, v.proved_at
FROM (
  SELECT usage_date
  FROM usage.days_between((SELECT min(data_start) FROM usage.source), (now() AT TIME ZONE 'UTC')::date) usage_date
  ORDER BY usage_date DESC
) d
-- coalesce: of a bare @> the planner expects one day in a thousand.
JOIN x ON coalesce(x.expected @> d.usage_date, false)
CROSS JOIN LATERAL (
  SELECT x.loaded @> d.usage_date AS loaded,
         usage.day_status(d.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status
  OFFSET 0
) t
-- The figure of a day is looked up, not joined: so a week costs the same however many years there are.
LEFT JOIN LATERAL (
  SELECT coalesce(sum(r.traces), 0)::bigint AS traces
  FROM usage.dated_record r
  WHERE r.series_id = ANY (x.series) AND r.bucket_start = d.usage_date
) l ON t.loaded
LEFT JOIN LATERAL (
  SELECT coalesce(sum(r.traces), 0)::bigint AS traces
  FROM usage.dated_record r
  WHERE r.series_id = ANY (x.trace_series) AND r.bucket_start = d.usage_date
) a ON t.loaded AND x.trace_scope_id IS NOT NULL
CROSS JOIN LATERAL (
  SELECT CASE WHEN x.trace_scope_id IS NULL THEN l.traces WHEN a.traces >= l.traces THEN a.traces - l.traces END AS traces,
         CASE WHEN x.trace_scope_id IS NOT NULL THEN usage.shortlived_status(t.status, a.traces, l.traces)
              WHEN t.status = 'ok' AND l.traces = 0 THEN 'empty' ELSE t.status END AS status
) f
LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
LEFT JOIN usage.day_proof q ON q.scope_id = x.trace_scope_id
CROSS JOIN LATERAL (
  SELECT CASE WHEN x.trace_scope_id IS NULL THEN nullif(p.reconciled_at[width_bucket(d.usage_date, p.starts)], '-infinity')
              WHEN f.status <> 'inconsistent' THEN usage.proved_by_both(p.reconciled_at[width_bucket(d.usage_date, p.starts)], q.reconciled_at[width_bucket(d.usage_date, q.starts)]) END AS reconciled_at,
         CASE WHEN x.trace_scope_id IS NULL THEN nullif(p.matched_at[width_bucket(d.usage_date, p.starts)], '-infinity')
              WHEN f.status <> 'inconsistent' THEN usage.proved_by_both(p.matched_at[width_bucket(d.usage_date, p.starts)], q.matched_at[width_bucket(d.usage_date, q.starts)]) END AS matched_at,
         CASE WHEN x.trace_scope_id IS NULL THEN nullif(p.proved_at[width_bucket(d.usage_date, p.starts)], '-infinity')
              WHEN f.status <> 'inconsistent' THEN usage.proved_by_both(p.proved_at[width_bucket(d.usage_date, p.starts)], q.proved_at[width_bucket(d.usage_date, q.starts)]) END AS proved_at
) v;
COMMENT ON VIEW reporting_detail.fct_usage_workspace_by_tier_daily IS 'Long-lived and short-lived traces by workspace and day. Grain: UTC day x workspace x retention tier, longlived or shortlived (key: source_id, usage_date, workspace_id, trace_tier), every day from the data start to today. Traces add up over all of these; both tiers together are the traces of fct_usage_workspace_daily. Null traces: not loaded, which is not zero.';

CREATE OR REPLACE VIEW reporting_detail.fct_usage_workspace_by_tier_monthly AS
WITH x AS MATERIALIZED (
  SELECT * FROM usage.figure_months t WHERE t.group_by = 'workspace' AND t.meter IN ('longlived', 'shortlived')
)
SELECT x.slug AS source_id, x.month_start, x.workspace_id, x.workspace_name, x.trace_tier, f.traces, x.days_expected, x.days_loaded,
       x.is_complete, x.is_final AND f.status <> 'inconsistent' AS is_final, f.status AS coverage_status,
       usage.is_month_over(x.month_start) AS is_month_over
FROM x
LEFT JOIN LATERAL (
  SELECT coalesce(sum(t.traces), 0)::bigint AS traces
  FROM usage.series s
  JOIN usage.monthly_total t USING (series_id)
  WHERE s.scope_id = x.scope_id AND t.month_start = x.month_start
) l ON x.is_complete
LEFT JOIN LATERAL (
  SELECT coalesce(sum(t.traces), 0)::bigint AS traces
  FROM usage.series s
  JOIN usage.monthly_total t USING (series_id)
  WHERE s.scope_id = x.trace_scope_id AND t.month_start = x.month_start
) a ON x.is_complete AND x.trace_scope_id IS NOT NULL
CROSS JOIN LATERAL (
  SELECT CASE WHEN x.trace_scope_id IS NULL THEN l.traces WHEN a.traces >= l.traces THEN a.traces - l.traces END AS traces,
         CASE WHEN x.trace_scope_id IS NOT NULL THEN usage.shortlived_status(x.status, a.traces, l.traces)
              WHEN x.status = 'ok' AND l.traces = 0 THEN 'empty' ELSE x.status END AS status
) f;
COMMENT ON VIEW reporting_detail.fct_usage_workspace_by_tier_monthly IS 'Long-lived and short-lived traces by workspace and month. Grain: calendar month (UTC) x workspace x retention tier, longlived or shortlived (key: source_id, month_start, workspace_id, trace_tier), every month from the data start on. Traces add up over all of these. Null traces: at least one expected day is not loaded. Expected is every day that has ended, and today once it is loaded.';

-- each dimension but workspace
CREATE OR REPLACE VIEW reporting_detail.fct_usage_{dimension}_by_tier_daily AS
WITH x AS MATERIALIZED (
  SELECT * FROM usage.figure_days t WHERE t.group_by = '{dimension}' AND t.meter IN ('longlived', 'shortlived')
)
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name, {columns}, d.trace_tier, d.traces,
       usage.is_final(d.status) AS is_final, d.status AS coverage_status, d.fetched_at, d.reconciled_at IS NOT NULL AS is_reconciled,
       d.reconciled_at, d.matched_at AS totals_matched_at, d.proved_at
FROM (
  -- Names once, not for each part of the list.
  SELECT u.*, e.dimension_id, e.dimension_name
  FROM (
    SELECT x.slug, r.bucket_start AS usage_date, x.workspace_id, x.workspace_name, s.entity_id, x.trace_tier,
           r.traces,
           CASE WHEN r.traces = 0 AND x.final @> r.bucket_start THEN 'empty'
                ELSE usage.day_status(r.bucket_start, x.final, x.not_available, x.failed, x.missing, x.unverified) END AS status,
           x.fetched_at[width_bucket(r.bucket_start, x.starts)] AS fetched_at,
           nullif(p.reconciled_at[width_bucket(r.bucket_start, p.starts)], '-infinity') AS reconciled_at,
           nullif(p.matched_at[width_bucket(r.bucket_start, p.starts)], '-infinity') AS matched_at,
           nullif(p.proved_at[width_bucket(r.bucket_start, p.starts)], '-infinity') AS proved_at
    FROM x
    JOIN usage.series s ON s.scope_id = x.scope_id
    JOIN usage.dated_record r USING (series_id)
    LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
    WHERE x.trace_tier = 'longlived'
    UNION ALL
    SELECT x.slug, r.bucket_start, x.workspace_id, x.workspace_name, s.entity_id, x.trace_tier,
           CASE WHEN r.traces >= l.traces THEN r.traces - l.traces END,
           usage.shortlived_status(
             usage.day_status(r.bucket_start, x.final, x.not_available, x.failed, x.missing, x.unverified), r.traces, l.traces
           ),
           least(x.fetched_at[width_bucket(r.bucket_start, x.starts)], x.trace_fetched_at[width_bucket(r.bucket_start, x.trace_starts)]),
           CASE WHEN r.traces >= l.traces THEN usage.proved_by_both(p.reconciled_at[width_bucket(r.bucket_start, p.starts)], a.reconciled_at[width_bucket(r.bucket_start, a.starts)]) END,
           CASE WHEN r.traces >= l.traces THEN usage.proved_by_both(p.matched_at[width_bucket(r.bucket_start, p.starts)], a.matched_at[width_bucket(r.bucket_start, a.starts)]) END,
           CASE WHEN r.traces >= l.traces THEN usage.proved_by_both(p.proved_at[width_bucket(r.bucket_start, p.starts)], a.proved_at[width_bucket(r.bucket_start, a.starts)]) END
    FROM x
    LEFT JOIN usage.day_proof p ON p.scope_id = x.scope_id
    LEFT JOIN usage.day_proof a ON a.scope_id = x.trace_scope_id
    -- Once for each series: joined, the other ones of the scope would be compared with each record.
    CROSS JOIN LATERAL (
      SELECT s.series_id, s.entity_id,
             (SELECT o.series_id FROM usage.series o WHERE o.scope_id = x.scope_id AND o.entity_id = s.entity_id) AS longlived_series
      FROM usage.series s
      WHERE s.scope_id = x.trace_scope_id
      OFFSET 0
    ) s
    JOIN usage.dated_record r ON r.series_id = s.series_id
    -- Looked up, not joined: a filter on the day would reach one side of a join only.
    CROSS JOIN LATERAL (
      SELECT coalesce((
        SELECT l.traces FROM usage.dated_record l WHERE l.series_id = s.longlived_series AND l.bucket_start = r.bucket_start
      ), 0) AS traces
      OFFSET 0
    ) l
    -- coalesce: of a bare @> the planner expects one row in a thousand, and then reads all names again for each row.
    WHERE x.trace_tier = 'shortlived' AND coalesce(x.loaded @> r.bucket_start, false)
    UNION ALL
    -- Long-lived traces of an id that no record of all tiers names.
    SELECT x.slug, l.bucket_start, x.workspace_id, x.workspace_name, o.entity_id, x.trace_tier, NULL, 'inconsistent',
           least(x.fetched_at[width_bucket(l.bucket_start, x.starts)], x.trace_fetched_at[width_bucket(l.bucket_start, x.trace_starts)]),
           NULL, NULL, NULL
    FROM x
    JOIN usage.series o ON o.scope_id = x.scope_id
    LEFT JOIN usage.series s ON s.scope_id = x.trace_scope_id AND s.entity_id = o.entity_id
    JOIN usage.dated_record l ON l.series_id = o.series_id AND l.traces > 0
    WHERE x.trace_tier = 'shortlived' AND coalesce(x.loaded @> l.bucket_start, false) AND (
      SELECT true FROM usage.dated_record r WHERE r.series_id = s.series_id AND r.bucket_start = l.bucket_start
    ) IS NULL
    UNION ALL
    SELECT x.slug, day, x.workspace_id, x.workspace_name, NULL, x.trace_tier, NULL,
           usage.day_status(day, x.final, x.not_available, x.failed, x.missing, x.unverified), NULL, NULL, NULL, NULL
    FROM x
    CROSS JOIN LATERAL usage.days_of(x.expected - x.loaded) day
  ) u
  LEFT JOIN usage.labelled_entity e USING (entity_id)
) d;
COMMENT ON VIEW reporting_detail.fct_usage_{dimension}_by_tier_daily IS 'Long-lived and short-lived traces by {title} and day. Grain: UTC day x workspace x {title} x retention tier, longlived or shortlived (key: source_id, usage_date, workspace_id, {id_column}, trace_tier), days with usage. A day x workspace x tier that is not loaded is one row with null id and null traces. Traces add up over all of these. Never add them to those of another dimension. Filter on usage_date: without it every record is read.';

CREATE OR REPLACE VIEW reporting_detail.fct_usage_{dimension}_by_tier_monthly AS
WITH x AS MATERIALIZED (
  SELECT * FROM usage.figure_months t WHERE t.group_by = '{dimension}' AND t.meter IN ('longlived', 'shortlived')
)
SELECT d.slug AS source_id, d.month_start, d.workspace_id, d.workspace_name, {columns}, d.trace_tier, d.traces, d.days_expected,
       d.days_loaded, d.is_complete, d.is_final AND d.status <> 'inconsistent' AS is_final, d.status AS coverage_status,
       usage.is_month_over(d.month_start) AS is_month_over
FROM (
  -- Names once, not for each part of the list.
  SELECT u.*, e.dimension_id, e.dimension_name
  FROM (
    SELECT x.slug, x.month_start, x.workspace_id, x.workspace_name, s.entity_id, x.trace_tier, t.traces,
           x.days_expected, x.days_loaded, x.is_complete, x.is_final,
           CASE WHEN t.traces = 0 AND x.status = 'ok' THEN 'empty' ELSE x.status END AS status
    FROM x
    JOIN usage.series s ON s.scope_id = x.scope_id
    JOIN usage.monthly_total t ON t.series_id = s.series_id AND t.month_start = x.month_start
    WHERE x.trace_tier = 'longlived' AND x.is_complete
    UNION ALL
    SELECT x.slug, x.month_start, x.workspace_id, x.workspace_name, f.entity_id, x.trace_tier,
           CASE WHEN f.traces >= f.longlived THEN f.traces - f.longlived END, x.days_expected, x.days_loaded, x.is_complete, x.is_final,
           usage.shortlived_status(x.status, f.traces, f.longlived)
    FROM x
    CROSS JOIN LATERAL (
      SELECT s.entity_id, t.traces, coalesce((
               SELECT l.traces FROM usage.monthly_total l WHERE l.series_id = o.series_id AND l.month_start = t.month_start
             ), 0) AS longlived
      FROM usage.series s
      JOIN usage.monthly_total t ON t.series_id = s.series_id AND t.month_start = x.month_start
      LEFT JOIN usage.series o ON o.scope_id = x.scope_id AND o.entity_id = s.entity_id
      WHERE s.scope_id = x.trace_scope_id
      UNION ALL
      SELECT o.entity_id, 0, l.traces
      FROM usage.series o
      JOIN usage.monthly_total l ON l.series_id = o.series_id AND l.month_start = x.month_start
      LEFT JOIN usage.series s ON s.scope_id = x.trace_scope_id AND s.entity_id = o.entity_id
      WHERE o.scope_id = x.scope_id AND l.traces > 0 AND NOT EXISTS (
        SELECT FROM usage.monthly_total t WHERE t.series_id = s.series_id AND t.month_start = l.month_start
      )
    ) f
    WHERE x.trace_tier = 'shortlived' AND x.is_complete
    UNION ALL
    SELECT x.slug, x.month_start, x.workspace_id, x.workspace_name, NULL, x.trace_tier, NULL, x.days_expected, x.days_loaded,
           false, false, x.status
    FROM x
    WHERE NOT x.is_complete
  ) u
  LEFT JOIN usage.labelled_entity e USING (entity_id)
) d;
COMMENT ON VIEW reporting_detail.fct_usage_{dimension}_by_tier_monthly IS 'Long-lived and short-lived traces by {title} and month. Grain: calendar month (UTC) x workspace x {title} x retention tier, longlived or shortlived (key: source_id, month_start, workspace_id, {id_column}, trace_tier), months with usage. A month x workspace x tier with an expected day that is not loaded is one row with null id and null traces. Traces add up over all of these. Never add them to those of another dimension.';

-- end
