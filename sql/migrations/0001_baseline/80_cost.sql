-- Prices, closed months with what they cost, and the bill's other side.

-- SKUs: what can have a price. An integer replaces the name, so that prices of one SKU can exclude each other without
-- an extension. A SKU has one measure, so that a quantity of it always counts the same thing.
CREATE TABLE usage.sku (
  sku_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT sku_pkey PRIMARY KEY,
  name text NOT NULL CONSTRAINT sku_name_key UNIQUE,
  -- All traces, those of a retention tier, or a measure of deployment or sandbox usage.
  measure text NOT NULL DEFAULT 'traces',
  CONSTRAINT sku_name_form CHECK (name ~ '\S' AND length(name) <= 200),
  CONSTRAINT sku_measure_known CHECK (
    measure IN (
      'traces', 'longlived', 'shortlived', 'nodes_executed', 'agent_runs', 'agent_uptime_seconds', 'lcu', 'lsu',
      'compute_standard_units', 'storage_standard_units'
    )
  )
);

-- Unit prices, as somebody imported them: what costs are estimated from. The most specific one of a SKU applies: a
-- workspace's before its source's before everybody's.
CREATE TABLE usage.price (
  price_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT price_pkey PRIMARY KEY,
  sku_id integer NOT NULL CONSTRAINT price_sku_id_fkey REFERENCES usage.sku,
  -- Null: the price is for every source.
  source_id smallint CONSTRAINT price_source_id_fkey REFERENCES usage.source,
  -- Null: the price is for every workspace.
  workspace_id integer CONSTRAINT price_workspace_id_fkey REFERENCES usage.workspace,
  -- With this many digits its product with any bigint fits numeric(38, 10), the widest type that BI tools and Parquet
  -- take.
  unit_price numeric(18, 10) NOT NULL,
  -- ISO 4217.
  currency text NOT NULL,
  valid_from date NOT NULL,
  -- Not included. Null: no end is known.
  valid_to date,
  -- Usage of the month that fills the volume tiers: that of each source, or of each workspace separately.
  counted_over text NOT NULL DEFAULT 'source',
  imported_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT price_unit_price_range CHECK (unit_price >= 0),
  CONSTRAINT price_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT price_validity_order CHECK (valid_from < valid_to),
  CONSTRAINT price_workspace_of_source CHECK (workspace_id IS NULL OR source_id IS NOT NULL),
  CONSTRAINT price_counted_over_known CHECK (counted_over IN ('source', 'workspace')),
  -- A range of one integer replaces equality. 0 replaces null, since no identity is 0.
  CONSTRAINT price_no_overlap EXCLUDE USING gist (
    int4range(sku_id, sku_id, '[]') WITH &&,
    int4range(coalesce(source_id, 0), coalesce(source_id, 0), '[]') WITH &&,
    int4range(coalesce(workspace_id, 0), coalesce(workspace_id, 0), '[]') WITH &&,
    daterange(valid_from, valid_to) WITH &&
  )
);

-- Volume tiers of a price: its unit_price is charged from the first trace of a calendar month, and that of a tier from
-- the trace after the first from_quantity ones. A free allowance is a unit_price of 0 before the first tier. The tiers
-- of a price are valid as long as it is, so price_no_overlap holds for both.
CREATE TABLE usage.price_tier (
  price_id integer NOT NULL CONSTRAINT price_tier_price_id_fkey REFERENCES usage.price ON DELETE CASCADE,
  from_quantity bigint NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  CONSTRAINT price_tier_pkey PRIMARY KEY (price_id, from_quantity),
  CONSTRAINT price_tier_from_quantity_range CHECK (from_quantity > 0),
  CONSTRAINT price_tier_unit_price_range CHECK (unit_price >= 0)
);

-- A period that was closed, with its totals at that time: a calendar month, or another billing period. A row never
-- changes: later changes are adjustments.
CREATE TABLE usage.close (
  close_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT close_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT close_source_id_fkey REFERENCES usage.source,
  period_start date NOT NULL,
  -- Not included.
  period_end date NOT NULL,
  -- Null: the period is no calendar month. Costs are closed by calendar month alone.
  month_start date GENERATED ALWAYS AS (
    CASE WHEN extract(day FROM period_start) = 1 AND period_end = (period_start + interval '1 month')::date
      THEN period_start END
  ) STORED,
  closed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The USAGE_SETTLE_AFTER of that time.
  settle_after_seconds bigint NOT NULL,
  -- Days x scopes on which the platform contradicted itself, closed anyway because somebody accepted them.
  accepted_disagreements integer NOT NULL,
  -- When the costs of a month were closed. Null: the month was closed without costs, and has no costs until somebody
  -- closes them.
  costs_closed_at timestamptz,
  CONSTRAINT close_once UNIQUE (source_id, period_start, period_end),
  CONSTRAINT close_order CHECK (period_start < period_end),
  CONSTRAINT close_costs_of_month CHECK (costs_closed_at IS NULL OR month_start IS NOT NULL),
  CONSTRAINT close_settle_after_range CHECK (settle_after_seconds >= 0)
);

-- The workspaces that a close covers.
CREATE TABLE usage.closed_workspace (
  close_id integer NOT NULL CONSTRAINT closed_workspace_close_id_fkey REFERENCES usage.close,
  workspace_id integer NOT NULL CONSTRAINT closed_workspace_workspace_id_fkey REFERENCES usage.workspace,
  -- Left out by the person who closed the period: its totals are not in the close.
  is_left_out boolean NOT NULL,
  CONSTRAINT closed_workspace_pkey PRIMARY KEY (close_id, workspace_id)
);

-- The totals of a close, by day scope and entity. An entity without a row has no traces.
CREATE TABLE usage.closed_total (
  close_id integer NOT NULL CONSTRAINT closed_total_close_id_fkey REFERENCES usage.close,
  series_id integer NOT NULL CONSTRAINT closed_total_series_id_fkey REFERENCES usage.series,
  traces bigint NOT NULL,
  CONSTRAINT closed_total_pkey PRIMARY KEY (close_id, series_id),
  CONSTRAINT closed_total_traces_range CHECK (traces > 0)
);

-- The charges of a closed month by day, as they were when it was closed. A later import changes prices, not these rows.
-- So this table and the next one hold the price itself, not its number alone, and what it counts (measure): its SKU may
-- be gone. A quantity is whole but for compute and storage units.
CREATE TABLE usage.closed_charge (
  close_id integer NOT NULL CONSTRAINT closed_charge_close_id_fkey REFERENCES usage.close,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL CONSTRAINT closed_charge_workspace_id_fkey REFERENCES usage.workspace,
  sku text NOT NULL,
  measure text NOT NULL DEFAULT 'traces',
  -- Number of the imported price, which may no longer exist. Numbers are not reused.
  price_id integer NOT NULL,
  -- 0: the price had no volume tiers.
  tier integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  currency text NOT NULL,
  quantity numeric NOT NULL,
  cost numeric(38, 10) NOT NULL,
  CONSTRAINT closed_charge_pkey PRIMARY KEY (close_id, usage_date, workspace_id, sku, tier),
  CONSTRAINT closed_charge_quantity_range CHECK (quantity > 0)
);
CREATE INDEX closed_charge_by_day ON usage.closed_charge (usage_date, workspace_id);
-- The measures of closed charges (usage.priced_meter).
CREATE INDEX closed_charge_by_measure ON usage.closed_charge (measure);

-- Corrections in a month that is itself closed: changes of earlier closed months, in the month in which they were
-- shown. Later changes are corrections of a later month, so the rows of this one stay.
CREATE TABLE usage.closed_correction (
  -- The close of the month that shows the correction.
  close_id integer NOT NULL CONSTRAINT closed_correction_close_id_fkey REFERENCES usage.close,
  -- The day of the charge that is corrected, in an earlier month.
  usage_date date NOT NULL,
  workspace_id integer NOT NULL CONSTRAINT closed_correction_workspace_id_fkey REFERENCES usage.workspace,
  sku text NOT NULL,
  measure text NOT NULL DEFAULT 'traces',
  price_id integer NOT NULL,
  tier integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18, 10) NOT NULL,
  currency text NOT NULL,
  -- Negative: charged too much before.
  quantity numeric NOT NULL,
  cost numeric(38, 10) NOT NULL,
  CONSTRAINT closed_correction_pkey PRIMARY KEY (close_id, usage_date, workspace_id, sku, currency, unit_price),
  CONSTRAINT closed_correction_quantity_nonzero CHECK (quantity <> 0)
);

-- Totals of the billing provider by month, metric and workspace. It is a second system, which counts separately from
-- the loaded usage, so it proves nothing about a day. A total is kept as it was read, even if no stored figure matches
-- it.
CREATE TABLE usage.provider_total (
  source_id smallint NOT NULL CONSTRAINT provider_total_source_id_fkey REFERENCES usage.source,
  month_start date NOT NULL,
  -- Empty: the response has no metric of this meter.
  metric_id text NOT NULL,
  -- The platform's id of a workspace, which need not be known here. Empty: all workspaces.
  workspace text NOT NULL,
  metric_name text,
  -- Null: a metric that is not compared.
  meter text,
  -- Null: unknown, which is not zero.
  value numeric,
  -- The result of the comparison with the sum of the stored days, and that sum.
  outcome text NOT NULL,
  stored_traces bigint,
  fetch_number bigint NOT NULL,
  read_at timestamptz NOT NULL,
  CONSTRAINT provider_total_pkey PRIMARY KEY (source_id, month_start, metric_id, workspace),
  CONSTRAINT provider_total_on_first CHECK (extract(day FROM month_start) = 1),
  CONSTRAINT provider_total_meter_known CHECK (meter IN ('traces', 'longlived', 'agent_runs', 'nodes_executed')),
  CONSTRAINT provider_total_value_range CHECK (value >= 0),
  CONSTRAINT provider_total_outcome_known CHECK (
    outcome IN (
      'equal', 'differs', 'not_final', 'not_loaded', 'unknown_workspace', 'unknown_metric', 'several_metrics',
      'unknown_value',
      'other_period', 'not_whole', 'no_metric', 'sum_of_workspaces', 'not_the_sum'
    )
  ),
  CONSTRAINT provider_total_compared_when CHECK ((outcome IN ('equal', 'differs')) = (stored_traces IS NOT NULL))
);

-- Workspaces with usage that no sync loads, by a response to a request without workspace ids. A whole response replaces
-- those of its month.
CREATE TABLE usage.unloaded_workspace (
  source_id smallint NOT NULL CONSTRAINT unloaded_workspace_source_id_fkey REFERENCES usage.source,
  month_start date NOT NULL,
  -- The platform's id, which need not be known here. Empty: usage without a workspace.
  workspace text NOT NULL,
  name text,
  -- Of whole days up to the reading.
  traces bigint NOT NULL,
  read_at timestamptz NOT NULL,
  CONSTRAINT unloaded_workspace_pkey PRIMARY KEY (source_id, month_start, workspace),
  CONSTRAINT unloaded_workspace_on_first CHECK (extract(day FROM month_start) = 1),
  CONSTRAINT unloaded_workspace_traces_positive CHECK (traces > 0)
);

-- Lines of a month's bill that no API reports, such as seats or a credit: what somebody entered, who, when and why. A line is never
-- changed: another one corrects it.
CREATE TABLE usage.added_line (
  added_line_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT added_line_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT added_line_source_id_fkey REFERENCES usage.source,
  month_start date NOT NULL,
  line_text text NOT NULL,
  -- The measure that the platform charges and does not report. Null: something else.
  measure text,
  amount numeric(38, 10) NOT NULL,
  currency text NOT NULL,
  reason text NOT NULL,
  -- Who entered it. Null: not known.
  added_by text,
  added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT added_line_on_first CHECK (extract(day FROM month_start) = 1),
  CONSTRAINT added_line_measure_known CHECK (measure IN ('deployment_lcu', 'deployment_lsu')),
  CONSTRAINT added_line_amount_nonzero CHECK (amount <> 0)
);
CREATE INDEX added_line_by_month ON usage.added_line (source_id, month_start);

-- Parts of the bill that were requested. Refusal: the server's response if it refused; null if it responded.
CREATE TABLE usage.bill_part (
  source_id smallint NOT NULL CONSTRAINT bill_part_source_id_fkey REFERENCES usage.source,
  part text NOT NULL,
  refusal text,
  requested_at timestamptz NOT NULL,
  CONSTRAINT bill_part_pkey PRIMARY KEY (source_id, part),
  CONSTRAINT bill_part_known CHECK (
    part IN (
      'provider_totals', 'usage_limits', 'billing_period', 'resource_tags', 'names', 'all_workspaces', 'audit_log',
      'members', 'gateway_spend', 'engine_units', 'engine_limit'
    )
  )
);

-- Changes of settings that change a bill, from the platform's audit log. The log keeps them for 400 days, this table
-- for good. It has no values of a setting and no address.
CREATE TABLE usage.logged_change (
  change_id integer GENERATED ALWAYS AS IDENTITY CONSTRAINT logged_change_pkey PRIMARY KEY,
  source_id smallint NOT NULL CONSTRAINT logged_change_source_id_fkey REFERENCES usage.source,
  -- The platform's id of the entry.
  external_id text NOT NULL,
  operation text NOT NULL,
  changed_at timestamptz NOT NULL,
  -- The platform's id, which need not be known here. Null: the entry names no workspace.
  workspace text,
  -- The platform's id of the user who made the change. Null: the entry names none.
  user_id text,
  -- Whether the log says that it succeeded. False: it does not say. Changes that failed are not kept.
  is_certain boolean NOT NULL,
  CONSTRAINT logged_change_once UNIQUE (source_id, external_id)
);

-- Snapshots of what the platform reports that is no loaded usage: members, spend through its gateway, units and limits
-- of its own agents. No cost depends on them. A whole response replaces the lines of its kinds on the same UTC day.
CREATE TABLE usage.statement_line (
  source_id smallint NOT NULL CONSTRAINT statement_line_source_id_fkey REFERENCES usage.source,
  taken_on date NOT NULL,
  kind text NOT NULL,
  -- The platform's ids of what the line is about, or its place in the response. Empty: the organization.
  line_id text NOT NULL,
  subject text,
  -- The platform's word for the window under way.
  window_name text,
  -- First day of the calendar month that the value is about.
  month_start date NOT NULL,
  -- Null: unknown, or there is no limit (remark).
  value numeric,
  remark text,
  read_at timestamptz NOT NULL,
  CONSTRAINT statement_line_pkey PRIMARY KEY (source_id, taken_on, kind, line_id),
  CONSTRAINT statement_line_kind_known CHECK (
    kind IN (
      'members', 'gateway_spend', 'engine_units', 'engine_enforced_limit', 'engine_limit', 'fleet_limit'
    )
  ),
  CONSTRAINT statement_line_on_first CHECK (extract(day FROM month_start) = 1),
  CONSTRAINT statement_line_value_range CHECK (value >= 0)
);

-- Usage limits that the platform enforces, as they were last read. A whole response replaces them.
CREATE TABLE usage.usage_limit (
  source_id smallint NOT NULL CONSTRAINT usage_limit_source_id_fkey REFERENCES usage.source,
  -- The platform's id of a workspace, which need not be known here. Empty: of the organization.
  workspace text NOT NULL,
  -- The platform's word, such as monthly_traces.
  limit_type text NOT NULL,
  -- Null: there is no limit.
  limit_value bigint,
  -- Whether the platform rejects traces of the workspace because of it.
  is_rejecting boolean NOT NULL,
  read_at timestamptz NOT NULL,
  CONSTRAINT usage_limit_pkey PRIMARY KEY (source_id, workspace, limit_type),
  CONSTRAINT usage_limit_value_range CHECK (limit_value >= 0)
);

-- Billing periods of the organization, by the instant at which each ends: the platform reports nothing else. A period
-- begins where the one before it ended, if that one was read while it was current.
CREATE TABLE usage.billing_period (
  source_id smallint NOT NULL CONSTRAINT billing_period_source_id_fkey REFERENCES usage.source,
  ends_at timestamptz NOT NULL,
  plan_tier text,
  plan_started_at timestamptz,
  plan_ends_at timestamptz,
  -- The last time that the period was the current one.
  read_at timestamptz NOT NULL,
  CONSTRAINT billing_period_pkey PRIMARY KEY (source_id, ends_at)
);
