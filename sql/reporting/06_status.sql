-- Status of a figure: the first that applies of not_available, failed, missing, unverified, provisional, empty, ok.
-- `failure` is the state that failure_at found. `traces` is null where nobody counts: the status is ok instead of empty.
--
-- The planner inlines these functions; else every row would pay for a call. So they have no STRICT and no SET, and use an
-- argument twice only where callers pass short expressions.
CREATE OR REPLACE FUNCTION usage.figure_status(
  is_loaded boolean, is_unavailable boolean, failure text, is_final boolean, traces bigint
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN is_unavailable AND NOT is_loaded THEN 'not_available'
  -- Only what is not loaded can be missing, and only without a failure: so failed and unverified come first.
  ELSE coalesce(failure, CASE
    WHEN NOT is_loaded THEN 'missing'
    WHEN is_final IS NOT TRUE THEN 'provisional'
    WHEN traces = 0 THEN 'empty'
    ELSE 'ok'
  END)
END;

-- Whether later changes of a figure are kept as restatements. Figures of these statuses are loaded and final.
CREATE OR REPLACE FUNCTION usage.is_final(status text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN status IN ('ok', 'empty');

-- State of the failure that a bucket lies in, from the arrays of day_failure; null outside of failures.
CREATE OR REPLACE FUNCTION usage.failure_at(bucket date, starts date[], ends date[], states text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN bucket < ends[width_bucket(bucket, starts)] THEN states[width_bucket(bucket, starts)] END;

-- The same from the arrays of hour_failure.
CREATE OR REPLACE FUNCTION usage.failure_at(
  bucket timestamptz, starts timestamptz[], ends timestamptz[], states text[]
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN bucket < ends[width_bucket(bucket, starts)] THEN states[width_bucket(bucket, starts)] END;
