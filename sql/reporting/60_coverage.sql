-- Configured workspaces that the key lost: responses no longer name them, or they left the listing without being
-- deleted, or zeros were invalidated and are not loaded again. Zeros are days of a dimension.
CREATE OR REPLACE VIEW usage.lost_workspace AS
SELECT e.source_id, w.entity_id AS workspace_id, e.external_id, coalesce(z.zeros, 0) AS zeros, z.days,
       greatest(CASE WHEN x.is_unread THEN w.readable_since END, w.unlisted_since, z.invalidated_at) AS lost_at,
       x.is_unread, x.is_unlisted
FROM usage.workspace w
JOIN usage.entity e USING (entity_id)
CROSS JOIN LATERAL (
  SELECT w.readable_at IS NULL AND w.used_before IS NOT NULL AS is_unread,
         w.unlisted_since IS NOT NULL AND NOT w.is_deleted AS is_unlisted
) x
JOIN usage.source s USING (source_id)
LEFT JOIN (
  SELECT c.workspace_id, sum(usage.count_days(d.days))::integer AS zeros, range_agg(d.days) AS days,
         max(l.invalidated_at) AS invalidated_at
  FROM (
    SELECT scope_id, range_agg(tstzrange(period_start, period_end)) AS parts, max(invalidated_at) AS invalidated_at
    FROM usage.withdrawal
    GROUP BY scope_id
  ) l
  JOIN usage.trace_scope c USING (scope_id)
  CROSS JOIN LATERAL (
    SELECT usage.whole_days(l.parts - coalesce(range_agg(tstzrange(v.period_start, v.period_end)), '{}')) AS days
    FROM usage.coverage v
    WHERE v.scope_id = l.scope_id
  ) d
  WHERE c.stride = 'day' AND d.days <> '{}'
  GROUP BY c.workspace_id
) z ON z.workspace_id = w.entity_id
WHERE usage.is_configured(s.workspace_ids, e.external_id)
  AND (x.is_unread OR x.is_unlisted OR z.zeros > 0);

-- The hours of each cell as days: a day has the first status that any of its hours has. It is reconciled when all 24
-- hours are. This reads sets, not hours: three years have millions of hours.
CREATE OR REPLACE VIEW usage.hour_cell_by_day AS
SELECT c.hour_scope_id, c.source_id, c.slug, c.group_by, c.workspace_entity_id, c.workspace_id, c.workspace_name,
       usage.touched_days(c.loaded) AS loaded, d.expected,
       d.expected
         - usage.touched_days(c.shown * (c.not_available + c.failed + c.missing + c.unverified)
             + (c.shown * c.loaded - c.final)) AS final,
       usage.touched_days(c.shown * c.not_available) AS not_available, usage.touched_days(c.shown * c.failed) AS failed,
       usage.touched_days(c.missing) AS missing, usage.touched_days(c.shown * c.unverified) AS unverified, c.traced,
       coalesce(usage.whole_days(p.parts), '{}') AS reconciled, p.starts AS proof_starts, p.reconciled_at
FROM usage.hour_cell c
LEFT JOIN usage.hour_proof p ON p.scope_id = c.hour_scope_id
CROSS JOIN LATERAL (SELECT usage.touched_days(c.shown) AS expected) d;

-- The expected days of each cell as sets, one for each status, without overlaps. Final days are `ok` if they have
-- traces and `empty` if not. Callers that count days or need years read them here; the views of reporting list the days
-- one by one.
CREATE OR REPLACE VIEW usage.coverage_cell AS
SELECT x.source_id, x.slug, x.meter, x.stride, x.group_by, x.workspace_entity_id, x.workspace_id, x.workspace_name,
       x.day_scope_id, x.hour_scope_id, x.loaded, x.days_of_hours,
       x.expected * x.not_available - x.final AS not_available,
       x.expected * x.failed - x.final - x.not_available AS failed,
       x.expected * x.missing - x.final - x.not_available - x.failed AS missing,
       x.expected * x.unverified - x.final - x.not_available - x.failed - x.missing AS unverified,
       x.expected - x.final - x.not_available - x.failed - x.missing - x.unverified AS provisional,
       x.expected * x.final AS final, x.traced, x.expected * x.reconciled AS reconciled,
       x.expected * x.matched AS matched
FROM (
  SELECT c.source_id, c.slug, 'traces'::text AS meter, 'day'::text AS stride, c.group_by, c.workspace_entity_id,
         c.workspace_id, c.workspace_name, c.day_scope_id, c.hour_scope_id, c.loaded, c.days_of_hours, c.expected,
         c.not_available, c.failed, c.missing, c.unverified, c.final, c.traced,
         coalesce(c.own_days * p.compared - p.differing, '{}') AS reconciled,
         coalesce(c.own_days * p.totalled - p.differing, '{}') AS matched
  FROM usage.trace_cell c
  LEFT JOIN usage.day_proof p ON p.scope_id = c.day_scope_id
  UNION ALL
  SELECT h.source_id, h.slug, 'traces', 'hour', h.group_by, h.workspace_entity_id, h.workspace_id, h.workspace_name,
         NULL, h.hour_scope_id, h.loaded, '{}', h.expected, h.not_available, h.failed, h.missing, h.unverified, h.final,
         h.traced, h.reconciled, '{}'
  FROM usage.hour_cell_by_day h
  UNION ALL
  SELECT c.source_id, c.slug, c.meter, 'day', c.group_by, c.workspace_entity_id, c.workspace_id, c.workspace_name,
         c.day_scope_id, NULL, c.loaded, '{}', c.expected, c.not_available, c.failed, c.missing, c.unverified, c.final,
         c.traced, coalesce(c.loaded * p.compared - p.differing, '{}'),
         coalesce(c.loaded * p.totalled - p.differing, '{}')
  FROM usage.day_cell c
  LEFT JOIN usage.day_proof p ON p.scope_id = c.day_scope_id
  WHERE c.meter <> 'traces'
) x;

-- When a response by workspace last had as many traces on a day as the stored figures of a dimension add up to. Null if
-- it had another number. A function that runs as its owner, since readers may not read the tables.
CREATE OR REPLACE FUNCTION usage.sum_confirmed_at(day_scope integer, usage_date date) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT v.fetched_at
  FROM usage.scope s
  JOIN usage.scope w USING (source_id, kind, trace_tier, workspace_id, stride)
  JOIN usage.coverage v ON v.scope_id = w.scope_id
    AND v.period_start <= usage_date::timestamp AT TIME ZONE 'UTC'
      AND v.period_end > usage_date::timestamp AT TIME ZONE 'UTC'
  WHERE s.scope_id = day_scope AND w.group_by = 'workspace' AND NOT EXISTS (
    SELECT FROM usage.series e JOIN usage.dated_record r USING (series_id)
    WHERE e.scope_id IN (s.scope_id, w.scope_id) AND r.bucket_start = usage_date
    HAVING sum(CASE WHEN e.scope_id = s.scope_id THEN r.traces ELSE -r.traces END) <> 0
  )
$$;

CREATE OR REPLACE VIEW reporting_detail.usage_coverage_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.group_by, 'day'::text AS stride,
       CASE WHEN d.status = 'ok' AND NOT d.has_traces THEN 'empty' ELSE d.status END AS status,
       d.reconciled_at IS NOT NULL AS is_reconciled, d.reconciled_at, d.matched_at AS totals_matched_at, d.proved_at,
       d.fetched_at,
       -- Final days are not requested again.
       CASE WHEN d.status = 'provisional' AND d.group_by <> 'workspace'
            THEN greatest(d.fetched_at, usage.sum_confirmed_at(d.day_scope_id, d.usage_date))
              ELSE d.fetched_at END AS sum_confirmed_at
FROM usage.expected_day d
UNION ALL
SELECT x.slug, d.usage_date, x.workspace_id, x.group_by, 'hour',
       CASE WHEN x.final @> d.usage_date AND NOT x.traced @> d.usage_date THEN 'empty'
            ELSE usage.status_at(d.usage_date, x.final, x.not_available, x.failed, x.missing, x.unverified) END,
       x.reconciled @> d.usage_date, q.reconciled_at, NULL, q.reconciled_at,
       (
         SELECT min(v.fetched_at) FROM usage.coverage v
         WHERE v.scope_id = x.hour_scope_id AND v.period_start < (d.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
           AND v.period_end > d.usage_date::timestamp AT TIME ZONE 'UTC'
       ),
       NULL
FROM (
  SELECT usage_date
  FROM usage.days_between(
    least((SELECT min(data_start) FROM usage.source),
        (SELECT (min(period_start) AT TIME ZONE 'UTC')::date FROM usage.coverage)),
    (now() AT TIME ZONE 'UTC')::date
  ) usage_date
) d
JOIN (
  -- Once for each cell that the filter keeps: see usage.expected_day.
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
COMMENT ON VIEW reporting_detail.usage_coverage_daily IS
  'Which days of traces are missing and why, which are final, and which are proved. Grain: UTC day x workspace x '
  'dimension x stride (key: source_id, usage_date, workspace_id, group_by, stride). Choose one group_by and one '
  'stride. It covers traces of all tiers, as the views of traces show them: hours fill a day that is not loaded '
  'itself. Other usage is in usage_coverage_by_kind_daily, so no day is counted twice here. status shows whether the '
  'figures of the day can be used, or why not: missing, failed, unverified, not_available. All days from the data '
  'start on are expected, and the hours that are kept up to date.';
CALL usage.comment_columns('{reporting_detail.usage_coverage_daily}',
  'fetched_at',
    'When the day was requested from the platform in this dimension and stride, by the clock of this database. For '
    'hours: the oldest request. Null: no part of the day is loaded.',
  'sum_confirmed_at',
    'When the sum of the day was last known to be unchanged. It is fetched_at or, while the day is provisional, the '
    'time of a later response by workspace that has as many traces as the sum of this dimension. It does not confirm '
    'the traces of each project, user or key. Null: the row is of hours, or nothing is loaded.'
);

CREATE OR REPLACE VIEW reporting.data_freshness AS
SELECT src.slug AS source_id, c.group_by, c.stride, max(v.period_end) AS loaded_until,
       max(v.period_end) FILTER (WHERE v.final) AS final_until, max(v.fetched_at) AS fetched_at,
       extract(epoch FROM now() - max(v.fetched_at))::bigint AS lag_seconds
FROM usage.trace_scope c
JOIN usage.source src USING (source_id)
JOIN usage.coverage v USING (scope_id)
GROUP BY src.slug, c.group_by, c.stride;
COMMENT ON VIEW reporting.data_freshness IS
  'How fresh the figures are: up to when usage is loaded and final. Grain: source x dimension x stride (key: '
  'source_id, group_by, stride). Earlier days may still be missing: usage_coverage_daily lists them, and is_final of '
  'dim_date shows whether all figures of a day are final.';
CALL usage.comment_columns('{reporting.data_freshness}',
  'loaded_until', 'End of the latest loaded bucket, not included.',
  'final_until', 'End of the latest final bucket, not included. Null: no bucket is final.',
  'lag_seconds', 'Seconds since the last request to the platform. Does not add up.'
);
