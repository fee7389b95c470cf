-- The rules of usage.day_state and usage.hour_state, computed slowly from records, bucket by bucket: the oracle of
-- tests and of `doctor`. A bucket without a row is missing. If one hour of a day has traces, each of its hours counts
-- as traced, as it is stored.
CREATE OR REPLACE FUNCTION usage.state_by_rules(scopes integer[])
RETURNS TABLE (scope_id integer, bucket_start timestamptz, state text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT b.scope_id, b.bucket_start,
         concat_ws(
           ', ',
           CASE WHEN b.failure IS NOT NULL THEN b.failure WHEN b.is_final THEN 'final' ELSE 'provisional' END,
           CASE WHEN b.is_final IS NOT NULL THEN 'loaded' END,
           CASE WHEN bool_or(b.has_traces) OVER day THEN 'traced' END,
           CASE WHEN b.stride = 'hour' AND count(*) FILTER (WHERE b.is_final IS NOT NULL) OVER day = 24
                  THEN 'of a whole day' END,
           CASE WHEN b.stride = 'hour' AND count(*) FILTER (WHERE b.is_final) OVER day = 24
                  THEN 'of a whole final day' END
         )
  FROM (
    SELECT k.*, k.is_final IS NOT NULL AND EXISTS (
             SELECT FROM usage.series x
             WHERE x.scope_id = k.scope_id AND CASE k.stride
               WHEN 'hour' THEN EXISTS (
                 SELECT FROM usage.hourly_record r
                 WHERE r.series_id = x.series_id AND r.bucket_start = k.bucket_start AND r.traces > 0
               )
               -- The bucket of a longer stride that contains the day.
               ELSE EXISTS (
                 SELECT FROM usage.dated_record r
                 WHERE r.series_id = x.series_id AND r.traces > 0
                   AND r.bucket_start <= (k.bucket_start AT TIME ZONE 'UTC')::date
                   AND r.bucket_start > (k.bucket_start AT TIME ZONE 'UTC')::date
                     - CASE k.stride WHEN 'day' THEN 1 WHEN 'week' THEN 7 WHEN 'month' THEN 30 ELSE 365 END
               )
             END
           ) AS has_traces
    FROM (
      SELECT s.scope_id, s.stride, t.bucket_start,
             (
               SELECT c.final FROM usage.coverage c
               WHERE c.scope_id = s.scope_id AND c.period_start <= t.bucket_start AND c.period_end > t.bucket_start
             ) AS is_final,
             (
               SELECT f.state FROM usage.failure f
               WHERE f.scope_id = s.scope_id AND f.period_start <= t.bucket_start AND f.period_end > t.bucket_start
             ) AS failure
      FROM usage.scope s
      CROSS JOIN LATERAL (
        SELECT DISTINCT generate_series(
                 p.period_start, p.period_end - interval '1 microsecond',
                 CASE s.stride WHEN 'hour' THEN interval '1 hour' ELSE interval '24 hours' END
               ) AS bucket_start
        FROM (
          SELECT c.period_start, c.period_end FROM usage.coverage c WHERE c.scope_id = s.scope_id
          UNION ALL
          SELECT f.period_start, f.period_end FROM usage.failure f WHERE f.scope_id = s.scope_id
        ) p
      ) t
      WHERE s.scope_id = ANY (scopes)
    ) k
  ) b
  WINDOW day AS (PARTITION BY b.scope_id, (b.bucket_start AT TIME ZONE 'UTC')::date)
$$;

-- Scopes whose stored proof differs from what exports, totals and differences say. There should be no row.
CREATE OR REPLACE FUNCTION usage.wrong_proof(scopes integer[]) RETURNS SETOF integer
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(k.scope_id, p.scope_id)
  FROM (SELECT * FROM usage.day_proof WHERE scope_id = ANY (scopes)) k
  FULL JOIN usage.proof_of(scopes) p USING (scope_id)
  WHERE k IS DISTINCT FROM p
  ORDER BY 1
$$;

-- Buckets whose stored state differs from what the rules say. There should be no row.
CREATE OR REPLACE FUNCTION usage.wrong_state(scopes integer[])
RETURNS TABLE (scope_id integer, bucket_start timestamptz, stored text, by_rules text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT scope_id, bucket_start, k.state, r.state
  FROM (
    SELECT d.scope_id, day::timestamp AT TIME ZONE 'UTC' AS bucket_start,
           concat_ws(
             ', ',
             CASE WHEN d.failed @> day THEN 'failed' WHEN d.unverified @> day THEN 'unverified'
                  WHEN d.final @> day THEN 'final'
                  ELSE 'provisional' END,
             CASE WHEN d.loaded @> day THEN 'loaded' END, CASE WHEN d.traced @> day THEN 'traced' END
           ) AS state
    FROM usage.day_state d
    CROSS JOIN LATERAL usage.days_of(d.loaded + d.final + d.failed + d.unverified + d.traced) day
    WHERE d.scope_id = ANY (scopes)
    UNION ALL
    SELECT h.scope_id, hour,
           concat_ws(
             ', ',
             CASE WHEN h.failed @> hour THEN 'failed' WHEN h.unverified @> hour THEN 'unverified'
                  WHEN h.final @> hour THEN 'final'
                  ELSE 'provisional' END,
             CASE WHEN h.loaded @> hour THEN 'loaded' END, CASE WHEN h.traced @> t.day THEN 'traced' END,
             CASE WHEN h.whole_days @> t.day THEN 'of a whole day' END,
             CASE WHEN h.whole_final_days @> t.day THEN 'of a whole final day' END
           )
    FROM usage.hour_state h
    CROSS JOIN LATERAL usage.hours_of(h.loaded + h.final + h.failed + h.unverified) hour
    CROSS JOIN LATERAL (SELECT (hour AT TIME ZONE 'UTC')::date AS day) t
    WHERE h.scope_id = ANY (scopes)
  ) k
  FULL JOIN usage.state_by_rules(scopes) r USING (scope_id, bucket_start)
  WHERE k.state IS DISTINCT FROM r.state
  ORDER BY 1, 2
$$;
