-- Parts of time that are loaded, failed, final or invalidated. In all of these tables a range of one integer replaces
-- equality in the exclusion of overlaps, so that no extension is needed.

-- Loaded intervals of a scope. A load commits its records and these rows together. They are the fence against older
-- responses, and records exist only inside them.
CREATE TABLE usage.coverage (
  scope_id integer NOT NULL CONSTRAINT coverage_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- Fetched at least USAGE_SETTLE_AFTER after its last bucket ended.
  final boolean NOT NULL,
  fetch_number bigint NOT NULL,
  fetched_at timestamptz NOT NULL,
  -- The buckets that have traces, so that an empty day is known without reading the records.
  traced tstzmultirange NOT NULL,
  -- A digest of the interval's records: 16 bytes for each bucket, in order (src/core/domain/usage/digest.ts). A load
  -- whose response has the same digest need not compare its records with the stored ones. It is in the interval's row,
  -- so clearing or replacing the interval removes it too. Null is always right.
  digest bytea,
  digest_epoch bigint,
  CONSTRAINT coverage_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT coverage_period_order CHECK (period_start < period_end),
  CONSTRAINT coverage_traced_within CHECK (traced <@ tstzrange(period_start, period_end)),
  CONSTRAINT coverage_digest_epoch CHECK (digest IS NULL OR digest_epoch IS NOT NULL),
  CONSTRAINT coverage_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);
-- Digests cannot be compressed. Kept as they are, a part of one can be read alone.
ALTER TABLE usage.coverage ALTER COLUMN digest SET STORAGE EXTERNAL;

-- The part of an interval's digest for a part of its time. Null if the part does not consist of whole buckets.
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

-- Parts of time whose last response could not be used, and when to try again.
CREATE TABLE usage.failure (
  scope_id integer NOT NULL CONSTRAINT failure_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- 'unverified': a response without records for a workspace without proof of access.
  state text NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  attempts integer NOT NULL,
  fetch_number bigint NOT NULL,
  failed_at timestamptz NOT NULL,
  retry_at timestamptz NOT NULL,
  CONSTRAINT failure_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT failure_period_order CHECK (period_start < period_end),
  CONSTRAINT failure_state_known CHECK (state IN ('failed', 'unverified')),
  CONSTRAINT failure_attempts_counted CHECK (attempts >= 1),
  CONSTRAINT failure_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);

-- When each part of a day scope's time was first stored as final. Coverage does not record it, since a later load
-- replaces its row. This and the restatements since show which figures were stored as final at an instant.
CREATE TABLE usage.became_final (
  scope_id integer NOT NULL CONSTRAINT became_final_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  final_at timestamptz NOT NULL,
  CONSTRAINT became_final_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT became_final_period_order CHECK (period_start < period_end),
  CONSTRAINT became_final_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);

-- Zeros that were loaded and invalidated: the key had lost the workspace, or a later response came without proof of
-- access.
CREATE TABLE usage.withdrawal (
  scope_id integer NOT NULL CONSTRAINT withdrawal_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- Whether they were shown as final.
  final boolean NOT NULL,
  -- The same as in usage.became_final, whose row this one replaces. Null: there was no such row.
  final_at timestamptz,
  invalidated_at timestamptz NOT NULL,
  CONSTRAINT withdrawal_pkey PRIMARY KEY (scope_id, period_start, invalidated_at),
  CONSTRAINT withdrawal_period_order CHECK (period_start < period_end)
);
