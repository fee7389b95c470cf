-- Parts of time whose control total equalled the sum of the stored days, by id. The newest total counts. A row may be what is
-- left of its total's time beside newer ones.
CREATE TABLE usage.matched_total (
  scope_id integer NOT NULL CONSTRAINT matched_total_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- The time of the whole total: a change of any day in it ends the proof of all of them.
  total_start timestamptz NOT NULL,
  total_end timestamptz NOT NULL,
  -- Of the request for the total.
  fetch_number bigint NOT NULL,
  matched_at timestamptz NOT NULL,
  CONSTRAINT matched_total_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT matched_total_period_order CHECK (period_start < period_end),
  CONSTRAINT matched_total_within CHECK (period_start >= total_start AND period_end <= total_end),
  CONSTRAINT matched_total_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);
