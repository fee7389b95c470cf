CREATE OR REPLACE VIEW usage.workspace_day AS
SELECT d.slug, d.usage_date, d.workspace_entity_id, d.workspace_id, d.workspace_name,
       CASE WHEN d.loaded THEN coalesce(f.traces, 0) END AS traces, usage.is_final(d.status) AS is_final,
       CASE WHEN d.status = 'ok' AND coalesce(f.traces, 0) = 0 THEN 'empty' ELSE d.status END AS coverage_status,
       d.fetched_at, d.reconciled_at IS NOT NULL AS is_reconciled, d.reconciled_at, d.matched_at AS totals_matched_at,
       d.proved_at, d.group_by
FROM usage.expected_day d
-- The figure of a day is looked up, not joined, so a week costs the same however many years are stored.
LEFT JOIN LATERAL (
  SELECT (coalesce(sum(r.traces), 0)
           + CASE WHEN d.by_hours THEN coalesce(usage.traces_of_hours(d.hour_series, d.usage_date), 0)
                  ELSE 0 END)::bigint AS traces
  FROM usage.dated_record r
  WHERE r.series_id = ANY (d.day_series) AND r.bucket_start = d.usage_date
) f ON true
WHERE d.group_by = 'workspace';

CREATE OR REPLACE VIEW reporting.fct_usage_workspace_daily AS
SELECT d.slug AS source_id, d.usage_date, d.workspace_id, d.workspace_name, d.traces, d.is_final, d.coverage_status,
       d.fetched_at, d.is_reconciled, d.reconciled_at, d.totals_matched_at, d.proved_at, l.traces AS longlived_traces,
       CASE WHEN d.traces >= l.traces THEN d.traces - l.traces END AS shortlived_traces,
       usage.shortlived_status(
         CASE WHEN t.final IS NOT NULL
              THEN usage.status_at(d.usage_date, t.final, t.not_available, t.failed, t.missing, t.unverified) END,
         d.traces, l.traces
       ) AS tiers_status
FROM usage.workspace_day d
LEFT JOIN usage.tier_cell t
  ON t.place = usage.dimension_position(d.group_by) AND t.workspace_entity_id = d.workspace_entity_id
-- A sum has at most one row, so a query that reads no tier does not run it. Its condition is inside: after ON, Postgres
-- 15 would compute the cells for it.
LEFT JOIN LATERAL (
  SELECT CASE WHEN t.loaded @> d.usage_date THEN coalesce(sum(r.traces), 0)::bigint END AS traces
  FROM usage.series s
  JOIN usage.dated_record r USING (series_id)
  WHERE s.scope_id = t.longlived_scope_id AND r.bucket_start = d.usage_date
) l ON true;
COMMENT ON VIEW reporting.fct_usage_workspace_daily IS
  'Traces by workspace and day. Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), every day from '
  'the data start to today. Traces add up over days and workspaces. Null traces: not loaded, which is not zero.';

-- The days of each id with its tiers.
CREATE OR REPLACE VIEW usage.tiered_row AS
SELECT d.*, l.traces AS longlived_traces,
       CASE WHEN d.traces >= l.traces THEN d.traces - l.traces END AS shortlived_traces,
       usage.shortlived_status(
         CASE WHEN t.final IS NOT NULL
              THEN usage.status_at(d.usage_date, t.final, t.not_available, t.failed, t.missing, t.unverified) END,
         d.traces, l.traces
       ) AS tiers_status
FROM usage.daily_row d
LEFT JOIN usage.tier_cell t
  ON t.place = usage.dimension_position(d.group_by) AND t.workspace_entity_id = d.workspace_entity_id
LEFT JOIN LATERAL (
  SELECT CASE WHEN t.loaded @> d.usage_date THEN coalesce(sum(r.traces), 0)::bigint END AS traces
  FROM usage.series s
  JOIN usage.dated_record r USING (series_id)
  WHERE s.scope_id = t.longlived_scope_id AND s.entity_id = d.entity_id AND r.bucket_start = d.usage_date
) l ON true;

CREATE OR REPLACE VIEW reporting.fct_usage_project_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, d.dimension_id AS project_id,
       d.dimension_name AS project_name, traces, usage.is_final(status) AS is_final, status AS coverage_status,
       fetched_at, reconciled_at IS NOT NULL AS is_reconciled, reconciled_at, matched_at AS totals_matched_at,
       proved_at, longlived_traces, shortlived_traces, tiers_status
FROM usage.tiered_row d
WHERE group_by = 'project';
COMMENT ON VIEW reporting.fct_usage_project_daily IS
  'Traces by project and day. Grain: UTC day x workspace x project (key: source_id, usage_date, workspace_id, '
  'project_id), days with usage. A day of a workspace that is not loaded is one row with null id and null traces. A '
  'filter on an id or name drops that row: see usage_coverage_daily. Traces add up over all keys. Never add them to '
  'those of another dimension. Filter on usage_date: without it, DISTINCT, min, max and ORDER BY read every record. '
  'Take lists from dim_workspace and dim_project, and the newest day from data_freshness.';

CREATE OR REPLACE VIEW reporting.fct_usage_user_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, d.dimension_id AS user_id, traces,
       usage.is_final(status) AS is_final, status AS coverage_status, fetched_at,
       reconciled_at IS NOT NULL AS is_reconciled, reconciled_at, matched_at AS totals_matched_at, proved_at,
       longlived_traces, shortlived_traces, tiers_status
FROM usage.tiered_row d
WHERE group_by = 'user';
COMMENT ON VIEW reporting.fct_usage_user_daily IS
  'Traces by user and day. Grain: UTC day x workspace x user (key: source_id, usage_date, workspace_id, user_id), days '
  'with usage. A day of a workspace that is not loaded is one row with null id and null traces. A filter on an id or '
  'name drops that row: see usage_coverage_daily. Traces add up over all keys. Never add them to those of another '
  'dimension. Filter on usage_date: without it, DISTINCT, min, max and ORDER BY read every record. Take lists from '
  'dim_workspace and dim_user, and the newest day from data_freshness.';

CREATE OR REPLACE VIEW reporting.fct_usage_api_key_daily AS
SELECT slug AS source_id, usage_date, workspace_id, workspace_name, d.dimension_id AS api_key_short_key,
       d.dimension_name AS api_key_name, traces,
       usage.is_final(status) AS is_final, status AS coverage_status, fetched_at,
       reconciled_at IS NOT NULL AS is_reconciled, reconciled_at, matched_at AS totals_matched_at, proved_at,
       longlived_traces, shortlived_traces, tiers_status
FROM usage.tiered_row d
WHERE group_by = 'api_key';
COMMENT ON VIEW reporting.fct_usage_api_key_daily IS
  'Traces by API key and day. Grain: UTC day x workspace x API key (key: source_id, usage_date, workspace_id, '
  'api_key_short_key), days with usage. A day of a workspace that is not loaded is one row with null id and null '
  'traces. A filter on an id or name drops that row: see usage_coverage_daily. Traces add up over all keys. Never add '
  'them to those of another dimension. Filter on usage_date: without it, DISTINCT, min, max and ORDER BY read every '
  'record. Take lists from dim_workspace and dim_api_key, and the newest day from data_freshness.';
CALL usage.comment_columns('{reporting.fct_usage_workspace_daily, reporting.fct_usage_project_daily,
  reporting.fct_usage_user_daily, reporting.fct_usage_api_key_daily}');

