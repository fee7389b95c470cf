-- Changes of final counts. Null is "not there": null to n was added, n to null was retired.
CREATE TABLE usage.restatement (
  restatement_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT restatement_pkey PRIMARY KEY,
  series_id integer NOT NULL CONSTRAINT restatement_series_id_fkey REFERENCES usage.series,
  bucket_start timestamptz NOT NULL,
  old_traces bigint,
  new_traces bigint,
  fetch_number bigint NOT NULL,
  restated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT restatement_once UNIQUE (series_id, bucket_start, fetch_number),
  CONSTRAINT restatement_is_change CHECK (old_traces IS DISTINCT FROM new_traces)
);
