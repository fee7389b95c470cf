-- Zeros that were loaded and withdrawn: the key had lost the workspace, or a later answer came without proof of access.
CREATE TABLE usage.withdrawal (
  scope_id integer NOT NULL CONSTRAINT withdrawal_scope_id_fkey REFERENCES usage.scope,
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  -- Whether they were shown as final.
  final boolean NOT NULL,
  -- As in usage.became_final, whose entry this one replaces; null where there was none.
  final_at timestamptz,
  withdrawn_at timestamptz NOT NULL,
  CONSTRAINT withdrawal_pkey PRIMARY KEY (scope_id, period_start, withdrawn_at),
  CONSTRAINT withdrawal_period_order CHECK (period_start < period_end)
);
