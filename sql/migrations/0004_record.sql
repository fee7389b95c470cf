-- Traces of one bucket and series. Two tables, because an hour needs an instant and all other strides start on a UTC
-- day: a date is half the key, and what BI filters by is then the indexed column itself.
-- No foreign key to series: it would cost a look-up a row in the load, and series are never deleted under records.
CREATE TABLE usage.hourly_record (
  series_id integer NOT NULL,
  bucket_start timestamptz NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT hourly_record_pkey PRIMARY KEY (series_id, bucket_start),
  CONSTRAINT hourly_record_traces_range CHECK (traces >= 0)
);

CREATE TABLE usage.dated_record (
  series_id integer NOT NULL,
  bucket_start date NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT dated_record_pkey PRIMARY KEY (series_id, bucket_start),
  CONSTRAINT dated_record_traces_range CHECK (traces >= 0)
);
COMMENT ON TABLE usage.dated_record IS 'Records of the strides day, week, month and year; which one, the scope of the series tells. Never sum across scopes of different strides.';
