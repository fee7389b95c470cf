-- Records: the figures themselves. The column `traces` holds the amount of the series' measure.

-- Traces of one bucket and series. Two tables, because an hour needs an instant and all other strides start on a UTC
-- day: a date is half the key, and what BI filters by is then the indexed column itself. The count is in the key's
-- index. A report reads that and nothing else: records of a series lie together in it, and in the table where their
-- loads came in. Planned as such, it is also cheap enough not to be compiled first. No foreign key to series: it would
-- cost a look-up a row in the load, and series are never deleted under records. Index-only scans need pages that vacuum
-- has seen. By default it comes when a fifth of the table is new, which is years.
CREATE TABLE usage.hourly_record (
  series_id integer NOT NULL,
  bucket_start timestamptz NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT hourly_record_pkey PRIMARY KEY (series_id, bucket_start) INCLUDE (traces),
  CONSTRAINT hourly_record_traces_range CHECK (traces >= 0)
) WITH (
  autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02
);

CREATE TABLE usage.dated_record (
  series_id integer NOT NULL,
  bucket_start date NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT dated_record_pkey PRIMARY KEY (series_id, bucket_start) INCLUDE (traces),
  CONSTRAINT dated_record_traces_range CHECK (traces >= 0)
) WITH (
  autovacuum_vacuum_insert_scale_factor = 0.01, autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.02
);
COMMENT ON TABLE usage.dated_record IS
  'Records of the strides day, week, month and year. The scope of the series has the stride. Never add records of '
  'different strides.';

-- The sum of a series' records by the calendar month that they begin in: a year by month and user is some ten thousand
-- rows here and a million days. A load keeps it in its own transaction, and adds to the rows of its months. Where there
-- is room beside a row, it changes in place and its key need not be entered again.
CREATE TABLE usage.monthly_total (
  series_id integer NOT NULL,
  month_start date NOT NULL,
  traces bigint NOT NULL,
  records integer NOT NULL,
  CONSTRAINT monthly_total_pkey PRIMARY KEY (series_id, month_start),
  CONSTRAINT monthly_total_on_first CHECK (extract(day FROM month_start) = 1),
  CONSTRAINT monthly_total_traces_range CHECK (traces >= 0),
  CONSTRAINT monthly_total_records_counted CHECK (records > 0)
) WITH (fillfactor = 50);

CREATE FUNCTION usage.month_of(day date) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT date_trunc('month', day::timestamp)::date $$;

-- Every statement that changes records, and is not of the program (a person's with psql, say), begins a new epoch. A
-- digest of an earlier epoch says nothing (usage.coverage). A sequence, so that such statements never wait for each
-- other. It has been called once, since the first call of a new one would return the value that it has already.
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
