-- The state of each scope's time: loaded, final, failed, unverified. It is stored, because planner, views, pages and
-- closes read it all the time, and years of a thousand workspaces have millions of days. One row a scope; time in no
-- set of a row is missing. State that depends on the present instant or on the source (expected days, days that the
-- server does not support) is not in it: usage.day_cell and usage.hour_cell add that.
--
-- usage.keep_state decides it from coverage and failures alone. Triggers call it in the transaction of every change of
-- these, so no writer can forget it. usage.state_by_rules has the same rules in a plain form, bucket by bucket
-- (sql/reporting/07_state_oracle.sql).

-- The state of a scope of days, weeks, months or years. All of these begin and end on UTC days.
CREATE TABLE usage.day_state (
  scope_id integer CONSTRAINT day_state_pkey PRIMARY KEY CONSTRAINT day_state_scope_id_fkey
    REFERENCES usage.scope ON DELETE CASCADE,
  -- Days with a figure, which a later failure leaves as it was.
  loaded datemultirange NOT NULL,
  -- Loaded, final, and nothing failed since.
  final datemultirange NOT NULL,
  failed datemultirange NOT NULL,
  unverified datemultirange NOT NULL,
  -- Loaded, and some record of the day has traces.
  traced datemultirange NOT NULL
) WITH (fillfactor = 50);

-- The state of a scope of hours.
CREATE TABLE usage.hour_state (
  scope_id integer CONSTRAINT hour_state_pkey PRIMARY KEY CONSTRAINT hour_state_scope_id_fkey
    REFERENCES usage.scope ON DELETE CASCADE,
  loaded tstzmultirange NOT NULL,
  final tstzmultirange NOT NULL,
  failed tstzmultirange NOT NULL,
  unverified tstzmultirange NOT NULL,
  -- Days whose 24 hours are all loaded, and days whose 24 hours were all loaded as final: their hours may fill the day.
  whole_days datemultirange NOT NULL,
  whole_final_days datemultirange NOT NULL,
  -- Days with an hour that has traces.
  traced datemultirange NOT NULL
) WITH (fillfactor = 50);

-- UTC days that lie wholly within the ranges.
CREATE FUNCTION usage.whole_days(parts tstzmultirange) RETURNS datemultirange
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(range_agg(daterange(first, after)), '{}')
  FROM unnest(parts) part
  CROSS JOIN LATERAL (
    SELECT ((lower(part) + interval '1 day' - interval '1 microsecond') AT TIME ZONE 'UTC')::date AS first,
           (upper(part) AT TIME ZONE 'UTC')::date AS after
  ) d
  WHERE first < after
$$;

-- UTC days that the ranges touch: usage.touched_days, which the planner inlines, since most sets are empty.
CREATE FUNCTION usage.days_of_parts(parts tstzmultirange) RETURNS datemultirange
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(range_agg(daterange(
    (lower(part) AT TIME ZONE 'UTC')::date, ((upper(part) - interval '1 microsecond') AT TIME ZONE 'UTC')::date, '[]'
  )), '{}')
  FROM unnest(parts) part
$$;
CREATE FUNCTION usage.touched_days(parts tstzmultirange) RETURNS datemultirange
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN isempty(parts) THEN '{}' ELSE usage.days_of_parts(parts) END;

-- Computes the state of scopes and stores it if it has changed. The lock makes writers of one scope wait for each
-- other: each then sees what the others have committed.
CREATE FUNCTION usage.keep_state(scopes integer[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- Planning each call again takes twice as long as the call.
SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  PERFORM FROM usage.scope WHERE scope_id = ANY (scopes) ORDER BY scope_id FOR NO KEY UPDATE;

  INSERT INTO usage.day_state AS kept (scope_id, loaded, final, failed, unverified, traced)
  SELECT s.scope_id, c.loaded, c.final - f.failed - f.unverified, f.failed, f.unverified, c.traced
  FROM usage.scope s
  CROSS JOIN LATERAL (
    SELECT coalesce(range_agg(t.days), '{}') AS loaded,
      coalesce(range_agg(t.days) FILTER (WHERE v.final), '{}') AS final,
           coalesce(range_agg(usage.touched_days(v.traced)) FILTER (WHERE v.traced <> '{}'), '{}') AS traced
    FROM usage.coverage v
    CROSS JOIN LATERAL (
      SELECT daterange((v.period_start AT TIME ZONE 'UTC')::date, (v.period_end AT TIME ZONE 'UTC')::date) AS days
    ) t
    WHERE v.scope_id = s.scope_id
  ) c
  CROSS JOIN LATERAL (
    SELECT coalesce(range_agg(t.days) FILTER (WHERE v.state = 'failed'), '{}') AS failed,
           coalesce(range_agg(t.days) FILTER (WHERE v.state = 'unverified'), '{}') AS unverified
    FROM usage.failure v
    CROSS JOIN LATERAL (
      SELECT daterange((v.period_start AT TIME ZONE 'UTC')::date, (v.period_end AT TIME ZONE 'UTC')::date) AS days
    ) t
    WHERE v.scope_id = s.scope_id
  ) f
  WHERE s.scope_id = ANY (scopes) AND s.stride <> 'hour'
  ORDER BY s.scope_id
  ON CONFLICT (scope_id) DO UPDATE
  SET loaded = excluded.loaded, final = excluded.final, failed = excluded.failed, unverified = excluded.unverified,
      traced = excluded.traced
  WHERE (kept.loaded, kept.final, kept.failed, kept.unverified, kept.traced)
    IS DISTINCT FROM (excluded.loaded, excluded.final, excluded.failed, excluded.unverified, excluded.traced);

  INSERT INTO usage.hour_state AS kept (scope_id, loaded, final, failed, unverified, whole_days, whole_final_days,
    traced)
  SELECT s.scope_id, c.loaded, c.final - f.failed - f.unverified, f.failed, f.unverified, usage.whole_days(c.loaded),
         usage.whole_days(c.final), c.traced
  FROM usage.scope s
  CROSS JOIN LATERAL (
    SELECT coalesce(range_agg(t.hours), '{}') AS loaded,
      coalesce(range_agg(t.hours) FILTER (WHERE v.final), '{}') AS final,
           coalesce(range_agg(usage.touched_days(v.traced)) FILTER (WHERE v.traced <> '{}'), '{}') AS traced
    FROM usage.coverage v
    CROSS JOIN LATERAL (SELECT tstzrange(v.period_start, v.period_end) AS hours) t
    WHERE v.scope_id = s.scope_id
  ) c
  CROSS JOIN LATERAL (
    SELECT coalesce(range_agg(t.hours) FILTER (WHERE v.state = 'failed'), '{}') AS failed,
           coalesce(range_agg(t.hours) FILTER (WHERE v.state = 'unverified'), '{}') AS unverified
    FROM usage.failure v
    CROSS JOIN LATERAL (SELECT tstzrange(v.period_start, v.period_end) AS hours) t
    WHERE v.scope_id = s.scope_id
  ) f
  WHERE s.scope_id = ANY (scopes) AND s.stride = 'hour'
  ORDER BY s.scope_id
  ON CONFLICT (scope_id) DO UPDATE
  SET loaded = excluded.loaded, final = excluded.final, failed = excluded.failed, unverified = excluded.unverified,
      whole_days = excluded.whole_days, whole_final_days = excluded.whole_final_days, traced = excluded.traced
  WHERE (kept.loaded, kept.final, kept.failed, kept.unverified, kept.whole_final_days, kept.traced)
    IS DISTINCT FROM
    (excluded.loaded, excluded.final, excluded.failed, excluded.unverified, excluded.whole_final_days, excluded.traced);
END
$$;
REVOKE ALL ON FUNCTION usage.keep_state (integer[]) FROM public;

-- Runs for coverage and failures. A change of fetch_number, fetched_at or the time of the next attempt changes no
-- state. The usage of a workspace may have changed with its coverage: its charges of these months are due
-- (usage.charge_due).
CREATE FUNCTION usage.state_follows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  scopes integer[];
  starts timestamptz[];
  ends timestamptz[];
BEGIN
  IF TG_OP = 'INSERT' THEN
    SELECT array_agg(scope_id), array_agg(period_start), array_agg(period_end) INTO scopes, starts, ends FROM new_rows;
  ELSIF TG_OP = 'DELETE' THEN
    SELECT array_agg(scope_id), array_agg(period_start), array_agg(period_end) INTO scopes, starts, ends FROM old_rows;
  ELSIF TG_TABLE_NAME = 'coverage' THEN
    SELECT array_agg(scope_id), array_agg(period_start), array_agg(period_end) INTO scopes, starts, ends
    FROM (
      SELECT scope_id, period_start, period_end, final, traced, digest FROM new_rows
      EXCEPT SELECT scope_id, period_start, period_end, final, traced, digest FROM old_rows
    ) c;
  ELSE
    SELECT array_agg(scope_id), array_agg(period_start), array_agg(period_end) INTO scopes, starts, ends
    FROM (
      SELECT scope_id, period_start, period_end, state FROM new_rows
      EXCEPT SELECT scope_id, period_start, period_end, state FROM old_rows
    ) c;
  END IF;
  IF scopes IS NULL THEN
    RETURN NULL;
  END IF;
  PERFORM usage.keep_state(ARRAY(SELECT DISTINCT scope_id FROM unnest(scopes) scope_id));
  INSERT INTO usage.charge_due (source_id, month_start, workspace_ids, meters, days_of_hours)
  SELECT s.source_id, month::date, array_agg(DISTINCT s.workspace_id),
    array_agg(DISTINCT usage.meter_of(s.kind, s.trace_tier)),
         CASE WHEN bool_and(s.stride = 'hour') THEN
           range_agg(usage.touched_days(tstzmultirange(tstzrange(t.period_start, t.period_end))))
         END
  FROM unnest(scopes, starts, ends) t (scope_id, period_start, period_end)
  JOIN usage.scope s USING (scope_id)
  JOIN usage.source o USING (source_id)
  JOIN usage.entity e ON e.entity_id = s.workspace_id
  JOIN usage.workspace w ON w.entity_id = s.workspace_id
  CROSS JOIN LATERAL generate_series(
    date_trunc('month', t.period_start AT TIME ZONE 'UTC'),
    (t.period_end AT TIME ZONE 'UTC') - interval '1 microsecond', interval '1 month'
  ) month
  -- For a workspace that is no longer requested, anything loaded makes days expected (usage.required_workspace).
  CROSS JOIN LATERAL (
    SELECT w.unlisted_since IS NOT NULL OR NOT usage.is_configured(o.workspace_ids, e.external_id) AS is_requested_no_more
  ) n
  WHERE n.is_requested_no_more OR (s.group_by = 'workspace' AND s.stride IN ('hour', 'day'))
  GROUP BY s.source_id, month;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.state_follows () FROM public;

-- A trigger with transition tables may have one kind of change only.
CREATE TRIGGER coverage_inserted AFTER INSERT ON usage.coverage
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();
CREATE TRIGGER coverage_updated AFTER UPDATE ON usage.coverage
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();
CREATE TRIGGER coverage_deleted AFTER DELETE ON usage.coverage
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();
CREATE TRIGGER failure_inserted AFTER INSERT ON usage.failure
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();
CREATE TRIGGER failure_updated AFTER UPDATE ON usage.failure
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();
CREATE TRIGGER failure_deleted AFTER DELETE ON usage.failure
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();
