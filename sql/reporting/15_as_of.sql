-- When days were final: since when, and until when where they were zeros that were withdrawn.
CREATE OR REPLACE VIEW usage.final_time AS
SELECT scope_id, period_start, period_end, final_at, 'infinity'::timestamptz AS withdrawn_at FROM usage.became_final
UNION ALL
SELECT scope_id, period_start, period_end, final_at, withdrawn_at FROM usage.withdrawal WHERE final_at IS NOT NULL;

-- Figures that were stored as final at an instant: today's records without the restatements since then. A load locks its
-- scopes first, then stamps its restatements and finalRanges with one instant (usage.load_instant). So the stamps of a scope
-- have the order of its loads. Only stored days count: a day that is made of hours never settles as a day.
CREATE OR REPLACE FUNCTION usage.daily_as_of(as_of timestamptz, grouping_wanted text)
RETURNS TABLE (
  scope_id integer, entity_id integer, usage_date date, traces bigint, final_at timestamptz
)
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
  -- One row for each day, so that the planner can join by a hash. A range join would compare each figure with each range of
  -- its scope.
  WITH final AS (
    SELECT t.scope_id, d::date AS usage_date, t.final_at
    FROM usage.final_time t
    JOIN usage.trace_scope s USING (scope_id)
    CROSS JOIN LATERAL generate_series(
      t.period_start AT TIME ZONE 'UTC', t.period_end AT TIME ZONE 'UTC' - interval '1 day', interval '1 day'
    ) d
    WHERE s.stride = 'day' AND s.group_by = grouping_wanted AND t.final_at <= as_of
      AND t.withdrawn_at > as_of
  ), undone AS (
    SELECT DISTINCT ON (r.series_id, r.bucket_start)
           r.series_id, (r.bucket_start AT TIME ZONE 'UTC')::date AS usage_date, r.old_traces
    FROM usage.restatement r
    JOIN usage.series x USING (series_id)
    JOIN usage.trace_scope s USING (scope_id)
    WHERE r.restated_at > as_of AND s.stride = 'day' AND s.group_by = grouping_wanted
    ORDER BY r.series_id, r.bucket_start, r.fetch_number
  ), figure AS (
    SELECT series_id, usage_date,
           CASE WHEN u.series_id IS NULL THEN r.traces ELSE u.old_traces END AS traces
    FROM (
      SELECT r.series_id, r.bucket_start AS usage_date, r.traces
      FROM usage.dated_record r
      JOIN usage.series x USING (series_id)
      JOIN usage.trace_scope s USING (scope_id)
      WHERE s.stride = 'day' AND s.group_by = grouping_wanted
    ) r
    FULL JOIN undone u USING (series_id, usage_date)
  )
  SELECT x.scope_id, x.entity_id, f.usage_date, f.traces, t.final_at
  FROM figure f
  JOIN usage.series x USING (series_id)
  JOIN final t ON t.scope_id = x.scope_id AND t.usage_date = f.usage_date
  WHERE f.traces > 0
$$;

-- Refuses an instant before the history that is kept.
CREATE OR REPLACE FUNCTION usage.check_history(as_of timestamptz) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  whole_since timestamptz := (SELECT max(history_since) FROM usage.source);
BEGIN
  IF as_of < whole_since THEN
    RAISE EXCEPTION 'As of %: the history begins at %.', as_of, whole_since
      USING ERRCODE = 'invalid_parameter_value', HINT = 'USAGE_KEEP_HISTORY sets how long it is kept.';
  END IF;
END
$$;

-- Refuses an instant that a load may still stamp, and one before the history that is kept. The figures have to be read with a
-- later snapshot than the limit, or they lack a load that ended in between. So the functions below are VOLATILE: each of their
-- statements has a snapshot of its own. In a transaction with one snapshot, and on a replica, the limit is that of the ledger.
CREATE OR REPLACE FUNCTION usage.check_as_of(as_of timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  is_live boolean := NOT pg_is_in_recovery()
    AND current_setting('transaction_isolation') NOT IN ('repeatable read', 'serializable');
  until timestamptz;
BEGIN
  IF as_of IS NULL THEN
    RAISE EXCEPTION 'The instant is null.' USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass an instant of the past.';
  END IF;
  IF is_live THEN
    until := usage.as_of_limit();
  ELSE
    SELECT f.as_of_limit INTO until FROM usage.fetch f WHERE f.as_of_limit IS NOT NULL ORDER BY f.fetch_number DESC LIMIT 1;
  END IF;
  IF as_of < until THEN
    PERFORM usage.check_history(as_of);
  ELSE
    RAISE EXCEPTION 'As of %: running loads may still change this instant. Instants before % can be answered.',
      as_of, coalesce(until, '-infinity')
      USING ERRCODE = 'invalid_parameter_value', HINT = CASE
        WHEN is_live THEN format(
          'Pass an earlier instant, or ask again at %s. If a load that started before then is still running, ask when it has ended.',
          date_trunc('second', as_of) + interval '1 second'
        )
        ELSE 'A replica, and a transaction in REPEATABLE READ or SERIALIZABLE, answers up to the end of the latest request to the platform that it sees. Pass an earlier instant, or ask the primary in READ COMMITTED.'
      END;
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION reporting_detail.usage_workspace_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, traces bigint, final_at timestamptz
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  -- Every final day, with or without usage.
  RETURN QUERY
  SELECT src.slug, d.day::date, w.dimension_id, w.dimension_name, coalesce(f.traces, 0), t.final_at
  FROM usage.final_time t
  JOIN usage.trace_scope s USING (scope_id)
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
  WHERE s.stride = 'day' AND s.group_by = 'workspace' AND t.final_at <= as_of AND t.withdrawn_at > as_of;
  -- Again: `prune` may have removed some of it since the first check.
  PERFORM usage.check_history(as_of);
END
$$;

-- each dimension but workspace
CREATE OR REPLACE FUNCTION reporting_detail.usage_{dimension}_daily_as_of(as_of timestamptz)
RETURNS TABLE (
  source_id text, usage_date date, workspace_id text, workspace_name text, {column_types}, traces bigint,
  final_at timestamptz
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
  PERFORM usage.check_as_of(as_of);
  RETURN QUERY
  SELECT src.slug, a.usage_date, w.dimension_id, w.dimension_name, {columns}, a.traces, a.final_at
  FROM usage.daily_as_of(as_of, '{dimension}') a
  JOIN usage.trace_scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  JOIN usage.labelled_entity d ON d.entity_id = a.entity_id;
  PERFORM usage.check_history(as_of);
END
$$;

-- end
COMMENT ON FUNCTION reporting_detail.usage_workspace_daily_as_of (timestamptz) IS 'Traces by workspace and day as they were final at an instant. Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), every day that was final at the instant, with the traces stored then. Refuses an instant that a running load may still change, and one before the history that is kept.';
-- each dimension but workspace
COMMENT ON FUNCTION reporting_detail.usage_{dimension}_daily_as_of (timestamptz) IS 'Traces by {title} and day as they were final at an instant. Grain: UTC day x workspace x {title} (key: source_id, usage_date, workspace_id, {id_column}), days with usage that were final at the instant, with the traces stored then. Refuses an instant that a running load may still change, and one before the history that is kept.';
-- end
