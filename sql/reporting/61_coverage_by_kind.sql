-- The days of every kind and tier that is loaded, each by its own records. usage_coverage_daily has traces of all tiers
-- only, and fills days with hours.
CREATE OR REPLACE VIEW reporting_detail.usage_coverage_by_kind_daily AS
SELECT x.slug AS source_id, d.usage_date, x.workspace_id, x.group_by, x.kind, x.trace_tier,
       CASE WHEN t.status = 'ok' AND NOT t.has_traces THEN 'empty' ELSE t.status END AS status,
       CASE WHEN x.loaded @> d.usage_date THEN f.fetched_at[width_bucket(d.usage_date, f.days)] END AS fetched_at,
       v.reconciled_at IS NOT NULL AS is_reconciled, v.reconciled_at, v.matched_at AS totals_matched_at, v.proved_at
FROM (
  SELECT usage_date
  FROM usage.days_between(
    least((SELECT min(data_start) FROM usage.source), (SELECT min(starts_on) FROM usage.source_meter)),
    (now() AT TIME ZONE 'UTC')::date
  ) usage_date
  ORDER BY usage_date DESC
) d
JOIN usage.day_cell x ON coalesce(x.expected @> d.usage_date, false)
LEFT JOIN usage.fetched f ON f.scope_id = x.day_scope_id
CROSS JOIN LATERAL (
  SELECT usage.status_at(d.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status,
         x.traced @> d.usage_date AS has_traces
) t
LEFT JOIN usage.day_proof p ON p.scope_id = x.day_scope_id AND x.loaded @> d.usage_date
CROSS JOIN LATERAL (
  SELECT nullif(p.reconciled_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS reconciled_at,
         nullif(p.matched_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS matched_at,
         nullif(p.proved_at[width_bucket(d.usage_date, p.starts)], '-infinity') AS proved_at
) v;
COMMENT ON VIEW reporting_detail.usage_coverage_by_kind_daily IS
  'Which days of retention tiers, deployments, sandboxes and evaluators are missing. Grain: UTC day x workspace x '
  'dimension x kind of usage x tier (key: source_id, usage_date, workspace_id, group_by, kind, trace_tier). Each kind '
  'and tier has the status of its own responses. For days of traces take usage_coverage_daily, where hours can fill a '
  'day. Never count days over kinds and tiers. All days from the data start on are expected, for deployments from '
  'their own beginning if that is earlier.';
CALL usage.comment_columns('{reporting_detail.usage_coverage_by_kind_daily}',
  'kind', 'Kind of usage: traces, langsmith_deployments, sandboxes or evaluators.',
  'trace_tier',
    'Requested tier: all, longlived or shortlived. Short-lived traces need no response of their own: they are all '
    'traces less the long-lived ones.'
);
