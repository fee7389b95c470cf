-- Days of a dimension whose zero was withdrawn and that are not loaded again.
CREATE OR REPLACE VIEW usage.withdrawn_day AS
SELECT s.source_id, s.workspace_id, s.group_by, day AS usage_date, w.withdrawn_at
FROM (
  SELECT scope_id, range_agg(tstzrange(period_start, period_end)) AS parts, max(withdrawn_at) AS withdrawn_at
  FROM usage.withdrawal
  GROUP BY scope_id
) w
JOIN usage.trace_scope s USING (scope_id)
CROSS JOIN LATERAL (
  SELECT coalesce(range_agg(tstzrange(c.period_start, c.period_end)), '{}') AS parts
  FROM usage.coverage c
  WHERE c.scope_id = w.scope_id
) loaded
CROSS JOIN LATERAL usage.days_of(usage.whole_days(w.parts - loaded.parts)) day
WHERE s.stride = 'day';

-- Configured workspaces that the key lost: gone from the listing without being deleted, or with zeros that were withdrawn.
CREATE OR REPLACE VIEW usage.lost_workspace AS
SELECT e.source_id, w.entity_id AS workspace_id, e.external_id, coalesce(z.zeros, 0) AS zeros, z.first_day, z.last_day,
       greatest(w.unlisted_since, z.withdrawn_at) AS lost_at
FROM usage.workspace w
JOIN usage.entity e USING (entity_id)
JOIN usage.source s USING (source_id)
LEFT JOIN (
  SELECT workspace_id, count(*)::integer AS zeros, min(usage_date) AS first_day, max(usage_date) AS last_day,
         max(withdrawn_at) AS withdrawn_at
  FROM usage.withdrawn_day
  GROUP BY workspace_id
) z ON z.workspace_id = w.entity_id
WHERE usage.is_configured(s.workspace_ids, e.external_id)
  AND (z.zeros > 0 OR (w.unlisted_since IS NOT NULL AND NOT w.is_deleted));

-- The hours of each cell as days: a day has the first status that any of its hours has. It is reconciled when all 24 of them are.
-- From sets, not hour by hour: the hours of three years are millions.
CREATE OR REPLACE VIEW usage.hour_cell_by_day AS
SELECT c.hour_scope_id, c.source_id, c.slug, c.group_by, c.workspace_entity_id, c.workspace_id,
       usage.touched_days(c.shown) AS expected,
       usage.touched_days(c.shown)
         - usage.touched_days(c.shown * (c.not_available + c.failed + c.missing + c.unverified) + (c.shown * c.loaded - c.final)) AS final,
       usage.touched_days(c.shown * c.not_available) AS not_available, usage.touched_days(c.shown * c.failed) AS failed,
       usage.touched_days(c.missing) AS missing, usage.touched_days(c.shown * c.unverified) AS unverified, c.traced,
       coalesce(usage.whole_days(p.parts), '{}') AS reconciled, p.starts AS proof_starts, p.reconciled_at
FROM usage.hour_cell c
LEFT JOIN usage.hour_proof p ON p.scope_id = c.hour_scope_id;

CREATE OR REPLACE VIEW reporting.usage_coverage_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.group_by, 'day'::text AS stride,
       CASE WHEN d.status = 'ok' AND NOT d.has_traces THEN 'empty' ELSE d.status END AS status,
       d.reconciled_at IS NOT NULL AS is_reconciled, d.reconciled_at, d.matched_at AS totals_matched_at, d.proved_at
FROM usage.expected_day d
UNION ALL
SELECT x.slug, d.usage_date, x.workspace_id, x.group_by, 'hour',
       CASE WHEN x.final @> d.usage_date AND NOT x.traced @> d.usage_date THEN 'empty'
            ELSE usage.day_status(d.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) END,
       x.reconciled @> d.usage_date, q.reconciled_at, NULL, q.reconciled_at
FROM (
  SELECT usage_date
  FROM usage.days_between(
    least((SELECT min(data_start) FROM usage.source), (SELECT (min(period_start) AT TIME ZONE 'UTC')::date FROM usage.coverage)),
    (now() AT TIME ZONE 'UTC')::date
  ) usage_date
) d
JOIN (
  -- Once for each cell, and not for those that a filter leaves out: see usage.cell_days.
  SELECT v.*, row_number() OVER (PARTITION BY v.slug, v.group_by, v.workspace_id) AS fence FROM usage.hour_cell_by_day v
) x ON x.expected @> d.usage_date
-- The oldest of the comparisons that the hours of the day need.
CROSS JOIN LATERAL (
  SELECT CASE WHEN x.reconciled @> d.usage_date THEN (
    SELECT min(one) FROM unnest(x.reconciled_at[
      width_bucket(d.usage_date::timestamp AT TIME ZONE 'UTC', x.proof_starts)
      : width_bucket((d.usage_date + 1)::timestamp AT TIME ZONE 'UTC' - interval '1 microsecond', x.proof_starts)
    ]) one
  ) END AS reconciled_at
) q;
COMMENT ON VIEW reporting.usage_coverage_daily IS 'Grain: UTC day x workspace x dimension x stride (key: source_id, usage_date, workspace_id, group_by, stride). Says whether the figures of the day can be used. Expected are all days from the data start on, and the hours that are kept up to date.';

CREATE OR REPLACE VIEW reporting.data_freshness AS
SELECT src.slug AS source_id, c.group_by, c.stride, max(v.period_end) AS loaded_until,
       max(v.period_end) FILTER (WHERE v.final) AS final_until, max(v.fetched_at) AS fetched_at,
       extract(epoch FROM now() - max(v.fetched_at))::bigint AS lag_seconds
FROM usage.trace_scope c
JOIN usage.source src USING (source_id)
JOIN usage.coverage v USING (scope_id)
GROUP BY src.slug, c.group_by, c.stride;
COMMENT ON VIEW reporting.data_freshness IS 'Grain: source x dimension x stride (key: source_id, group_by, stride). Says up to when usage is loaded and final.';
