-- Changes of counts, and the instants that order them.

-- Changes of final counts. Null is "not there": null to n was added, n to null was retired.
CREATE TABLE usage.restatement (
  restatement_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT restatement_pkey PRIMARY KEY,
  series_id integer NOT NULL CONSTRAINT restatement_series_id_fkey REFERENCES usage.series,
  bucket_start timestamptz NOT NULL,
  old_traces bigint,
  new_traces bigint,
  fetch_number bigint NOT NULL,
  restated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT restatement_once UNIQUE (series_id, bucket_start, fetch_number),
  CONSTRAINT restatement_is_change CHECK (old_traces IS DISTINCT FROM new_traces)
);
CREATE INDEX restatement_time ON usage.restatement (restated_at);

-- How late counts of traces changed: changes of buckets that had ended before the previous response, by their greatest
-- possible age. Before they are final, counts leave no other history.
CREATE TABLE usage.late_change (
  source_id smallint NOT NULL CONSTRAINT late_change_source_id_fkey REFERENCES usage.source,
  observed_on date NOT NULL,
  trace_tier text NOT NULL,
  group_by text NOT NULL,
  stride text NOT NULL,
  was_final boolean NOT NULL,
  -- Upper end of the class of ages, counted from the end of the bucket.
  age_hours integer NOT NULL,
  changes bigint NOT NULL,
  -- Sum of the differences without their signs.
  traces_moved bigint NOT NULL,
  CONSTRAINT late_change_pkey PRIMARY KEY (source_id, trace_tier, group_by, stride, observed_on, was_final, age_hours),
  CONSTRAINT late_change_age_range CHECK (age_hours > 0)
);

-- The instant of a load, which marks its final time and its restatements. The lock table of Postgres shows which
-- instants are drawn and not yet committed. The lock comes before the instant is drawn, so that no instant is ever
-- earlier than a lock that nobody can see yet. The lock ends with the transaction, committed or not.
CREATE FUNCTION usage.load_instant() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- Empty again after a transaction that had set it.
  drawn text := nullif(current_setting('usage.load_instant', true), '');
BEGIN
  IF drawn IS NULL THEN
    -- 'uetl' in ASCII, and the second since 2000, which fits until 2068.
    PERFORM pg_advisory_xact_lock_shared(
      1969583212, floor(extract(epoch FROM clock_timestamp() - timestamptz '2000-01-01Z'))::integer
    );
    drawn := set_config('usage.load_instant', clock_timestamp()::text, true);
  END IF;
  RETURN drawn::timestamptz;
END
$$;

-- Every load that uses an instant before this one has ended, and no load will use one in the future. So the figures
-- stored as final at an instant before it never change. Whole seconds, as in the locks of usage.load_instant.
CREATE FUNCTION usage.as_of_limit() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- Drawn before the locks are read: a load that takes a lock afterwards draws a later instant than this.
  until timestamptz := clock_timestamp();
  oldest bigint := (
    SELECT min(objid::bigint)
    FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 1969583212 AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  );
BEGIN
  RETURN date_trunc('second', least(until, timestamptz '2000-01-01Z' + make_interval(secs => oldest)));
END
$$;
