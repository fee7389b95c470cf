-- The days of every kind and tier that is loaded, each by records of its own. usage_coverage_daily has traces of all tiers only, and
-- fills days with hours.
CREATE OR REPLACE VIEW reporting.usage_coverage_by_kind_daily AS
WITH x AS MATERIALIZED (
  SELECT v.*, v.final - v.failed - v.unverified AS sure,
         v.expected - v.loaded - v.unavailable - v.failed - v.unverified AS missing
  FROM usage.meter_days v
)
SELECT x.slug AS source_id, d.usage_date, x.workspace_id, x.group_by, x.kind, x.trace_tier,
       -- The subqueries look at one series after the other and stop at the first with usage.
       CASE WHEN t.status <> 'ok' OR EXISTS (
         SELECT FROM usage.series s
         WHERE s.scope_id = x.scope_id AND (
           SELECT r.traces FROM usage.dated_record r WHERE r.series_id = s.series_id AND r.bucket_start = d.usage_date
         ) > 0
       ) THEN t.status ELSE 'empty' END AS status,
       CASE WHEN x.loaded @> d.usage_date THEN x.fetched_at[width_bucket(d.usage_date, x.starts)] END AS fetched_at,
       v.reconciled_at IS NOT NULL AS is_reconciled, v.reconciled_at, v.matched_at AS totals_matched_at, v.proved_at
FROM (
  SELECT usage_date
  FROM usage.days_between(
    least((SELECT min(data_start) FROM usage.source), (SELECT min(starts_on) FROM usage.source_meter)),
    (now() AT TIME ZONE 'UTC')::date
  ) usage_date
  ORDER BY usage_date DESC
) d
JOIN x ON coalesce(x.expected @> d.usage_date, false)
CROSS JOIN LATERAL (
  SELECT usage.day_status(d.usage_date, x.sure, x.unavailable, x.failed, x.missing, x.unverified) AS status
  OFFSET 0
) t
LEFT JOIN usage.every_proved_day p ON p.scope_id = x.scope_id
CROSS JOIN LATERAL (
  SELECT nullif(p.reconciled_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS reconciled_at,
         nullif(p.matched_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS matched_at,
         nullif(p.proved_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS proved_at
) v;
COMMENT ON VIEW reporting.usage_coverage_by_kind_daily IS 'Grain: UTC day x workspace x dimension x kind of usage x tier (key: source_id, usage_date, workspace_id, group_by, kind, trace_tier). Says whether the figures of the day can be used. Expected are all days from the data start on, of deployments from their own beginning if that is earlier.';
