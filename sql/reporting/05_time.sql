-- Functions over days and hours, for the views. They read no table. STRICT keeps the planner from inlining them; it
-- would expect a thousand rows of each inlined one.

-- The time ranges of the days.
CREATE OR REPLACE FUNCTION usage.time_of(parts datemultirange) RETURNS tstzmultirange
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(range_agg(tstzrange(
           lower(part)::timestamp AT TIME ZONE 'UTC', upper(part)::timestamp AT TIME ZONE 'UTC'
         )), '{}')
  FROM unnest(parts) part
$$;

CREATE OR REPLACE FUNCTION usage.days_of(parts datemultirange) RETURNS SETOF date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT lower(part) + n
  FROM unnest(parts) part CROSS JOIN LATERAL generate_series(0, upper(part) - lower(part) - 1) n
$$;

CREATE OR REPLACE FUNCTION usage.hours_of(parts tstzmultirange) RETURNS SETOF timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT generate_series(lower(part), upper(part) - interval '1 hour', interval '1 hour') FROM unnest(parts) part
$$;

-- Days between two days, ends included. Postgres expects that a filter on the day keeps one row in 200: with ROWS 5000
-- it plans for a month. With fewer it plans for one day, and computes the cells again for each day.
CREATE OR REPLACE FUNCTION usage.days_between(first date, last date) RETURNS SETOF date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 5000
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT first + n FROM generate_series(0, last - first) n
$$;

CREATE OR REPLACE FUNCTION usage.count_days(parts datemultirange) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(sum(upper(part) - lower(part)), 0)::integer FROM unnest(parts) part
$$;

-- First days of the calendar months between two days, both included.
CREATE OR REPLACE FUNCTION usage.months_of(first date, last date) RETURNS SETOF date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 36
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT generate_series(date_trunc('month', first::timestamp), last::timestamp, interval '1 month')::date
$$;
