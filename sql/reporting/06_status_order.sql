-- Status of a figure on a day or in an hour: the first that applies of not_available, failed, missing, unverified, provisional, ok.
-- Who counts says `empty` instead of `ok` where the count is zero. The sets are those of usage.day_cell and usage.hour_cell.
--
-- The planner inlines these functions; else every row would pay for a call. So they have no STRICT and no SET. Nearly all time
-- is final, so that is looked up first; what is final is in no other set.
CREATE OR REPLACE FUNCTION usage.day_status(
  day date, final datemultirange, not_available datemultirange, failed datemultirange, missing datemultirange,
  unverified datemultirange
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN final @> day THEN 'ok'
  WHEN not_available @> day THEN 'not_available'
  WHEN failed @> day THEN 'failed'
  WHEN missing @> day THEN 'missing'
  WHEN unverified @> day THEN 'unverified'
  ELSE 'provisional'
END;

CREATE OR REPLACE FUNCTION usage.hour_status(
  hour timestamptz, final tstzmultirange, not_available tstzmultirange, failed tstzmultirange, missing tstzmultirange,
  unverified tstzmultirange
) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN final @> hour THEN 'ok'
  WHEN not_available @> hour THEN 'not_available'
  WHEN failed @> hour THEN 'failed'
  WHEN missing @> hour THEN 'missing'
  WHEN unverified @> hour THEN 'unverified'
  ELSE 'provisional'
END;

-- Whether later changes of a figure are kept as restatements. Figures of these statuses are loaded and final.
CREATE OR REPLACE FUNCTION usage.is_final(status text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN status IN ('ok', 'empty');

-- The status of a figure that several figures make up: the first of the same order that one of them has.
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
