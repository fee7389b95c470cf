-- Differences between what is stored and the platform's CSV export, one row a key. Found again, it is the same row.
CREATE TABLE usage.reconciliation_difference (
  scope_id integer NOT NULL CONSTRAINT reconciliation_difference_scope_id_fkey REFERENCES usage.scope,
  -- The platform's id: an id of the export need not be stored.
  external_id text NOT NULL,
  bucket_start timestamptz NOT NULL,
  kind text NOT NULL,
  stored_traces bigint,
  export_traces bigint,
  state text NOT NULL DEFAULT 'open',
  fetch_number bigint NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz,
  CONSTRAINT reconciliation_difference_pkey PRIMARY KEY (scope_id, bucket_start, external_id),
  CONSTRAINT reconciliation_difference_kind_known CHECK (
    kind IN ('missing_in_store', 'missing_in_export', 'traces_differ')
  ),
  CONSTRAINT reconciliation_difference_state_known CHECK (state IN ('open', 'closed')),
  CONSTRAINT reconciliation_difference_closed_when CHECK ((state = 'closed') = (closed_at IS NOT NULL))
);
