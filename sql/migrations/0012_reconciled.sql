-- What a difference may be beyond a count, and how it may end.
ALTER TABLE usage.reconciliation_difference
  -- Time of the request whose number stands beside it: a later load was asked for after this export.
  ADD COLUMN fetched_at timestamptz NOT NULL DEFAULT now(),
  -- The export's name (name_differs) or end of the bucket (bucket_end_differs).
  ADD COLUMN export_says text,
  DROP CONSTRAINT reconciliation_difference_kind_known,
  ADD CONSTRAINT reconciliation_difference_kind_known CHECK (
    kind IN ('missing_in_store', 'missing_in_export', 'traces_differ', 'name_differs', 'bucket_end_differs')
  ),
  -- Open: to be fetched again. Platform_disagrees: fetched again, and its two answers differ still. Repaired: fetched
  -- again, and they agree. Closed: gone by itself.
  DROP CONSTRAINT reconciliation_difference_state_known,
  ADD CONSTRAINT reconciliation_difference_state_known CHECK (
    state IN ('open', 'platform_disagrees', 'repaired', 'closed')
  ),
  DROP CONSTRAINT reconciliation_difference_closed_when,
  ADD CONSTRAINT reconciliation_difference_closed_when CHECK (
    (state IN ('repaired', 'closed')) = (closed_at IS NOT NULL)
  ),
  ADD CONSTRAINT reconciliation_difference_says_when CHECK (
    kind NOT IN ('name_differs', 'bucket_end_differs') OR export_says IS NOT NULL
  );
CREATE INDEX reconciliation_difference_unresolved ON usage.reconciliation_difference (scope_id, bucket_start)
  WHERE state IN ('open', 'platform_disagrees');

-- Which parts of time a whole export was last held against, without a difference left. A part counts as long as no
-- restatement on it has a newer number.
CREATE TABLE usage.reconciled (
  scope_id integer NOT NULL CONSTRAINT reconciled_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- Of the export.
  fetch_number bigint NOT NULL,
  reconciled_at timestamptz NOT NULL,
  CONSTRAINT reconciled_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT reconciled_period_order CHECK (period_start < period_end),
  CONSTRAINT reconciled_no_overlap EXCLUDE USING gist (
    int4range(scope_id, scope_id, '[]') WITH &&,
    tstzrange(period_start, period_end) WITH &&
  )
);
