-- Days of a dimension whose zero was withdrawn and that are not loaded again.
CREATE OR REPLACE VIEW usage.withdrawn_day AS
SELECT s.source_id, s.workspace_id, s.group_by, day AS usage_date, w.withdrawn_at
FROM (
  SELECT scope_id, range_agg(tstzrange(period_start, period_end)) AS parts, max(withdrawn_at) AS withdrawn_at
  FROM usage.withdrawal
  GROUP BY scope_id
) w
JOIN usage.scope s USING (scope_id)
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

-- ok or empty: the subqueries look at one series after the other and stop at the first with traces. The inner ones are
-- scalar, so that no plan can read the records of all series for each day, whatever it expects.
CREATE OR REPLACE VIEW reporting.usage_coverage_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.group_by, 'day'::text AS stride,
       CASE
         WHEN d.status <> 'ok' THEN d.status
         WHEN NOT d.by_hours THEN CASE WHEN EXISTS (
           SELECT FROM usage.series s
           WHERE s.scope_id = d.day_scope_id AND (
             SELECT r.traces FROM usage.dated_record r WHERE r.series_id = s.series_id AND r.bucket_start = d.usage_date
           ) > 0
         ) THEN 'ok' ELSE 'empty' END
         WHEN EXISTS (
           SELECT FROM usage.series s
           WHERE s.scope_id = d.hour_scope_id AND (
             SELECT true FROM usage.hourly_record r
             WHERE r.series_id = s.series_id AND r.traces > 0
               AND r.bucket_start >= d.usage_date::timestamp AT TIME ZONE 'UTC'
               AND r.bucket_start < (d.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
             LIMIT 1
           )
         ) THEN 'ok'
         ELSE 'empty'
       END AS status,
       d.reconciled_at IS NOT NULL AS is_reconciled, d.reconciled_at, d.matched_at AS totals_matched_at, d.proved_at
FROM usage.day_state d
UNION ALL
-- The hours of a day have one status: the first of usage.figure_status that any of them has. It comes from ranges, not from
-- figure_status, because the hours of three years are millions.
SELECT x.slug, d.usage_date, x.workspace_id, x.group_by, 'hour',
       CASE
         -- Nearly every day: nothing failed, and all of it is final.
         WHEN x.failure_parts IS NULL AND x.final_hours @> t.whole THEN CASE WHEN u.has_traces THEN 'ok' ELSE 'empty' END
         WHEN x.is_unavailable AND NOT x.hours @> (x.shown * t.wholes) THEN 'not_available'
         WHEN x.failed && (x.shown * t.wholes) THEN 'failed'
         WHEN NOT x.hours + coalesce(x.failure_parts, '{}') @> (x.shown * t.wholes) THEN 'missing'
         WHEN x.failure_parts && (x.shown * t.wholes) THEN 'unverified'
         WHEN NOT x.final_hours @> (x.shown * t.wholes) THEN 'provisional'
         WHEN u.has_traces THEN 'ok'
         ELSE 'empty'
       END,
       q.is_reconciled, q.reconciled_at, NULL, q.reconciled_at
FROM (
  SELECT usage_date
  FROM usage.days_between(
    least((SELECT min(data_start) FROM usage.source), (SELECT (min(period_start) AT TIME ZONE 'UTC')::date FROM usage.coverage)),
    (now() AT TIME ZONE 'UTC')::date
  ) usage_date
) d
JOIN (
  -- Once for each cell, and not for those that a filter leaves out: see usage.cell_days.
  SELECT v.*, usage.touched_days(v.shown) AS shown_days,
         row_number() OVER (PARTITION BY v.slug, v.group_by, v.workspace_id) AS outer_fence
  FROM (
    SELECT c.slug, c.workspace_id, c.group_by, c.hour_scope_id, c.hours, c.final_hours, f.failed, f.parts AS failure_parts,
           n.source_id IS NOT NULL AS is_unavailable, p.parts AS proved_parts, p.starts AS proof_starts,
           p.reconciled_at AS proved_at,
           c.hours * tstzmultirange(tstzrange(NULL, date_trunc('hour', now(), 'UTC') + interval '1 hour'))
             + tstzmultirange(usage.expected_hours(c.data_start, c.hourly_hours)) * usage.time_of(c.expected_days) AS shown,
           row_number() OVER (PARTITION BY c.slug, c.group_by, c.workspace_id) AS fence
    FROM usage.cell_time c
    LEFT JOIN usage.hour_failure f ON f.scope_id = c.hour_scope_id
    LEFT JOIN usage.source_fact n ON n.source_id = c.source_id AND n.fact = 'no_hour'
    LEFT JOIN usage.hour_proof p ON p.scope_id = c.hour_scope_id
  ) v
) x ON x.shown_days @> d.usage_date
CROSS JOIN LATERAL (
  SELECT tstzrange(d.usage_date::timestamp AT TIME ZONE 'UTC', (d.usage_date + 1)::timestamp AT TIME ZONE 'UTC') AS whole
) w
CROSS JOIN LATERAL (SELECT w.whole, tstzmultirange(w.whole) AS wholes) t
CROSS JOIN LATERAL (
  SELECT EXISTS (
    SELECT FROM usage.series s
    WHERE s.scope_id = x.hour_scope_id AND (
      SELECT true FROM usage.hourly_record r
      WHERE r.series_id = s.series_id AND r.traces > 0
        AND r.bucket_start >= d.usage_date::timestamp AT TIME ZONE 'UTC'
        AND r.bucket_start < (d.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
      LIMIT 1
    )
  ) AS has_traces
) u
-- All 24 hours; the oldest of the comparisons that they need.
CROSS JOIN LATERAL (SELECT coalesce(x.final_hours @> t.whole AND x.proved_parts @> t.whole, false) AS is_reconciled) r
CROSS JOIN LATERAL (
  SELECT r.is_reconciled, CASE WHEN r.is_reconciled THEN (
    SELECT min(one) FROM unnest(x.proved_at[
      width_bucket(lower(t.whole), x.proof_starts) : width_bucket(upper(t.whole) - interval '1 microsecond', x.proof_starts)
    ]) one
  ) END AS reconciled_at
) q;
COMMENT ON VIEW reporting.usage_coverage_daily IS 'Grain: UTC day x workspace x dimension x stride (key: source_id, usage_date, workspace_id, group_by, stride). Says whether the figures of the day can be used. Expected are all days from the data start on, and the hours that are kept up to date.';

CREATE OR REPLACE VIEW reporting.data_freshness AS
SELECT src.slug AS source_id, c.group_by, c.stride, max(v.period_end) AS loaded_until,
       max(v.period_end) FILTER (WHERE v.final) AS final_until, max(v.fetched_at) AS fetched_at,
       extract(epoch FROM now() - max(v.fetched_at))::bigint AS lag_seconds
FROM usage.scope c
JOIN usage.source src USING (source_id)
JOIN usage.coverage v USING (scope_id)
GROUP BY src.slug, c.group_by, c.stride;
COMMENT ON VIEW reporting.data_freshness IS 'Grain: source x dimension x stride (key: source_id, group_by, stride). Says up to when usage is loaded and final.';
