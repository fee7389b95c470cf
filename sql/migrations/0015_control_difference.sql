-- Totals that should be equal and are not: days against a coarser window of theirs, or a grouping's day against the
-- workspace's. One row a key; found again, it is the same row.
CREATE TABLE usage.control_difference (
  -- Of the days.
  scope_id integer NOT NULL CONSTRAINT control_difference_scope_id_fkey REFERENCES usage.scope,
  kind text NOT NULL,
  period_start timestamptz NOT NULL,
  -- A day where the guilty one was found, else the part of time whose total differs.
  period_end timestamptz NOT NULL,
  -- The platform's id: one that the total has and the days have not need not be stored. Empty for grouping totals.
  external_id text NOT NULL,
  stored_traces bigint,
  control_traces bigint,
  state text NOT NULL,
  fetch_number bigint NOT NULL,
  found_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz,
  CONSTRAINT control_difference_pkey PRIMARY KEY (scope_id, kind, period_start, period_end, external_id),
  CONSTRAINT control_difference_period_order CHECK (period_start < period_end),
  CONSTRAINT control_difference_kind_known CHECK (kind IN ('stride_total', 'grouping_total')),
  -- 'unattributed': asked twice, the workspace has more than the grouping names. Shown, and no fault of anybody's.
  CONSTRAINT control_difference_state_known CHECK (state IN ('platform_disagrees', 'unattributed', 'closed')),
  CONSTRAINT control_difference_closed_when CHECK ((state = 'closed') = (closed_at IS NOT NULL))
);

-- Ledger of the checks: what was proved, and when.
CREATE TABLE usage.control_check (
  source_id smallint NOT NULL CONSTRAINT control_check_source_id_fkey REFERENCES usage.source,
  checked_at timestamptz NOT NULL DEFAULT now(),
  period_start timestamptz NOT NULL,
  period_end timestamptz NOT NULL,
  requests integer NOT NULL,
  -- Final days x scopes held against a total, and those that no window fits yet.
  days_proved integer NOT NULL,
  days_waiting integer NOT NULL,
  restated integer NOT NULL,
  differences integer NOT NULL,
  failures integer NOT NULL,
  CONSTRAINT control_check_pkey PRIMARY KEY (source_id, checked_at),
  CONSTRAINT control_check_period_order CHECK (period_start < period_end)
);
