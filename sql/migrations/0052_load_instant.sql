-- The instant of a load, with which it stamps what it settles and restates. From here on the lock table of Postgres says which
-- instants are drawn and not yet committed. The lock comes before the instant is drawn, so that no instant is ever earlier
-- than a lock that nobody can see yet. It ends with the transaction, whatever becomes of the load.
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

-- A release from before this function loads beside the newer one while it is deployed, and draws its instant without the lock.
-- Such an instant is replaced. It is recognised as one that was drawn in this transaction: `prune` stores older ones.
CREATE FUNCTION usage.restamp_older_load() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF TG_TABLE_NAME = 'became_final' THEN
    NEW.final_at := usage.load_instant();
  ELSE
    NEW.restated_at := usage.load_instant();
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER settlement_of_older_loads BEFORE INSERT ON usage.became_final FOR EACH ROW
  WHEN (NEW.final_at >= now() AND NEW.final_at::text IS DISTINCT FROM current_setting('usage.load_instant', true))
  EXECUTE FUNCTION usage.restamp_older_load();
CREATE TRIGGER restatement_of_older_loads BEFORE INSERT ON usage.restatement FOR EACH ROW
  WHEN (NEW.restated_at >= now() AND NEW.restated_at::text IS DISTINCT FROM current_setting('usage.load_instant', true))
  EXECUTE FUNCTION usage.restamp_older_load();
