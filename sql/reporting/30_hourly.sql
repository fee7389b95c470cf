-- The hours come as one list, newest first: a filter on the hour is applied to it once, and a query for the newest
-- hours stops early.
CREATE OR REPLACE VIEW reporting_detail.fct_usage_workspace_hourly AS
SELECT x.slug AS source_id, h.usage_hour, x.workspace_id, x.workspace_name,
       CASE WHEN t.loaded THEN coalesce(f.traces, 0) END AS traces, usage.is_final(t.status) AS is_final,
       CASE WHEN t.status = 'ok' AND coalesce(f.traces, 0) = 0 THEN 'empty' ELSE t.status END AS coverage_status,
       CASE WHEN t.loaded THEN x.fetched_at[width_bucket(h.usage_hour, x.fetched_hours)] END AS fetched_at
FROM (
  SELECT usage_hour
  FROM generate_series(
    least(
      (SELECT min(data_start) FROM usage.source)::timestamp AT TIME ZONE 'UTC',
      (SELECT min(period_start) FROM usage.coverage)
    ), date_trunc('hour', now(), 'UTC'), interval '1 hour'
  ) usage_hour
  ORDER BY usage_hour DESC
) h
JOIN (
  SELECT c.*, f.hours AS fetched_hours, f.fetched_at,
         ARRAY(SELECT s.series_id FROM usage.series s WHERE s.scope_id = c.hour_scope_id) AS series,
         -- Once for each cell that the filter keeps: see usage.expected_day.
         row_number() OVER (PARTITION BY c.slug, c.workspace_id) AS fence
  FROM usage.hour_cell c
  LEFT JOIN usage.fetched f ON f.scope_id = c.hour_scope_id
  WHERE c.group_by = 'workspace'
)
-- coalesce, because the planner expects one hour in a thousand to match a bare @>.
x ON coalesce(x.shown @> h.usage_hour, false)
CROSS JOIN LATERAL (
  SELECT x.loaded @> h.usage_hour AS loaded,
         usage.status_at(h.usage_hour, x.final, x.not_available, x.failed, x.missing, x.unverified) AS status
) t
LEFT JOIN LATERAL (
  SELECT sum(r.traces)::bigint AS traces
  FROM usage.hourly_record r
  WHERE r.series_id = ANY (x.series) AND r.bucket_start = h.usage_hour
) f ON true;
COMMENT ON VIEW reporting_detail.fct_usage_workspace_hourly IS
  'Traces by workspace and hour. Grain: UTC hour x workspace (key: source_id, usage_hour, workspace_id), every hour '
  'that is kept up to date or was loaded. Traces add up over hours and workspaces. Null traces: not loaded, which is '
  'not zero.';

-- A separate view: in one list of all ids the hours have no order, and the newest hours would take seventeen times as
-- long.
CREATE OR REPLACE VIEW reporting_detail.fct_usage_by_id_hourly AS
SELECT x.slug AS source_id, r.bucket_start AS usage_hour, x.group_by, x.workspace_id, x.workspace_name, e.dimension_id,
       CASE WHEN x.group_by <> 'user' THEN e.dimension_name END AS dimension_name, r.traces,
       x.final @> r.bucket_start AS is_final,
       CASE WHEN r.traces = 0 AND x.final @> r.bucket_start THEN 'empty'
            ELSE usage.status_at(r.bucket_start, x.final, x.not_available, x.failed, x.missing, x.unverified)
       END AS coverage_status, c.fetched_at[width_bucket(r.bucket_start, c.hours)] AS fetched_at
FROM usage.hour_cell x
JOIN usage.series s ON s.scope_id = x.hour_scope_id
JOIN usage.hourly_record r USING (series_id)
JOIN usage.labelled_entity e USING (entity_id)
LEFT JOIN usage.fetched c ON c.scope_id = x.hour_scope_id
WHERE x.group_by <> 'workspace'
UNION ALL
-- Expected hours that are not loaded. They are read from the sets, not hour by hour, since most cells have no such
-- hour.
SELECT x.slug, hour, x.group_by, x.workspace_id, x.workspace_name, NULL, NULL, NULL, false,
       usage.status_at(hour, x.final, x.not_available, x.failed, x.missing, x.unverified), NULL
FROM usage.hour_cell x
CROSS JOIN LATERAL usage.hours_of(x.expected - x.loaded) hour
WHERE x.group_by <> 'workspace';
COMMENT ON VIEW reporting_detail.fct_usage_by_id_hourly IS
  'Traces by project, user or API key and hour. Grain: UTC hour x dimension x workspace x id (key: source_id, '
  'usage_hour, group_by, workspace_id, dimension_id), hours with usage. Choose ONE group_by: traces add up over the '
  'other keys, never over two dimensions. An hour of a workspace that is not loaded is one row with null id and null '
  'traces. Filter on usage_hour: without it, DISTINCT, min, max and ORDER BY read every record. Take lists from the '
  'dimensions, and the newest hour from data_freshness.';
CALL usage.comment_columns('{reporting_detail.fct_usage_workspace_hourly, reporting_detail.fct_usage_by_id_hourly}',
  'usage_hour', 'Start of the UTC hour.'
);
