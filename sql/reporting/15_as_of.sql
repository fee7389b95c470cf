-- Days that were final at an instant, with the figures stored then: today's records without the restatements since. A
-- day without a figure is one row without an entity. A load locks its scopes first, then marks its restatements and
-- finalRanges with one instant (usage.load_instant). So these instants of a scope are in the order of its loads. Only
-- stored days count: a day that is made of hours never becomes final as a day.
CREATE OR REPLACE FUNCTION usage.daily_as_of(as_of timestamptz, grouping_wanted text)
RETURNS TABLE (
  scope_id integer, entity_id integer, usage_date date, traces bigint, final_at timestamptz
)
LANGUAGE sql STABLE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
  WITH asked AS (
    SELECT scope_id FROM usage.trace_scope WHERE stride = 'day' AND group_by = grouping_wanted
  ), final AS (
    -- One row for each day, so that the planner can join by a hash. A range join would compare each figure with each
    -- range of its scope.
    SELECT t.scope_id, d::date AS usage_date, t.final_at
    FROM (
      SELECT scope_id, period_start, period_end, final_at FROM usage.became_final
      UNION ALL
      -- Zeros that were not invalidated yet.
      SELECT scope_id, period_start, period_end, final_at FROM usage.withdrawal WHERE invalidated_at > as_of
    ) t
    JOIN asked USING (scope_id)
    CROSS JOIN LATERAL generate_series(
      t.period_start AT TIME ZONE 'UTC', t.period_end AT TIME ZONE 'UTC' - interval '1 day', interval '1 day'
    ) d
    WHERE t.final_at <= as_of
  ), undone AS (
    SELECT DISTINCT ON (r.series_id, r.bucket_start)
           r.series_id, (r.bucket_start AT TIME ZONE 'UTC')::date AS usage_date, r.old_traces
    FROM usage.restatement r
    JOIN usage.series x USING (series_id)
    JOIN asked USING (scope_id)
    WHERE r.restated_at > as_of
    ORDER BY r.series_id, r.bucket_start, r.fetch_number
  ), figure AS (
    SELECT x.scope_id, x.entity_id, usage_date,
           CASE WHEN u.series_id IS NULL THEN r.traces ELSE u.old_traces END AS traces
    FROM (
      SELECT r.series_id, r.bucket_start AS usage_date, r.traces
      FROM usage.dated_record r
      JOIN usage.series x USING (series_id)
      JOIN asked USING (scope_id)
    ) r
    FULL JOIN undone u USING (series_id, usage_date)
    JOIN usage.series x USING (series_id)
  )
  SELECT t.scope_id, f.entity_id, t.usage_date, f.traces, t.final_at
  FROM final t
  LEFT JOIN figure f ON f.scope_id = t.scope_id AND f.usage_date = t.usage_date AND f.traces > 0
$$;

-- Refuses an instant that a load may still use, and one before the kept history. The figures must be read with a later
-- snapshot than the limit, or they lack a load that ended in between. So the function is VOLATILE: each of its
-- statements has its own snapshot. In a transaction with one snapshot, and on a replica, the limit is that of the
-- ledger.
--
-- The argument has a default, so that an export can leave out the dimension.
CREATE OR REPLACE FUNCTION reporting_detail.usage_daily_as_of(as_of timestamptz, grouping_wanted text DEFAULT NULL)
RETURNS TABLE (
  source_id text, usage_date date, group_by text, workspace_id text, workspace_name text, dimension_id text,
  dimension_name text, traces bigint, final_at timestamptz
)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  is_live boolean := NOT pg_is_in_recovery()
    AND current_setting('transaction_isolation') NOT IN ('repeatable read', 'serializable');
  until timestamptz;
  whole_since timestamptz;
BEGIN
  IF as_of IS NULL THEN
    RAISE EXCEPTION 'The instant is null.'
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass an instant of the past.';
  END IF;
  IF is_live THEN
    until := usage.as_of_limit();
  ELSE
    SELECT f.as_of_limit INTO until
    FROM usage.fetch f
    WHERE f.as_of_limit IS NOT NULL
    ORDER BY f.fetch_number DESC
    LIMIT 1;
  END IF;
  IF (as_of < until) IS NOT TRUE THEN
    RAISE EXCEPTION 'As of %: running loads may still change this instant. Instants before % can be answered.',
      as_of, coalesce(until, '-infinity')
      USING ERRCODE = 'invalid_parameter_value', HINT = CASE
        WHEN is_live THEN format(
          'Pass an earlier instant, or ask again at %s. If a load that started before then is still running, ask '
          'when it has ended.',
          date_trunc('second', as_of) + interval '1 second'
        )
        ELSE 'A replica, and a transaction in REPEATABLE READ or SERIALIZABLE, answers up to the end of the latest '
          'request to the platform that it sees. Pass an earlier instant, or ask the primary in READ COMMITTED.'
      END;
  END IF;
  IF usage.dimension_position(grouping_wanted) IS NULL AND grouping_wanted IS NOT NULL THEN
    RAISE EXCEPTION 'There is no dimension %.', grouping_wanted
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Pass workspace, project, user or api_key.';
  END IF;
  -- Every final day by workspace has a row, with or without usage.
  RETURN QUERY
  SELECT src.slug, a.usage_date, 'workspace', w.dimension_id, w.dimension_name, w.dimension_id, w.dimension_name,
         coalesce(sum(a.traces), 0)::bigint, a.final_at
  FROM usage.daily_as_of(as_of, 'workspace') a
  JOIN usage.trace_scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  WHERE coalesce(grouping_wanted, 'workspace') = 'workspace'
  GROUP BY src.slug, a.usage_date, w.dimension_id, w.dimension_name, a.final_at;
  -- Only days with usage by another dimension have rows.
  RETURN QUERY
  SELECT src.slug, a.usage_date, g.name, w.dimension_id, w.dimension_name, d.dimension_id,
         CASE WHEN g.name <> 'user' THEN d.dimension_name END, a.traces, a.final_at
  FROM (VALUES ('project'), ('user'), ('api_key')) g (name)
  CROSS JOIN LATERAL usage.daily_as_of(as_of, g.name) a
  JOIN usage.trace_scope s USING (scope_id)
  JOIN usage.source src USING (source_id)
  JOIN usage.labelled_entity w ON w.entity_id = s.workspace_id
  JOIN usage.labelled_entity d ON d.entity_id = a.entity_id
  WHERE coalesce(grouping_wanted, g.name) = g.name;
  -- Checked last, because `prune` may remove some of the history meanwhile.
  whole_since := (SELECT max(history_since) FROM usage.source);
  IF as_of < whole_since THEN
    RAISE EXCEPTION 'As of %: the history begins at %.', as_of, whole_since
      USING ERRCODE = 'invalid_parameter_value', HINT = 'USAGE_KEEP_HISTORY sets how long it is kept.';
  END IF;
END
$$;
COMMENT ON FUNCTION reporting_detail.usage_daily_as_of (timestamptz, text) IS
  'Traces by day as they were final at an instant. Grain: UTC day x dimension x workspace x id (key: source_id, '
  'usage_date, group_by, workspace_id, dimension_id). By workspace every day that was final at the instant, by another '
  'dimension days with usage that were, with the traces stored then. Choose ONE group_by, as the second argument or as '
  'a filter: traces add up over the rest, never over two dimensions. Refuses an instant that a running load may still '
  'change, and one before the history that is kept.';
