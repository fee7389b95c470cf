CREATE OR REPLACE VIEW reporting.usage_coverage_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.group_by, 'day'::text AS stride,
       CASE
         WHEN d.status = 'ok' AND NOT EXISTS (
           SELECT FROM usage.series s JOIN usage.dated_record r USING (series_id)
           WHERE s.scope_id = d.day_scope_id AND r.bucket_start = d.usage_date AND r.traces > 0
         ) AND NOT EXISTS (
           SELECT FROM usage.day_of_hours h
           JOIN usage.series s ON s.scope_id = h.hour_scope_id
           JOIN usage.hourly_record r USING (series_id)
           WHERE h.day_scope_id = d.day_scope_id AND h.usage_date = d.usage_date AND r.traces > 0
             AND r.bucket_start >= d.usage_date::timestamp AT TIME ZONE 'UTC'
             AND r.bucket_start < (d.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
         ) THEN 'empty'
         ELSE d.status
       END AS status
FROM usage.day_state d
UNION ALL
-- A day's hours have the first status that any of them has, in the order of the documentation.
SELECT h.slug, h.usage_date, h.workspace_id, h.group_by, 'hour',
       CASE
         WHEN h.worst < 6 THEN (ARRAY['not_available', 'failed', 'missing', 'unverified', 'provisional'])[h.worst]
         WHEN EXISTS (
           SELECT FROM usage.series s JOIN usage.hourly_record r USING (series_id)
           WHERE s.scope_id = h.hour_scope_id AND r.traces > 0
             AND r.bucket_start >= h.usage_date::timestamp AT TIME ZONE 'UTC'
             AND r.bucket_start < (h.usage_date + 1)::timestamp AT TIME ZONE 'UTC'
         ) THEN 'ok'
         ELSE 'empty'
       END
FROM (
  SELECT slug, (usage_hour AT TIME ZONE 'UTC')::date AS usage_date, workspace_id, group_by, hour_scope_id,
         min(array_position(
           ARRAY['not_available', 'failed', 'missing', 'unverified', 'provisional', 'ok'], status
         )) AS worst
  FROM usage.hour_state
  GROUP BY 1, 2, 3, 4, 5
) h;

CREATE OR REPLACE VIEW reporting.data_freshness AS
SELECT src.slug AS source_id, c.group_by, c.stride, max(v.period_end) AS loaded_until,
       max(v.period_end) FILTER (WHERE v.settled) AS settled_until, max(v.fetched_at) AS fetched_at,
       extract(epoch FROM now() - max(v.fetched_at))::bigint AS lag_seconds
FROM usage.scope c
JOIN usage.source src USING (source_id)
JOIN usage.coverage v USING (scope_id)
GROUP BY src.slug, c.group_by, c.stride;
