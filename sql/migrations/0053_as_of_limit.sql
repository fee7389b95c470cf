-- Every load that stamps an instant before this one has ended, and no load will stamp one any more. So what was stored as final
-- at an instant before it never changes. Whole seconds, as in the locks of usage.load_instant.
CREATE FUNCTION usage.as_of_limit() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- Before it looks at the locks: a load that takes one afterwards draws a later instant than this.
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

-- The limit at the end of a request. Loads that stamp an instant before it have ended before this row is committed. So a snapshot
-- that shows the row shows them as well. Replicas and transactions with an old snapshot rely on it, because the lock table does
-- not tell what their snapshot lacks.
ALTER TABLE usage.fetch ADD COLUMN as_of_limit timestamptz;
