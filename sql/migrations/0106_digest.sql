-- A digest of a loaded interval's records: 16 bytes for each bucket, in order (src/domain/usage/digest.ts). A load whose answer
-- has the same digest need not compare its records with the stored ones. It belongs to the interval's row, so whatever
-- clears or replaces the interval takes it away. Null is always right, and is what older releases leave.
ALTER TABLE usage.coverage
  ADD COLUMN digest bytea,
  ADD COLUMN digest_epoch bigint,
  ADD CONSTRAINT coverage_digest_epoch CHECK (digest IS NULL OR digest_epoch IS NOT NULL);
-- Digests cannot be compressed. Kept as they are, a part of one can be read alone.
ALTER TABLE usage.coverage ALTER COLUMN digest SET STORAGE EXTERNAL;

-- Every statement that changes records, and is not of a release that keeps digests (a person's, an older release's), begins a new
-- epoch. A digest of an earlier epoch says nothing. A sequence, so that such statements never wait for each other; it has
-- been called once, since the first call of a new one would return the value that it has already.
CREATE SEQUENCE usage.digest_epoch;
SELECT setval('usage.digest_epoch', 1, true);

CREATE FUNCTION usage.begin_digest_epoch() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM nextval('usage.digest_epoch');
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.begin_digest_epoch () FROM public;

CREATE TRIGGER digests_end AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON usage.hourly_record FOR EACH STATEMENT
  WHEN (current_setting('usage.keeps_digests', true) IS DISTINCT FROM 'on')
  EXECUTE FUNCTION usage.begin_digest_epoch ();
CREATE TRIGGER digests_end AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON usage.dated_record FOR EACH STATEMENT
  WHEN (current_setting('usage.keeps_digests', true) IS DISTINCT FROM 'on')
  EXECUTE FUNCTION usage.begin_digest_epoch ();

-- What the digest of an interval says about a part of it. Null where the part does not consist of whole buckets.
CREATE FUNCTION usage.digest_part(digest bytea, whole tstzrange, part tstzrange) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT substring(digest FROM 1 + 16 * (first / seconds)::integer FOR 16 * (buckets / seconds)::integer)
  FROM (
    SELECT extract(epoch FROM upper(whole) - lower(whole))::bigint AS seconds,
           octet_length(digest) / 16 * extract(epoch FROM lower(part) - lower(whole))::bigint AS first,
           octet_length(digest) / 16 * extract(epoch FROM upper(part) - lower(part))::bigint AS buckets
  ) s
  WHERE first % seconds = 0 AND buckets % seconds = 0
$$;
