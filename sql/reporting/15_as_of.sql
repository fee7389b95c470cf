-- What was stored as settled at an instant: today's records with every restatement since then undone. A load stamps its
-- restatements and what it settles with one instant after its locks, so that for a scope they come in the order of its
-- loads. Only days are answered for: the figures that a day's hours stand in for are never settled as a day.
CREATE OR REPLACE FUNCTION usage.daily_as_of(as_of timestamptz, grouping_wanted text)
RETURNS TABLE (
  scope_id integer, entity_id integer, usage_date date, traces bigint, settled_at timestamptz
)
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
  -- Day by day, so that figures find theirs by a hash: over ranges every figure would be held against all of its scope's.
  WITH settled AS (
    SELECT t.scope_id, d::date AS usage_date, t.settled_at
    FROM usage.settlement t
    JOIN usage.scope s USING (scope_id)
    CROSS JOIN LATERAL generate_series(
      t.period_start AT TIME ZONE 'UTC', t.period_end AT TIME ZONE 'UTC' - interval '1 day', interval '1 day'
    ) d
    WHERE s.stride = 'day' AND s.group_by = grouping_wanted AND t.settled_at <= as_of
  ), undone AS (
    SELECT DISTINCT ON (r.series_id, r.bucket_start)
           r.series_id, (r.bucket_start AT TIME ZONE 'UTC')::date AS usage_date, r.old_traces
    FROM usage.restatement r
    JOIN usage.series x USING (series_id)
    JOIN usage.scope s USING (scope_id)
    WHERE r.restated_at > as_of AND s.stride = 'day' AND s.group_by = grouping_wanted
    ORDER BY r.series_id, r.bucket_start, r.fetch_number
  ), figure AS (
    SELECT series_id, usage_date,
           CASE WHEN u.series_id IS NULL THEN r.traces ELSE u.old_traces END AS traces
    FROM (
      SELECT r.series_id, r.bucket_start AS usage_date, r.traces
      FROM usage.dated_record r
      JOIN usage.series x USING (series_id)
      JOIN usage.scope s USING (scope_id)
      WHERE s.stride = 'day' AND s.group_by = grouping_wanted
    ) r
    FULL JOIN undone u USING (series_id, usage_date)
  )
  SELECT x.scope_id, x.entity_id, f.usage_date, f.traces, t.settled_at
  FROM figure f
  JOIN usage.series x USING (series_id)
  JOIN settled t ON t.scope_id = x.scope_id AND t.usage_date = f.usage_date
  WHERE f.traces > 0
$$;

-- Refuses what can not be answered to the trace: an instant that a load under way may still change (a load commits at most
-- fifteen minutes after the instant it stamps), and one from before the history that is kept.
CREATE OR REPLACE FUNCTION usage.check_as_of(as_of timestamptz) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  whole_since timestamptz := (SELECT max(history_since) FROM usage.source);
BEGIN
  IF as_of IS NULL THEN
    RAISE EXCEPTION 'as of when? The instant is null.' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF as_of > clock_timestamp() - interval '20 minutes' THEN
    RAISE EXCEPTION 'as of %: too young, loads under way may still change it.', as_of
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Ask for an instant at least 20 minutes ago.';
  END IF;
  IF as_of < whole_since THEN
    RAISE EXCEPTION 'as of %: the history kept begins at %.', as_of, whole_since
      USING ERRCODE = 'invalid_parameter_value', HINT = 'USAGE_KEEP_HISTORY says how long it is kept.';
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_workspace_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, traces bigint, settled_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  -- Every settled day, with usage or without.
  RETURN QUERY
  SELECT src.slug, d.day::date, w.label, w.name, coalesce(f.traces, 0), t.settled_at
  FROM usage.settlement t
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  CROSS JOIN LATERAL generate_series(
    t.period_start AT TIME ZONE 'UTC', t.period_end AT TIME ZONE 'UTC' - interval '1 day', interval '1 day'
  ) d (day)
  LEFT JOIN (
    SELECT a.scope_id, a.usage_date, sum(a.traces)::bigint AS traces
    FROM usage.daily_as_of(as_of, 'workspace') a
    GROUP BY a.scope_id, a.usage_date
  ) f ON f.scope_id = t.scope_id AND f.usage_date = d.day::date
  WHERE s.stride = 'day' AND s.group_by = 'workspace' AND t.settled_at <= as_of;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_project_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, project_id text, project_name text,
  traces bigint, settled_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  RETURN QUERY
  SELECT src.slug, a.usage_date, w.label, w.name, e.label, e.name, a.traces, a.settled_at
  FROM usage.daily_as_of(as_of, 'project') a
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  JOIN usage.labelled_entity e ON e.entity_id = a.entity_id;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_user_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, user_id text, user_email text,
  traces bigint, settled_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  RETURN QUERY
  SELECT src.slug, a.usage_date, w.label, w.name, e.label, e.name, a.traces, a.settled_at
  FROM usage.daily_as_of(as_of, 'user') a
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  JOIN usage.labelled_entity e ON e.entity_id = a.entity_id;
END
$$;

CREATE OR REPLACE FUNCTION reporting.usage_api_key_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, api_key_short_key text,
  traces bigint, settled_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  RETURN QUERY
  SELECT src.slug, a.usage_date, w.label, w.name, e.label, a.traces, a.settled_at
  FROM usage.daily_as_of(as_of, 'api_key') a
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  JOIN usage.labelled_entity e ON e.entity_id = a.entity_id;
END
$$;

REVOKE ALL ON FUNCTION
  reporting.usage_workspace_daily_as_of (timestamptz), reporting.usage_project_daily_as_of (timestamptz),
  reporting.usage_user_daily_as_of (timestamptz), reporting.usage_api_key_daily_as_of (timestamptz) FROM public;
COMMENT ON FUNCTION reporting.usage_workspace_daily_as_of (timestamptz) IS 'Grain: UTC day x workspace, every day that was settled at the instant: what was stored then. Refuses an instant younger than 20 minutes or older than the history kept.';
COMMENT ON FUNCTION reporting.usage_project_daily_as_of (timestamptz) IS 'Grain: UTC day x workspace x project with usage, days that were settled at the instant: what was stored then.';
COMMENT ON FUNCTION reporting.usage_user_daily_as_of (timestamptz) IS 'Grain: UTC day x workspace x user with usage, days that were settled at the instant: what was stored then.';
COMMENT ON FUNCTION reporting.usage_api_key_daily_as_of (timestamptz) IS 'Grain: UTC day x workspace x API key with usage, days that were settled at the instant: what was stored then.';
