-- The bill's other side: what the billing provider holds by month, metric and workspace. It is a second system, counted apart from
-- the usage that is loaded, so it proves nothing about a day. It is kept as it was read, also where nothing here is like it.
CREATE TABLE usage.provider_total (
  source_id smallint NOT NULL CONSTRAINT provider_total_source_id_fkey REFERENCES usage.source,
  month_start date NOT NULL,
  -- Empty: the answer has no metric of this meter.
  metric_id text NOT NULL,
  -- The platform's id of a workspace, which need not be known here. Empty: all workspaces.
  workspace text NOT NULL,
  metric_name text,
  -- Null: a metric that nothing is compared with.
  meter text,
  -- Null: unknown, which is not zero.
  value numeric,
  -- What came of the comparison with the sum of the stored days, and that sum.
  outcome text NOT NULL,
  stored_traces bigint,
  fetch_number bigint NOT NULL,
  read_at timestamptz NOT NULL,
  CONSTRAINT provider_total_pkey PRIMARY KEY (source_id, month_start, metric_id, workspace),
  CONSTRAINT provider_total_on_first CHECK (extract(day FROM month_start) = 1),
  CONSTRAINT provider_total_meter_known CHECK (meter IN ('traces', 'longlived')),
  CONSTRAINT provider_total_value_range CHECK (value >= 0),
  CONSTRAINT provider_total_outcome_known CHECK (
    outcome IN (
      'equal', 'differs', 'not_final', 'not_loaded', 'unknown_workspace', 'unknown_metric', 'several_metrics', 'unknown_value',
      'other_period', 'not_whole', 'no_metric', 'sum_of_workspaces', 'not_the_sum'
    )
  ),
  CONSTRAINT provider_total_compared_when CHECK ((outcome IN ('equal', 'differs')) = (stored_traces IS NOT NULL))
);

-- Parts of the bill that were asked for. Refusal: what the server answered in place of it; null where it answered.
CREATE TABLE usage.bill_part (
  source_id smallint NOT NULL CONSTRAINT bill_part_source_id_fkey REFERENCES usage.source,
  part text NOT NULL,
  refusal text,
  asked_at timestamptz NOT NULL,
  CONSTRAINT bill_part_pkey PRIMARY KEY (source_id, part),
  CONSTRAINT bill_part_known CHECK (part IN ('provider_totals', 'usage_limits', 'billing_period'))
);

ALTER TABLE usage.control_difference
  DROP CONSTRAINT control_difference_kind_known,
  ADD CONSTRAINT control_difference_kind_known CHECK (kind IN ('stride_total', 'grouping_total', 'provider_total'));

-- The webhook also hears of the provider's totals, and of usage limits.
ALTER TABLE usage.alert DROP CONSTRAINT alert_kind_known;
ALTER TABLE usage.alert ADD CONSTRAINT alert_kind_known CHECK (
  kind IN (
    'difference', 'control_total', 'final_changed', 'stale', 'refused', 'access_lost', 'unpriced', 'provider_total', 'usage_limit'
  )
);
