-- A month that was closed: what it came to then. Never changed: what comes later is an adjustment beside it.
CREATE TABLE usage.month_close (
  close_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT month_close_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT month_close_source_id_fkey REFERENCES usage.source,
  month_start date NOT NULL,
  closed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Days x scopes on which the platform contradicted itself, closed all the same because somebody said so.
  accepted_disagreements integer NOT NULL,
  CONSTRAINT month_close_once UNIQUE (source_id, month_start),
  CONSTRAINT month_close_on_first CHECK (extract(day FROM month_start) = 1)
);

-- By day scope and entity. No row: no traces.
CREATE TABLE usage.closed_total (
  close_id integer NOT NULL CONSTRAINT closed_total_close_id_fkey REFERENCES usage.month_close,
  series_id integer NOT NULL CONSTRAINT closed_total_series_id_fkey REFERENCES usage.series,
  traces bigint NOT NULL,
  CONSTRAINT closed_total_pkey PRIMARY KEY (close_id, series_id),
  CONSTRAINT closed_total_traces_range CHECK (traces > 0)
);
