-- Status of a figure on a day or in an hour: the first that applies of not_available, failed, missing, unverified,
-- provisional, ok. A caller that knows the count returns `empty` instead of `ok` for zero. The sets are those of
-- usage.day_cell and usage.hour_cell.
--
-- The planner inlines these functions; otherwise each row would pay for a call. So they have no STRICT and no SET.
-- Nearly all time is final, so final time is looked up first: it is in no other set.
CREATE OR REPLACE FUNCTION usage.status_at(
  at anyelement, final anymultirange, not_available anymultirange, failed anymultirange, missing anymultirange,
  unverified anymultirange
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN final @> at THEN 'ok'
    WHEN not_available @> at THEN 'not_available'
    WHEN failed @> at THEN 'failed'
    WHEN missing @> at THEN 'missing'
    WHEN unverified @> at THEN 'unverified'
    ELSE 'provisional'
  END
$$;

-- Status of the short-lived traces of a day or month. They are inconsistent if there are more long-lived traces than
-- traces: then one was requested before the other, or the platform contradicts itself.
CREATE OR REPLACE FUNCTION usage.shortlived_status(status text, traces bigint, longlived bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN longlived > traces THEN 'inconsistent' WHEN status = 'ok' AND traces = longlived THEN 'empty'
            ELSE status END;

-- Whether later changes of a figure are kept as restatements. Figures of these statuses are loaded and final.
CREATE OR REPLACE FUNCTION usage.is_final(status text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN status IN ('ok', 'empty');

-- The status of a sum of figures: the first in the same order that any of them has.
CREATE OR REPLACE FUNCTION usage.worst_status(statuses text[]) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN 'not_available' = ANY (statuses) THEN 'not_available'
  WHEN 'failed' = ANY (statuses) THEN 'failed'
  WHEN 'missing' = ANY (statuses) THEN 'missing'
  WHEN 'unverified' = ANY (statuses) THEN 'unverified'
  WHEN 'provisional' = ANY (statuses) THEN 'provisional'
  WHEN 'ok' = ANY (statuses) THEN 'ok'
  ELSE 'empty'
END;
