-- What the records of a series come to in each calendar month that they begin in: a year by month and user is some ten
-- thousand rows here and a million days. A load keeps it in its own transaction.
CREATE TABLE usage.monthly_total (
  series_id integer NOT NULL,
  month_start date NOT NULL,
  traces bigint NOT NULL,
  records integer NOT NULL,
  CONSTRAINT monthly_total_pkey PRIMARY KEY (series_id, month_start),
  CONSTRAINT monthly_total_on_first CHECK (extract(day FROM month_start) = 1),
  CONSTRAINT monthly_total_traces_range CHECK (traces >= 0),
  CONSTRAINT monthly_total_records_counted CHECK (records > 0)
);

CREATE FUNCTION usage.month_of(day date) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT date_trunc('month', day::timestamp)::date $$;

-- A release from before this table loads beside the newer one while it is deployed, and keeps no totals. Its loads write
-- coverage after their records, as all do: then the months that they touch are counted anew. The window's own ranges are
-- those with the newest number; what is left of older ranges is written again with its old one, and has not changed.
CREATE FUNCTION usage.recount_months() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  DELETE FROM usage.monthly_total t
  USING new_ranges n
  JOIN usage.scope p ON p.scope_id = n.scope_id AND p.stride <> 'hour'
  JOIN usage.series s ON s.scope_id = n.scope_id
  WHERE t.series_id = s.series_id
    AND n.fetch_number = (SELECT max(fetch_number) FROM new_ranges x WHERE x.scope_id = n.scope_id)
    AND t.month_start >= usage.month_of((n.period_start AT TIME ZONE 'UTC')::date)
    AND t.month_start < (n.period_end AT TIME ZONE 'UTC')::date;
  INSERT INTO usage.monthly_total (series_id, month_start, traces, records)
  SELECT r.series_id, m.month_start, sum(r.traces), count(*)
  FROM (
    SELECT DISTINCT n.scope_id, month::date AS month_start
    FROM new_ranges n
    JOIN usage.scope p ON p.scope_id = n.scope_id AND p.stride <> 'hour'
    CROSS JOIN LATERAL generate_series(
      date_trunc('month', n.period_start AT TIME ZONE 'UTC'),
      n.period_end AT TIME ZONE 'UTC' - interval '1 day', interval '1 month'
    ) month
    WHERE n.fetch_number = (SELECT max(fetch_number) FROM new_ranges x WHERE x.scope_id = n.scope_id)
  ) m
  JOIN usage.series s ON s.scope_id = m.scope_id
  JOIN usage.dated_record r ON r.series_id = s.series_id AND r.bucket_start >= m.month_start
   AND r.bucket_start < (m.month_start + interval '1 month')::date
  GROUP BY r.series_id, m.month_start
  ORDER BY r.series_id, m.month_start;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION usage.recount_months () FROM public;

-- In the order in which a load locks them. Until the end of this migration no load is halfway.
LOCK TABLE usage.dated_record IN SHARE ROW EXCLUSIVE MODE;
CREATE TRIGGER months_of_older_loads AFTER INSERT ON usage.coverage
  REFERENCING NEW TABLE AS new_ranges FOR EACH STATEMENT
  WHEN (current_setting('usage.keeps_months', true) IS DISTINCT FROM 'on')
  EXECUTE FUNCTION usage.recount_months();

INSERT INTO usage.monthly_total (series_id, month_start, traces, records)
SELECT series_id, usage.month_of(bucket_start), sum(traces), count(*) FROM usage.dated_record GROUP BY 1, 2 ORDER BY 1, 2;
