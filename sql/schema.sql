-- Made by `npm run schema` from the migrated database.

CREATE SEQUENCE usage.digest_epoch AS bigint;

CREATE SEQUENCE usage.fetch_number AS bigint;

CREATE TABLE usage.added_line (
  added_line_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  month_start date NOT NULL,
  line_text text NOT NULL,
  measure text,
  amount numeric(38,10) NOT NULL,
  currency text NOT NULL,
  reason text NOT NULL,
  added_by text,
  added_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT added_line_pkey PRIMARY KEY (added_line_id),
  CONSTRAINT added_line_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT added_line_amount_nonzero CHECK ((amount <> (0)::numeric)),
  CONSTRAINT added_line_measure_known CHECK ((measure = ANY (ARRAY['deployment_lcu'::text, 'deployment_lsu'::text]))),
  CONSTRAINT added_line_on_first CHECK ((EXTRACT(day FROM month_start) = (1)::numeric))
);

CREATE TABLE usage.backfill (
  backfill_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  meter text NOT NULL DEFAULT 'traces'::text,
  stride text NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  groupings text[] NOT NULL,
  workspace_ids text[] NOT NULL,
  reprocess text NOT NULL,
  state text NOT NULL DEFAULT 'running'::text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  finished_at timestamp with time zone,
  CONSTRAINT backfill_pkey PRIMARY KEY (backfill_id),
  CONSTRAINT backfill_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT backfill_finished_when CHECK (((state = ANY (ARRAY['cancelled'::text, 'done'::text])) = (finished_at IS NOT NULL))),
  CONSTRAINT backfill_meter_known CHECK ((meter = ANY (ARRAY['traces'::text, 'longlived'::text, 'shortlived'::text, 'deployments'::text, 'sandboxes'::text, 'evaluators'::text]))),
  CONSTRAINT backfill_period_order CHECK ((period_start < period_end)),
  CONSTRAINT backfill_reprocess_known CHECK ((reprocess = ANY (ARRAY['missing'::text, 'all'::text]))),
  CONSTRAINT backfill_state_known CHECK ((state = ANY (ARRAY['running'::text, 'paused'::text, 'cancelled'::text, 'done'::text])))
);

CREATE TABLE usage.became_final (
  scope_id integer NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  final_at timestamp with time zone NOT NULL,
  CONSTRAINT became_final_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT became_final_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT became_final_period_order CHECK ((period_start < period_end)),
  CONSTRAINT became_final_no_overlap EXCLUDE USING gist (int4range(scope_id, scope_id, '[]'::text) WITH &&, tstzrange(period_start, period_end) WITH &&)
);

CREATE TABLE usage.bill_part (
  source_id smallint NOT NULL,
  part text NOT NULL,
  refusal text,
  requested_at timestamp with time zone NOT NULL,
  CONSTRAINT bill_part_pkey PRIMARY KEY (source_id, part),
  CONSTRAINT bill_part_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT bill_part_known CHECK ((part = ANY (ARRAY['provider_totals'::text, 'usage_limits'::text, 'billing_period'::text, 'resource_tags'::text, 'names'::text, 'all_workspaces'::text, 'audit_log'::text, 'members'::text, 'gateway_spend'::text, 'engine_units'::text, 'engine_limit'::text])))
);

CREATE TABLE usage.billing_period (
  source_id smallint NOT NULL,
  ends_at timestamp with time zone NOT NULL,
  plan_tier text,
  plan_started_at timestamp with time zone,
  plan_ends_at timestamp with time zone,
  read_at timestamp with time zone NOT NULL,
  CONSTRAINT billing_period_pkey PRIMARY KEY (source_id, ends_at),
  CONSTRAINT billing_period_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id)
);

CREATE TABLE usage.budget (
  budget_number integer NOT NULL,
  line integer NOT NULL,
  source text,
  owner text,
  workspace text,
  project text,
  currency text,
  amount numeric(28,10) NOT NULL,
  warn_at integer[] NOT NULL,
  per text NOT NULL DEFAULT 'month'::text,
  CONSTRAINT budget_pkey PRIMARY KEY (budget_number),
  CONSTRAINT budget_amount_range CHECK ((amount > (0)::numeric)),
  CONSTRAINT budget_currency_form CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  CONSTRAINT budget_of_one CHECK ((num_nonnulls(owner, workspace, project) <= 1)),
  CONSTRAINT budget_per_known CHECK ((per = ANY (ARRAY['month'::text, 'billing_period'::text]))),
  CONSTRAINT budget_per_source CHECK (((per = 'month'::text) OR (source IS NOT NULL)))
);

CREATE TABLE usage.charge (
  source_id smallint NOT NULL,
  month_start date NOT NULL,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL,
  sku text NOT NULL,
  measure text NOT NULL,
  is_closed boolean NOT NULL,
  tier integer NOT NULL,
  price_id integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18,10) NOT NULL,
  currency text NOT NULL,
  quantity numeric NOT NULL,
  cost numeric(38,10) NOT NULL,
  is_final boolean NOT NULL,
  coverage_status text NOT NULL,
  CONSTRAINT charge_pkey PRIMARY KEY (usage_date, workspace_id, sku, tier, is_closed),
  CONSTRAINT charge_quantity_range CHECK ((quantity > (0)::numeric))
) PARTITION BY LIST (is_closed);
CREATE TABLE usage.later_charge PARTITION OF usage.charge FOR VALUES IN (true);
CREATE TABLE usage.open_charge PARTITION OF usage.charge FOR VALUES IN (false);

CREATE TABLE usage.charge_day (
  source_id smallint NOT NULL,
  month_start date NOT NULL,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL,
  sku text NOT NULL,
  measure text NOT NULL,
  is_closed boolean NOT NULL,
  currency text NOT NULL,
  quantity numeric NOT NULL,
  cost numeric(38,10) NOT NULL,
  unit_price numeric(18,10),
  quantity_now numeric NOT NULL,
  is_final boolean NOT NULL,
  coverage_status text NOT NULL,
  CONSTRAINT charge_day_pkey PRIMARY KEY (usage_date, workspace_id, sku),
  CONSTRAINT charge_day_quantity_range CHECK ((quantity > (0)::numeric))
);

CREATE TABLE usage.charge_due (
  source_id smallint,
  month_start date,
  workspace_ids integer[],
  meters text[],
  days_of_hours datemultirange,
  due_number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  CONSTRAINT charge_due_pkey PRIMARY KEY (due_number)
);

CREATE TABLE usage.close (
  close_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  period_start date NOT NULL,
  period_end date NOT NULL,
  month_start date DEFAULT 
CASE
    WHEN ((EXTRACT(day FROM period_start) = (1)::numeric) AND (period_end = ((period_start + '1 mon'::interval))::date)) THEN period_start
    ELSE NULL::date
END,
  closed_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  settle_after_seconds bigint NOT NULL,
  accepted_disagreements integer NOT NULL,
  costs_closed_at timestamp with time zone,
  CONSTRAINT close_pkey PRIMARY KEY (close_id),
  CONSTRAINT close_once UNIQUE (source_id, period_start, period_end),
  CONSTRAINT close_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT close_costs_of_month CHECK (((costs_closed_at IS NULL) OR (month_start IS NOT NULL))),
  CONSTRAINT close_order CHECK ((period_start < period_end)),
  CONSTRAINT close_settle_after_range CHECK ((settle_after_seconds >= 0))
);

CREATE TABLE usage.closed_charge (
  close_id integer NOT NULL,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL,
  sku text NOT NULL,
  measure text NOT NULL DEFAULT 'traces'::text,
  price_id integer NOT NULL,
  tier integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18,10) NOT NULL,
  currency text NOT NULL,
  quantity numeric NOT NULL,
  cost numeric(38,10) NOT NULL,
  CONSTRAINT closed_charge_pkey PRIMARY KEY (close_id, usage_date, workspace_id, sku, tier),
  CONSTRAINT closed_charge_close_id_fkey FOREIGN KEY (close_id) REFERENCES usage.close(close_id),
  CONSTRAINT closed_charge_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES usage.workspace(entity_id),
  CONSTRAINT closed_charge_quantity_range CHECK ((quantity > (0)::numeric))
);

CREATE TABLE usage.closed_correction (
  close_id integer NOT NULL,
  usage_date date NOT NULL,
  workspace_id integer NOT NULL,
  sku text NOT NULL,
  measure text NOT NULL DEFAULT 'traces'::text,
  price_id integer NOT NULL,
  tier integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18,10) NOT NULL,
  currency text NOT NULL,
  quantity numeric NOT NULL,
  cost numeric(38,10) NOT NULL,
  CONSTRAINT closed_correction_pkey PRIMARY KEY (close_id, usage_date, workspace_id, sku, currency, unit_price),
  CONSTRAINT closed_correction_close_id_fkey FOREIGN KEY (close_id) REFERENCES usage.close(close_id),
  CONSTRAINT closed_correction_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES usage.workspace(entity_id),
  CONSTRAINT closed_correction_quantity_nonzero CHECK ((quantity <> (0)::numeric))
);

CREATE TABLE usage.closed_total (
  close_id integer NOT NULL,
  series_id integer NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT closed_total_pkey PRIMARY KEY (close_id, series_id),
  CONSTRAINT closed_total_close_id_fkey FOREIGN KEY (close_id) REFERENCES usage.close(close_id),
  CONSTRAINT closed_total_series_id_fkey FOREIGN KEY (series_id) REFERENCES usage.series(series_id),
  CONSTRAINT closed_total_traces_range CHECK ((traces > 0))
);

CREATE TABLE usage.closed_workspace (
  close_id integer NOT NULL,
  workspace_id integer NOT NULL,
  is_left_out boolean NOT NULL,
  CONSTRAINT closed_workspace_pkey PRIMARY KEY (close_id, workspace_id),
  CONSTRAINT closed_workspace_close_id_fkey FOREIGN KEY (close_id) REFERENCES usage.close(close_id),
  CONSTRAINT closed_workspace_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES usage.workspace(entity_id)
);

CREATE TABLE usage.configuration_change (
  change_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  changed_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  setting text NOT NULL,
  old_value text,
  new_value text,
  CONSTRAINT configuration_change_pkey PRIMARY KEY (change_id),
  CONSTRAINT configuration_change_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id) ON DELETE CASCADE,
  CONSTRAINT configuration_change_key_unseen CHECK (((setting <> 'key'::text) OR ((old_value IS NULL) AND (new_value IS NULL)))),
  CONSTRAINT configuration_change_setting_known CHECK ((setting = ANY (ARRAY['base_url'::text, 'workspaces'::text, 'data_start'::text, 'organization'::text, 'key'::text])))
);

CREATE TABLE usage.control_check (
  source_id smallint NOT NULL,
  checked_at timestamp with time zone NOT NULL DEFAULT now(),
  failures integer NOT NULL,
  CONSTRAINT control_check_pkey PRIMARY KEY (source_id, checked_at),
  CONSTRAINT control_check_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id)
);

CREATE TABLE usage.coverage (
  scope_id integer NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  final boolean NOT NULL,
  fetch_number bigint NOT NULL,
  fetched_at timestamp with time zone NOT NULL,
  traced tstzmultirange NOT NULL,
  digest bytea,
  digest_epoch bigint,
  CONSTRAINT coverage_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT coverage_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT coverage_digest_epoch CHECK (((digest IS NULL) OR (digest_epoch IS NOT NULL))),
  CONSTRAINT coverage_period_order CHECK ((period_start < period_end)),
  CONSTRAINT coverage_traced_within CHECK ((traced <@ tstzrange(period_start, period_end))),
  CONSTRAINT coverage_no_overlap EXCLUDE USING gist (int4range(scope_id, scope_id, '[]'::text) WITH &&, tstzrange(period_start, period_end) WITH &&)
);

CREATE TABLE usage.dated_record (
  series_id integer NOT NULL,
  bucket_start date NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT dated_record_pkey PRIMARY KEY (series_id, bucket_start) INCLUDE (traces),
  CONSTRAINT dated_record_traces_range CHECK ((traces >= 0))
);

CREATE TABLE usage.day_proof (
  scope_id integer NOT NULL,
  starts date[] NOT NULL,
  reconciled_at timestamp with time zone[] NOT NULL,
  matched_at timestamp with time zone[] NOT NULL,
  proved_at timestamp with time zone[] NOT NULL,
  compared datemultirange NOT NULL,
  totalled datemultirange NOT NULL,
  differing datemultirange NOT NULL,
  CONSTRAINT day_proof_pkey PRIMARY KEY (scope_id),
  CONSTRAINT day_proof_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id) ON DELETE CASCADE,
  CONSTRAINT day_proof_alike CHECK (((cardinality(starts) = cardinality(reconciled_at)) AND (cardinality(starts) = cardinality(matched_at)) AND (cardinality(starts) = cardinality(proved_at))))
);

CREATE TABLE usage.day_state (
  scope_id integer NOT NULL,
  loaded datemultirange NOT NULL,
  final datemultirange NOT NULL,
  failed datemultirange NOT NULL,
  unverified datemultirange NOT NULL,
  traced datemultirange NOT NULL,
  CONSTRAINT day_state_pkey PRIMARY KEY (scope_id),
  CONSTRAINT day_state_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id) ON DELETE CASCADE
);

CREATE TABLE usage.difference (
  scope_id integer NOT NULL,
  compared_with text NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  external_id text NOT NULL,
  measure text NOT NULL DEFAULT 'traces'::text,
  kind text NOT NULL,
  stored_traces bigint,
  other_traces bigint,
  export_says text,
  state text NOT NULL DEFAULT 'open'::text,
  fetch_number bigint NOT NULL,
  fetched_at timestamp with time zone NOT NULL DEFAULT now(),
  found_at timestamp with time zone NOT NULL DEFAULT now(),
  closed_at timestamp with time zone,
  CONSTRAINT difference_pkey PRIMARY KEY (scope_id, compared_with, period_start, period_end, external_id, measure),
  CONSTRAINT difference_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT difference_closed_when CHECK (((state = ANY (ARRAY['repaired'::text, 'closed'::text, 'withdrawn'::text, 'not_configured'::text, 'hours_dropped'::text])) = (closed_at IS NOT NULL))),
  CONSTRAINT difference_compared_with_known CHECK ((compared_with = ANY (ARRAY['export'::text, 'stride_total'::text, 'grouping_total'::text, 'provider_total'::text, 'tier_total'::text, 'tier_exceeds'::text]))),
  CONSTRAINT difference_kind_known CHECK (
CASE compared_with
    WHEN 'export'::text THEN (kind = ANY (ARRAY['missing_in_store'::text, 'missing_in_export'::text, 'traces_differ'::text, 'name_differs'::text, 'bucket_end_differs'::text]))
    ELSE (kind = compared_with)
END),
  CONSTRAINT difference_measure_known CHECK ((measure = ANY (ARRAY['traces'::text, 'nodes_executed'::text, 'agent_runs'::text, 'agent_uptime_seconds'::text, 'lcu'::text, 'lsu'::text, 'compute_standard_units'::text, 'storage_standard_units'::text, 'spend_usd'::text, 'evaluated_traces'::text]))),
  CONSTRAINT difference_period_order CHECK ((period_start < period_end)),
  CONSTRAINT difference_says_when CHECK (((kind <> ALL (ARRAY['name_differs'::text, 'bucket_end_differs'::text])) OR (export_says IS NOT NULL))),
  CONSTRAINT difference_state_known CHECK ((state = ANY (ARRAY['open'::text, 'platform_disagrees'::text, 'unattributed'::text, 'repaired'::text, 'closed'::text, 'withdrawn'::text, 'not_configured'::text, 'hours_dropped'::text]))),
  CONSTRAINT difference_state_of_totals CHECK (
CASE compared_with
    WHEN 'export'::text THEN (state <> 'unattributed'::text)
    WHEN 'grouping_total'::text THEN (state = ANY (ARRAY['platform_disagrees'::text, 'unattributed'::text, 'closed'::text, 'not_configured'::text]))
    ELSE (state = ANY (ARRAY['platform_disagrees'::text, 'closed'::text, 'not_configured'::text]))
END)
);

CREATE TABLE usage.ended_session (
  session uuid NOT NULL,
  until timestamp with time zone NOT NULL,
  CONSTRAINT ended_session_pkey PRIMARY KEY (session)
);

CREATE TABLE usage.entity (
  entity_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  dimension text NOT NULL,
  external_id text NOT NULL,
  first_seen_at timestamp with time zone,
  last_seen_at timestamp with time zone,
  CONSTRAINT entity_pkey PRIMARY KEY (entity_id),
  CONSTRAINT entity_identity UNIQUE (source_id, dimension, external_id),
  CONSTRAINT entity_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT entity_dimension_known CHECK (((usage.dimension_position(dimension) IS NOT NULL) OR (dimension = ANY (ARRAY['deployment'::text, 'sandbox'::text, 'run_rule'::text])))),
  CONSTRAINT entity_external_id_length CHECK ((octet_length(external_id) <= 1000))
);

CREATE TABLE usage.entity_name (
  entity_id integer NOT NULL,
  fetch_number bigint NOT NULL,
  fetched_at timestamp with time zone NOT NULL,
  name text NOT NULL,
  CONSTRAINT entity_name_pkey PRIMARY KEY (entity_id, fetch_number),
  CONSTRAINT entity_name_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES usage.entity(entity_id)
);

CREATE TABLE usage.failure (
  scope_id integer NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  state text NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  attempts integer NOT NULL,
  fetch_number bigint NOT NULL,
  failed_at timestamp with time zone NOT NULL,
  retry_at timestamp with time zone NOT NULL,
  CONSTRAINT failure_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT failure_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT failure_attempts_counted CHECK ((attempts >= 1)),
  CONSTRAINT failure_period_order CHECK ((period_start < period_end)),
  CONSTRAINT failure_state_known CHECK ((state = ANY (ARRAY['failed'::text, 'unverified'::text]))),
  CONSTRAINT failure_no_overlap EXCLUDE USING gist (int4range(scope_id, scope_id, '[]'::text) WITH &&, tstzrange(period_start, period_end) WITH &&)
);

CREATE TABLE usage.fetch (
  fetch_number bigint NOT NULL DEFAULT nextval('usage.fetch_number'::regclass),
  source_id smallint NOT NULL,
  run_id integer,
  purpose text NOT NULL,
  kind text NOT NULL DEFAULT 'traces'::text,
  trace_tier text NOT NULL DEFAULT 'all'::text,
  group_by text NOT NULL,
  stride text NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  workspaces integer NOT NULL,
  fetched_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamp with time zone,
  outcome text NOT NULL DEFAULT 'running'::text,
  code text,
  status integer,
  records bigint,
  traces bigint,
  as_of_limit timestamp with time zone,
  CONSTRAINT fetch_pkey PRIMARY KEY (fetch_number),
  CONSTRAINT fetch_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT fetch_outcome_known CHECK ((outcome = ANY (ARRAY['running'::text, 'loaded'::text, 'discarded'::text, 'unconfirmed'::text, 'unverified'::text, 'refused'::text, 'failed'::text, 'compared'::text]))),
  CONSTRAINT fetch_purpose_known CHECK ((purpose = ANY (ARRAY['load'::text, 'reconcile'::text])))
);

CREATE TABLE usage.fetch_task (
  task_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  backfill_id integer,
  run_id integer,
  group_by text NOT NULL,
  stride text NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  scope_ids integer[] NOT NULL,
  workspace_ids text[] NOT NULL,
  is_idle boolean NOT NULL DEFAULT false,
  due_from timestamp with time zone,
  state text NOT NULL DEFAULT 'waiting'::text,
  generation integer NOT NULL DEFAULT 0,
  open_claims integer NOT NULL DEFAULT 0,
  leased_until timestamp with time zone,
  code text,
  message text,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  finished_at timestamp with time zone,
  CONSTRAINT fetch_task_pkey PRIMARY KEY (task_id),
  CONSTRAINT fetch_task_backfill_id_fkey FOREIGN KEY (backfill_id) REFERENCES usage.backfill(backfill_id),
  CONSTRAINT fetch_task_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT fetch_task_finished_when CHECK (((state = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text])) = (finished_at IS NOT NULL))),
  CONSTRAINT fetch_task_lease_when_queued CHECK (((state = 'queued'::text) = (leased_until IS NOT NULL))),
  CONSTRAINT fetch_task_period_order CHECK ((period_start < period_end)),
  CONSTRAINT fetch_task_state_known CHECK ((state = ANY (ARRAY['waiting'::text, 'queued'::text, 'done'::text, 'failed'::text, 'cancelled'::text])))
);

CREATE TABLE usage.hour_state (
  scope_id integer NOT NULL,
  loaded tstzmultirange NOT NULL,
  final tstzmultirange NOT NULL,
  failed tstzmultirange NOT NULL,
  unverified tstzmultirange NOT NULL,
  whole_days datemultirange NOT NULL,
  whole_final_days datemultirange NOT NULL,
  traced datemultirange NOT NULL,
  CONSTRAINT hour_state_pkey PRIMARY KEY (scope_id),
  CONSTRAINT hour_state_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id) ON DELETE CASCADE
);

CREATE TABLE usage.hourly_record (
  series_id integer NOT NULL,
  bucket_start timestamp with time zone NOT NULL,
  traces bigint NOT NULL,
  CONSTRAINT hourly_record_pkey PRIMARY KEY (series_id, bucket_start) INCLUDE (traces),
  CONSTRAINT hourly_record_traces_range CHECK ((traces >= 0))
);

CREATE TABLE usage.invoice (
  invoice_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  issuer text NOT NULL,
  number text NOT NULL,
  status text NOT NULL,
  issued_on date,
  due_on date,
  terms text,
  account text,
  purchase_order text,
  currency text NOT NULL,
  corrects_number text,
  subtotal numeric(38,10),
  total numeric(38,10) NOT NULL,
  file_name text NOT NULL,
  file_form text NOT NULL,
  file bytea NOT NULL,
  file_digest bytea NOT NULL,
  accepted_difference text,
  imported_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  imported_by text NOT NULL,
  replaced_at timestamp with time zone,
  CONSTRAINT invoice_pkey PRIMARY KEY (invoice_id),
  CONSTRAINT invoice_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT invoice_file_form_known CHECK ((file_form = ANY (ARRAY['pdf'::text, 'csv'::text, 'xlsx'::text, 'json'::text, 'focus'::text, 'text'::text]))),
  CONSTRAINT invoice_status_known CHECK ((status = ANY (ARRAY['open'::text, 'issued'::text, 'voided'::text])))
);

CREATE TABLE usage.invoice_cause (
  match_id integer NOT NULL,
  place integer NOT NULL,
  cause text NOT NULL,
  why text,
  amount numeric(38,10) NOT NULL,
  sku text,
  period_start date,
  period_end date,
  workspace text,
  quantity numeric,
  line_number integer,
  days_not_loaded integer,
  days_not_final integer,
  is_tolerated boolean NOT NULL,
  CONSTRAINT invoice_cause_pkey PRIMARY KEY (match_id, place),
  CONSTRAINT invoice_cause_match_id_fkey FOREIGN KEY (match_id) REFERENCES usage.invoice_match(match_id) ON DELETE CASCADE,
  CONSTRAINT invoice_cause_known CHECK ((cause = ANY (ARRAY['rounding'::text, 'period'::text, 'changes'::text, 'upgrades'::text, 'days_open'::text, 'unread_workspace'::text, 'counted_over'::text, 'price'::text, 'not_reported'::text, 'seat'::text, 'credit'::text, 'tax'::text, 'adjustment'::text, 'unexplained'::text]))),
  CONSTRAINT invoice_cause_why_when CHECK (((cause = 'unexplained'::text) = (why IS NOT NULL)))
);

CREATE TABLE usage.invoice_line (
  invoice_id integer NOT NULL,
  line_number integer NOT NULL,
  line_text text NOT NULL,
  is_sum boolean NOT NULL,
  part_of integer,
  kind text NOT NULL,
  quantity numeric(38,10),
  unit text,
  unit_price numeric(38,10),
  amount numeric(38,10) NOT NULL,
  period_start date,
  period_end date,
  workspace text,
  place text NOT NULL,
  source_text text NOT NULL,
  CONSTRAINT invoice_line_pkey PRIMARY KEY (invoice_id, line_number),
  CONSTRAINT invoice_line_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES usage.invoice(invoice_id) ON DELETE CASCADE,
  CONSTRAINT invoice_line_part_of_fkey FOREIGN KEY (invoice_id, part_of) REFERENCES usage.invoice_line(invoice_id, line_number),
  CONSTRAINT invoice_line_kind_known CHECK ((kind = ANY (ARRAY['usage'::text, 'seat'::text, 'commitment'::text, 'drawdown'::text, 'credit'::text, 'discount'::text, 'tax'::text, 'adjustment'::text]))),
  CONSTRAINT invoice_line_period_whole CHECK ((((period_start IS NULL) = (period_end IS NULL)) AND (period_start < period_end))),
  CONSTRAINT invoice_line_sum_is_whole CHECK ((NOT (is_sum AND (part_of IS NOT NULL))))
);

CREATE TABLE usage.invoice_match (
  match_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  invoice_id integer NOT NULL,
  inputs jsonb NOT NULL,
  inputs_digest bytea NOT NULL,
  total numeric(38,10) NOT NULL,
  bill numeric(38,10) NOT NULL,
  remainder numeric(38,10) NOT NULL,
  matched_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  confirmed_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT invoice_match_pkey PRIMARY KEY (match_id),
  CONSTRAINT invoice_match_once UNIQUE (invoice_id, inputs_digest),
  CONSTRAINT invoice_match_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES usage.invoice(invoice_id) ON DELETE CASCADE
);

CREATE TABLE usage.invoice_match_line (
  match_id integer NOT NULL,
  place integer NOT NULL,
  line_number integer,
  state text NOT NULL,
  why text,
  measure text,
  sku text,
  period_start date,
  period_end date,
  billed_start date,
  billed_end date,
  divide text,
  workspace text,
  quantity_here numeric,
  unit_price_here numeric(38,10),
  cost_here numeric(38,10),
  CONSTRAINT invoice_match_line_pkey PRIMARY KEY (match_id, place),
  CONSTRAINT invoice_match_line_match_id_fkey FOREIGN KEY (match_id) REFERENCES usage.invoice_match(match_id) ON DELETE CASCADE,
  CONSTRAINT invoice_match_line_state_known CHECK ((state = ANY (ARRAY['agrees'::text, 'within_tolerance'::text, 'quantity_differs'::text, 'price_differs'::text, 'only_on_invoice'::text, 'only_here'::text, 'not_comparable'::text]))),
  CONSTRAINT invoice_match_line_why_when CHECK (((state = 'not_comparable'::text) = (why IS NOT NULL)))
);

CREATE TABLE usage.invoice_rule (
  rule_number integer NOT NULL,
  line_text text NOT NULL,
  kind text,
  unit text,
  valid_from date,
  valid_to date,
  period text NOT NULL,
  measure text,
  sku text,
  rounding text NOT NULL,
  tolerance_amount numeric(38,10),
  tolerance_percent numeric(9,6),
  divide text,
  CONSTRAINT invoice_rule_pkey PRIMARY KEY (rule_number),
  CONSTRAINT invoice_rule_kind_known CHECK ((kind = ANY (ARRAY['usage'::text, 'seat'::text, 'commitment'::text, 'drawdown'::text, 'credit'::text, 'discount'::text, 'tax'::text, 'adjustment'::text]))),
  CONSTRAINT invoice_rule_line_text_form CHECK ((line_text ~ '\S'::text)),
  CONSTRAINT invoice_rule_period_known CHECK ((period = ANY (ARRAY['previous_month'::text, 'month_of_issue'::text]))),
  CONSTRAINT invoice_rule_rounding_known CHECK ((rounding = ANY (ARRAY['half_up'::text, 'down'::text, 'none'::text]))),
  CONSTRAINT invoice_rule_tolerance_amount_range CHECK ((tolerance_amount >= (0)::numeric)),
  CONSTRAINT invoice_rule_tolerance_percent_range CHECK ((tolerance_percent >= (0)::numeric)),
  CONSTRAINT invoice_rule_validity_order CHECK ((valid_from < valid_to))
);

CREATE TABLE usage.invoice_settlement (
  settlement_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  invoice_id integer NOT NULL,
  match_id integer NOT NULL,
  reason text,
  settled_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  settled_by text NOT NULL,
  CONSTRAINT invoice_settlement_pkey PRIMARY KEY (settlement_id),
  CONSTRAINT invoice_settlement_invoice_id_fkey FOREIGN KEY (invoice_id) REFERENCES usage.invoice(invoice_id) ON DELETE CASCADE,
  CONSTRAINT invoice_settlement_match_id_fkey FOREIGN KEY (match_id) REFERENCES usage.invoice_match(match_id) ON DELETE CASCADE,
  CONSTRAINT invoice_settlement_reason_form CHECK ((reason ~ '\S'::text))
);

CREATE TABLE usage.late_change (
  source_id smallint NOT NULL,
  observed_on date NOT NULL,
  trace_tier text NOT NULL,
  group_by text NOT NULL,
  stride text NOT NULL,
  was_final boolean NOT NULL,
  age_hours integer NOT NULL,
  changes bigint NOT NULL,
  traces_moved bigint NOT NULL,
  CONSTRAINT late_change_pkey PRIMARY KEY (source_id, trace_tier, group_by, stride, observed_on, was_final, age_hours),
  CONSTRAINT late_change_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT late_change_age_range CHECK ((age_hours > 0))
);

CREATE TABLE usage.listed_key (
  entity_id integer NOT NULL,
  last_used_at timestamp with time zone,
  expires_at timestamp with time zone,
  created_by text,
  CONSTRAINT listed_key_pkey PRIMARY KEY (entity_id),
  CONSTRAINT listed_key_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES usage.entity(entity_id) ON DELETE CASCADE
);

CREATE TABLE usage.logged_change (
  change_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  external_id text NOT NULL,
  operation text NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  workspace text,
  user_id text,
  is_certain boolean NOT NULL,
  CONSTRAINT logged_change_pkey PRIMARY KEY (change_id),
  CONSTRAINT logged_change_once UNIQUE (source_id, external_id),
  CONSTRAINT logged_change_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id)
);

CREATE TABLE usage.matched_total (
  scope_id integer NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  total_start timestamp with time zone NOT NULL,
  total_end timestamp with time zone NOT NULL,
  fetch_number bigint NOT NULL,
  matched_at timestamp with time zone NOT NULL,
  CONSTRAINT matched_total_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT matched_total_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT matched_total_period_order CHECK ((period_start < period_end)),
  CONSTRAINT matched_total_within CHECK (((period_start >= total_start) AND (period_end <= total_end))),
  CONSTRAINT matched_total_no_overlap EXCLUDE USING gist (int4range(scope_id, scope_id, '[]'::text) WITH &&, tstzrange(period_start, period_end) WITH &&)
);

CREATE TABLE usage.monthly_total (
  series_id integer NOT NULL,
  month_start date NOT NULL,
  traces bigint NOT NULL,
  records integer NOT NULL,
  CONSTRAINT monthly_total_pkey PRIMARY KEY (series_id, month_start),
  CONSTRAINT monthly_total_on_first CHECK ((EXTRACT(day FROM month_start) = (1)::numeric)),
  CONSTRAINT monthly_total_records_counted CHECK ((records > 0)),
  CONSTRAINT monthly_total_traces_range CHECK ((traces >= 0))
);

CREATE TABLE usage.notification (
  source_id smallint NOT NULL,
  route text NOT NULL,
  kind text NOT NULL,
  owner text NOT NULL,
  count bigint NOT NULL,
  newest bigint NOT NULL,
  since timestamp with time zone NOT NULL,
  notified_at timestamp with time zone,
  ended_at timestamp with time zone,
  CONSTRAINT notification_pkey PRIMARY KEY (source_id, route, kind, owner),
  CONSTRAINT notification_route_fkey FOREIGN KEY (source_id, route) REFERENCES usage.route_state(source_id, route) ON DELETE CASCADE,
  CONSTRAINT notification_ended_notified CHECK (((ended_at IS NULL) OR (notified_at IS NOT NULL))),
  CONSTRAINT notification_kind_known CHECK ((kind = ANY (ARRAY['difference'::text, 'control_total'::text, 'final_changed'::text, 'stale'::text, 'refused'::text, 'access_lost'::text, 'unpriced'::text, 'provider_total'::text, 'usage_limit'::text, 'budget'::text, 'unusual'::text, 'meter_not_known'::text, 'workspace_unloaded'::text, 'invoice_open'::text, 'invoice_missing'::text])))
);

CREATE TABLE usage.operator_action (
  action_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  source_id smallint,
  action text NOT NULL,
  detail text NOT NULL,
  actor text,
  role text NOT NULL,
  via text NOT NULL,
  outcome text NOT NULL DEFAULT 'done'::text,
  CONSTRAINT operator_action_pkey PRIMARY KEY (action_id),
  CONSTRAINT operator_action_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id) ON DELETE SET NULL,
  CONSTRAINT operator_action_action_form CHECK ((action ~ '^[a-z]+([._][a-z]+)*$'::text)),
  CONSTRAINT operator_action_detail_one_line CHECK (((detail !~ '[[:cntrl:]]'::text) AND (length(detail) <= 1000))),
  CONSTRAINT operator_action_outcome_known CHECK ((outcome = ANY (ARRAY['done'::text, 'refused'::text, 'failed'::text]))),
  CONSTRAINT operator_action_role_known CHECK ((role = ANY (ARRAY['operator'::text, 'viewer'::text]))),
  CONSTRAINT operator_action_via_known CHECK ((via = ANY (ARRAY['page'::text, 'command'::text])))
);

CREATE TABLE usage.owner_file (
  is_only boolean NOT NULL DEFAULT true,
  content text NOT NULL,
  divide_by text NOT NULL,
  applied_at timestamp with time zone NOT NULL DEFAULT now(),
  budgets_changed_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT owner_file_pkey PRIMARY KEY (is_only),
  CONSTRAINT owner_file_divide_by_known CHECK ((divide_by = ANY (ARRAY['project'::text, 'user'::text, 'api_key'::text]))),
  CONSTRAINT owner_file_one CHECK (is_only)
);

CREATE TABLE usage.owner_rule (
  rule_number integer NOT NULL,
  line integer NOT NULL,
  source text,
  workspace text,
  dimension text,
  external_id text,
  name_pattern text,
  tag_key text,
  tag_value text,
  valid daterange NOT NULL,
  CONSTRAINT owner_rule_pkey PRIMARY KEY (rule_number),
  CONSTRAINT owner_rule_about_one CHECK ((num_nonnulls(external_id, name_pattern, tag_key) <= 1)),
  CONSTRAINT owner_rule_dimension_known CHECK ((dimension = ANY (ARRAY['project'::text, 'user'::text, 'api_key'::text, 'deployment'::text, 'sandbox'::text]))),
  CONSTRAINT owner_rule_id_of_dimension CHECK (((dimension IS NULL) = (external_id IS NULL))),
  CONSTRAINT owner_rule_tag_key CHECK (((tag_value IS NULL) OR (tag_key IS NOT NULL))),
  CONSTRAINT owner_rule_validity CHECK ((NOT isempty(valid)))
);

CREATE TABLE usage.owner_share (
  rule_number integer NOT NULL,
  owner text,
  cost_center text,
  share numeric(5,4) NOT NULL,
  share_number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  CONSTRAINT owner_share_pkey PRIMARY KEY (share_number),
  CONSTRAINT owner_share_once UNIQUE NULLS NOT DISTINCT (rule_number, owner, cost_center),
  CONSTRAINT owner_share_rule_number_fkey FOREIGN KEY (rule_number) REFERENCES usage.owner_rule(rule_number) ON DELETE CASCADE,
  CONSTRAINT owner_share_range CHECK (((share > (0)::numeric) AND (share <= (1)::numeric)))
);

CREATE TABLE usage.price (
  price_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  sku_id integer NOT NULL,
  source_id smallint,
  workspace_id integer,
  unit_price numeric(18,10) NOT NULL,
  currency text NOT NULL,
  valid_from date NOT NULL,
  valid_to date,
  counted_over text NOT NULL DEFAULT 'source'::text,
  imported_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT price_pkey PRIMARY KEY (price_id),
  CONSTRAINT price_sku_id_fkey FOREIGN KEY (sku_id) REFERENCES usage.sku(sku_id),
  CONSTRAINT price_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT price_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES usage.workspace(entity_id),
  CONSTRAINT price_counted_over_known CHECK ((counted_over = ANY (ARRAY['source'::text, 'workspace'::text]))),
  CONSTRAINT price_currency_form CHECK ((currency ~ '^[A-Z]{3}$'::text)),
  CONSTRAINT price_unit_price_range CHECK ((unit_price >= (0)::numeric)),
  CONSTRAINT price_validity_order CHECK ((valid_from < valid_to)),
  CONSTRAINT price_workspace_of_source CHECK (((workspace_id IS NULL) OR (source_id IS NOT NULL))),
  CONSTRAINT price_no_overlap EXCLUDE USING gist (int4range(sku_id, sku_id, '[]'::text) WITH &&, int4range(COALESCE((source_id)::integer, 0), COALESCE((source_id)::integer, 0), '[]'::text) WITH &&, int4range(COALESCE(workspace_id, 0), COALESCE(workspace_id, 0), '[]'::text) WITH &&, daterange(valid_from, valid_to) WITH &&)
);

CREATE TABLE usage.price_tier (
  price_id integer NOT NULL,
  from_quantity bigint NOT NULL,
  unit_price numeric(18,10) NOT NULL,
  CONSTRAINT price_tier_pkey PRIMARY KEY (price_id, from_quantity),
  CONSTRAINT price_tier_price_id_fkey FOREIGN KEY (price_id) REFERENCES usage.price(price_id) ON DELETE CASCADE,
  CONSTRAINT price_tier_from_quantity_range CHECK ((from_quantity > 0)),
  CONSTRAINT price_tier_unit_price_range CHECK ((unit_price >= (0)::numeric))
);

CREATE TABLE usage.provider_total (
  source_id smallint NOT NULL,
  month_start date NOT NULL,
  metric_id text NOT NULL,
  workspace text NOT NULL,
  metric_name text,
  meter text,
  value numeric,
  outcome text NOT NULL,
  stored_traces bigint,
  fetch_number bigint NOT NULL,
  read_at timestamp with time zone NOT NULL,
  CONSTRAINT provider_total_pkey PRIMARY KEY (source_id, month_start, metric_id, workspace),
  CONSTRAINT provider_total_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT provider_total_compared_when CHECK (((outcome = ANY (ARRAY['equal'::text, 'differs'::text])) = (stored_traces IS NOT NULL))),
  CONSTRAINT provider_total_meter_known CHECK ((meter = ANY (ARRAY['traces'::text, 'longlived'::text, 'agent_runs'::text, 'nodes_executed'::text]))),
  CONSTRAINT provider_total_on_first CHECK ((EXTRACT(day FROM month_start) = (1)::numeric)),
  CONSTRAINT provider_total_outcome_known CHECK ((outcome = ANY (ARRAY['equal'::text, 'differs'::text, 'not_final'::text, 'not_loaded'::text, 'unknown_workspace'::text, 'unknown_metric'::text, 'several_metrics'::text, 'unknown_value'::text, 'other_period'::text, 'not_whole'::text, 'no_metric'::text, 'sum_of_workspaces'::text, 'not_the_sum'::text]))),
  CONSTRAINT provider_total_value_range CHECK ((value >= (0)::numeric))
);

CREATE TABLE usage.recent_naming (
  source_id smallint NOT NULL,
  fetch_number bigint NOT NULL,
  part integer NOT NULL,
  fetched_at timestamp with time zone NOT NULL,
  entity_ids integer[] NOT NULL,
  noted_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT recent_naming_pkey PRIMARY KEY (source_id, fetch_number, part),
  CONSTRAINT recent_naming_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id)
);

CREATE TABLE usage.reconciled (
  scope_id integer NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  fetch_number bigint NOT NULL,
  reconciled_at timestamp with time zone NOT NULL,
  CONSTRAINT reconciled_pkey PRIMARY KEY (scope_id, period_start),
  CONSTRAINT reconciled_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT reconciled_period_order CHECK ((period_start < period_end)),
  CONSTRAINT reconciled_no_overlap EXCLUDE USING gist (int4range(scope_id, scope_id, '[]'::text) WITH &&, tstzrange(period_start, period_end) WITH &&)
);

CREATE TABLE usage.resource_tag (
  workspace_id integer NOT NULL,
  dimension text NOT NULL,
  external_id text NOT NULL,
  tag_key text NOT NULL,
  tag_value text NOT NULL,
  valid_from date NOT NULL,
  valid_to date,
  CONSTRAINT resource_tag_pkey PRIMARY KEY (workspace_id, dimension, external_id, tag_key, valid_from),
  CONSTRAINT resource_tag_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES usage.workspace(entity_id) ON DELETE CASCADE,
  CONSTRAINT resource_tag_dimension_known CHECK ((dimension = ANY (ARRAY['project'::text, 'deployment'::text, 'sandbox'::text]))),
  CONSTRAINT resource_tag_order CHECK ((valid_to > valid_from))
);

CREATE TABLE usage.restatement (
  restatement_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  series_id integer NOT NULL,
  bucket_start timestamp with time zone NOT NULL,
  old_traces bigint,
  new_traces bigint,
  fetch_number bigint NOT NULL,
  restated_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT restatement_pkey PRIMARY KEY (restatement_id),
  CONSTRAINT restatement_once UNIQUE (series_id, bucket_start, fetch_number),
  CONSTRAINT restatement_series_id_fkey FOREIGN KEY (series_id) REFERENCES usage.series(series_id),
  CONSTRAINT restatement_is_change CHECK ((old_traces IS DISTINCT FROM new_traces))
);

CREATE TABLE usage.route (
  name text NOT NULL,
  line integer NOT NULL,
  type text NOT NULL,
  setting text NOT NULL,
  sender text,
  recipients text[] NOT NULL,
  owners text[],
  kinds text[],
  severities text[],
  CONSTRAINT route_pkey PRIMARY KEY (name),
  CONSTRAINT route_mail_ends CHECK ((((type = 'email'::text) = (sender IS NOT NULL)) AND ((type = 'email'::text) = (cardinality(recipients) > 0)))),
  CONSTRAINT route_name_form CHECK (((name ~ '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'::text) AND (length(name) <= 63) AND (name <> 'default'::text))),
  CONSTRAINT route_setting_form CHECK ((setting ~ '^USAGE_ROUTE_[A-Z0-9_]*[A-Z0-9]$'::text)),
  CONSTRAINT route_type_known CHECK ((type = ANY (ARRAY['webhook'::text, 'slack'::text, 'teams'::text, 'google_chat'::text, 'pagerduty'::text, 'email'::text])))
);

CREATE TABLE usage.route_state (
  source_id smallint NOT NULL,
  route text NOT NULL,
  claim text,
  claimed_until timestamp with time zone,
  read_at timestamp with time zone,
  failures integer NOT NULL DEFAULT 0,
  problem text,
  next_try_at timestamp with time zone,
  CONSTRAINT route_state_pkey PRIMARY KEY (source_id, route),
  CONSTRAINT route_state_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT route_state_claimed_until_when CHECK (((claim IS NULL) = (claimed_until IS NULL))),
  CONSTRAINT route_state_failures_not_negative CHECK ((failures >= 0)),
  CONSTRAINT route_state_problem_when CHECK (((failures > 0) = (problem IS NOT NULL))),
  CONSTRAINT route_state_waits_after_failure CHECK (((next_try_at IS NULL) OR (failures > 0)))
);

CREATE TABLE usage.run (
  run_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  kind text NOT NULL,
  backfill_id integer,
  started_at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  finished_at timestamp with time zone,
  seen_at timestamp with time zone,
  outcome text,
  tasks integer,
  failed integer NOT NULL DEFAULT 0,
  code text,
  message text,
  CONSTRAINT run_pkey PRIMARY KEY (run_id),
  CONSTRAINT run_backfill_id_fkey FOREIGN KEY (backfill_id) REFERENCES usage.backfill(backfill_id),
  CONSTRAINT run_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT run_finished_when CHECK (((outcome IS NULL) = (finished_at IS NULL))),
  CONSTRAINT run_kind_known CHECK ((kind = ANY (ARRAY['sync'::text, 'backfill'::text, 'reconcile'::text, 'totals'::text, 'files'::text]))),
  CONSTRAINT run_outcome_known CHECK ((outcome = ANY (ARRAY['done'::text, 'partly_failed'::text, 'differs'::text, 'failed'::text, 'skipped'::text])))
);

CREATE TABLE usage.run_rule (
  entity_id integer NOT NULL,
  evaluator_id text,
  evaluator_name text,
  project_id text,
  project_name text,
  dataset_id text,
  dataset_name text,
  weekly_limit_usd numeric(26,9),
  fetch_number bigint NOT NULL,
  CONSTRAINT run_rule_pkey PRIMARY KEY (entity_id),
  CONSTRAINT run_rule_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES usage.entity(entity_id) ON DELETE CASCADE
);

CREATE TABLE usage.scope (
  scope_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  source_id smallint NOT NULL,
  kind text NOT NULL DEFAULT 'traces'::text,
  trace_tier text NOT NULL DEFAULT 'all'::text,
  group_by text NOT NULL,
  workspace_id integer NOT NULL,
  stride text NOT NULL,
  CONSTRAINT scope_pkey PRIMARY KEY (scope_id),
  CONSTRAINT scope_identity UNIQUE (source_id, kind, trace_tier, group_by, workspace_id, stride),
  CONSTRAINT scope_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT scope_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES usage.workspace(entity_id),
  CONSTRAINT scope_group_by_known CHECK ((usage.dimension_position(group_by) IS NOT NULL)),
  CONSTRAINT scope_kind_known CHECK ((kind = ANY (ARRAY['traces'::text, 'langsmith_deployments'::text, 'sandboxes'::text, 'evaluators'::text]))),
  CONSTRAINT scope_stride_known CHECK ((stride = ANY (ARRAY['hour'::text, 'day'::text, 'week'::text, 'month'::text, 'year'::text]))),
  CONSTRAINT scope_trace_tier_known CHECK (((trace_tier = 'all'::text) OR ((kind = 'traces'::text) AND (trace_tier = ANY (ARRAY['longlived'::text, 'shortlived'::text])))))
);

CREATE TABLE usage.series (
  series_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  scope_id integer NOT NULL,
  entity_id integer NOT NULL,
  measure text NOT NULL DEFAULT 'traces'::text,
  CONSTRAINT series_pkey PRIMARY KEY (series_id),
  CONSTRAINT series_identity UNIQUE (scope_id, entity_id, measure),
  CONSTRAINT series_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES usage.entity(entity_id),
  CONSTRAINT series_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT series_measure_known CHECK ((measure = ANY (ARRAY['traces'::text, 'nodes_executed'::text, 'agent_runs'::text, 'agent_uptime_seconds'::text, 'lcu'::text, 'lsu'::text, 'compute_standard_units'::text, 'storage_standard_units'::text, 'spend_usd'::text, 'evaluated_traces'::text])))
);

CREATE TABLE usage.sku (
  sku_id integer NOT NULL GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL,
  measure text NOT NULL DEFAULT 'traces'::text,
  CONSTRAINT sku_pkey PRIMARY KEY (sku_id),
  CONSTRAINT sku_name_key UNIQUE (name),
  CONSTRAINT sku_measure_known CHECK ((measure = ANY (ARRAY['traces'::text, 'longlived'::text, 'shortlived'::text, 'nodes_executed'::text, 'agent_runs'::text, 'agent_uptime_seconds'::text, 'lcu'::text, 'lsu'::text, 'compute_standard_units'::text, 'storage_standard_units'::text]))),
  CONSTRAINT sku_name_form CHECK (((name ~ '\S'::text) AND (length(name) <= 200)))
);

CREATE TABLE usage.source (
  source_id smallint NOT NULL GENERATED ALWAYS AS IDENTITY,
  slug text NOT NULL,
  base_url text NOT NULL,
  organization_id text,
  organization_name text,
  data_start date NOT NULL,
  hourly_hours integer NOT NULL,
  workspace_ids text[] NOT NULL DEFAULT '{}'::text[],
  wanted_meters text[] NOT NULL DEFAULT '{traces,longlived,shortlived,deployments,sandboxes,evaluators}'::text[],
  configuration_digest text NOT NULL,
  key_digest text,
  refused_at timestamp with time zone,
  refused_code text,
  refused_message text,
  provider_name text,
  invoice_issuer_name text,
  history_since timestamp with time zone,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT source_pkey PRIMARY KEY (source_id),
  CONSTRAINT source_slug_key UNIQUE (slug),
  CONSTRAINT source_invoice_issuer_name_form CHECK ((invoice_issuer_name ~ '\S'::text)),
  CONSTRAINT source_provider_name_form CHECK ((provider_name ~ '\S'::text)),
  CONSTRAINT source_refusal_whole CHECK (((refused_at IS NULL) = (refused_code IS NULL))),
  CONSTRAINT source_slug_form CHECK ((slug ~ '^[a-z][a-z0-9_-]{0,62}$'::text)),
  CONSTRAINT source_wanted_meters_known CHECK ((wanted_meters <@ ARRAY['traces'::text, 'longlived'::text, 'shortlived'::text, 'deployments'::text, 'sandboxes'::text, 'evaluators'::text]))
);

CREATE TABLE usage.source_fact (
  source_id smallint NOT NULL,
  fact text NOT NULL,
  evidence text NOT NULL,
  learned_at timestamp with time zone NOT NULL DEFAULT now(),
  probe_after timestamp with time zone,
  CONSTRAINT source_fact_pkey PRIMARY KEY (source_id, fact),
  CONSTRAINT source_fact_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT source_fact_known CHECK ((fact = ANY (ARRAY['no_listing'::text, 'no_future_end'::text, 'no_hour'::text, 'no_day'::text, 'no_week'::text, 'no_month'::text, 'no_year'::text])))
);

CREATE TABLE usage.source_meter (
  source_id smallint NOT NULL,
  meter text NOT NULL,
  state text NOT NULL,
  evidence text NOT NULL,
  starts_on date,
  learned_at timestamp with time zone NOT NULL DEFAULT now(),
  none_until timestamp with time zone,
  request_again_at timestamp with time zone NOT NULL,
  CONSTRAINT source_meter_pkey PRIMARY KEY (source_id, meter),
  CONSTRAINT source_meter_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT source_meter_known CHECK ((meter = ANY (ARRAY['longlived'::text, 'shortlived'::text, 'deployments'::text, 'sandboxes'::text, 'evaluators'::text]))),
  CONSTRAINT source_meter_starts CHECK (((starts_on IS NULL) OR ((meter = 'deployments'::text) AND (state = ANY (ARRAY['counted'::text, 'not_known'::text]))))),
  CONSTRAINT source_meter_state_known CHECK ((state = ANY (ARRAY['counted'::text, 'not_counted'::text, 'nothing_yet'::text, 'not_known'::text])))
);

CREATE TABLE usage.statement_line (
  source_id smallint NOT NULL,
  taken_on date NOT NULL,
  kind text NOT NULL,
  line_id text NOT NULL,
  subject text,
  window_name text,
  month_start date NOT NULL,
  value numeric,
  remark text,
  read_at timestamp with time zone NOT NULL,
  CONSTRAINT statement_line_pkey PRIMARY KEY (source_id, taken_on, kind, line_id),
  CONSTRAINT statement_line_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT statement_line_kind_known CHECK ((kind = ANY (ARRAY['members'::text, 'gateway_spend'::text, 'engine_units'::text, 'engine_enforced_limit'::text, 'engine_limit'::text, 'fleet_limit'::text]))),
  CONSTRAINT statement_line_on_first CHECK ((EXTRACT(day FROM month_start) = (1)::numeric)),
  CONSTRAINT statement_line_value_range CHECK ((value >= (0)::numeric))
);

CREATE TABLE usage.unloaded_workspace (
  source_id smallint NOT NULL,
  month_start date NOT NULL,
  workspace text NOT NULL,
  name text,
  traces bigint NOT NULL,
  read_at timestamp with time zone NOT NULL,
  CONSTRAINT unloaded_workspace_pkey PRIMARY KEY (source_id, month_start, workspace),
  CONSTRAINT unloaded_workspace_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT unloaded_workspace_on_first CHECK ((EXTRACT(day FROM month_start) = (1)::numeric)),
  CONSTRAINT unloaded_workspace_traces_positive CHECK ((traces > 0))
);

CREATE TABLE usage.usage_limit (
  source_id smallint NOT NULL,
  workspace text NOT NULL,
  limit_type text NOT NULL,
  limit_value bigint,
  is_rejecting boolean NOT NULL,
  read_at timestamp with time zone NOT NULL,
  CONSTRAINT usage_limit_pkey PRIMARY KEY (source_id, workspace, limit_type),
  CONSTRAINT usage_limit_source_id_fkey FOREIGN KEY (source_id) REFERENCES usage.source(source_id),
  CONSTRAINT usage_limit_value_range CHECK ((limit_value >= 0))
);

CREATE TABLE usage.withdrawal (
  scope_id integer NOT NULL,
  period_start timestamp with time zone NOT NULL,
  period_end timestamp with time zone NOT NULL,
  final boolean NOT NULL,
  final_at timestamp with time zone,
  invalidated_at timestamp with time zone NOT NULL,
  CONSTRAINT withdrawal_pkey PRIMARY KEY (scope_id, period_start, invalidated_at),
  CONSTRAINT withdrawal_scope_id_fkey FOREIGN KEY (scope_id) REFERENCES usage.scope(scope_id),
  CONSTRAINT withdrawal_period_order CHECK ((period_start < period_end))
);

CREATE TABLE usage.workspace (
  entity_id integer NOT NULL,
  readable_at timestamp with time zone,
  readable_since timestamp with time zone,
  used_before timestamp with time zone,
  is_deleted boolean NOT NULL DEFAULT false,
  unlisted_since timestamp with time zone,
  tags_since date,
  CONSTRAINT workspace_pkey PRIMARY KEY (entity_id),
  CONSTRAINT workspace_entity_id_fkey FOREIGN KEY (entity_id) REFERENCES usage.entity(entity_id)
);

CREATE INDEX added_line_by_month ON usage.added_line USING btree (source_id, month_start);

CREATE INDEX charge_by_month ON ONLY usage.charge USING btree (source_id, month_start, workspace_id);

CREATE INDEX charge_day_by_month ON usage.charge_day USING btree (source_id, month_start, workspace_id);

CREATE INDEX closed_charge_by_day ON usage.closed_charge USING btree (usage_date, workspace_id);

CREATE INDEX closed_charge_by_measure ON usage.closed_charge USING btree (measure);

CREATE INDEX configuration_change_newest ON usage.configuration_change USING btree (changed_at DESC, change_id DESC);

CREATE INDEX difference_newest ON usage.difference USING btree (found_at DESC, scope_id, compared_with, period_start, period_end, external_id) WHERE (state <> 'unattributed'::text);

CREATE INDEX difference_unresolved ON usage.difference USING btree (scope_id, period_start) WHERE (state = ANY (ARRAY['open'::text, 'platform_disagrees'::text]));

CREATE INDEX fetch_of_run ON usage."fetch" USING btree (run_id) WHERE (run_id IS NOT NULL);

CREATE INDEX fetch_source_time ON usage."fetch" USING btree (source_id, fetched_at);

CREATE INDEX fetch_task_due ON usage.fetch_task USING btree (source_id, ((stride = 'hour'::text)), due_from) WHERE ((state = 'waiting'::text) AND (backfill_id IS NULL) AND (due_from IS NOT NULL));

CREATE INDEX fetch_task_in_queue ON usage.fetch_task USING btree (source_id) WHERE (state = 'queued'::text);

CREATE INDEX fetch_task_next ON usage.fetch_task USING btree (source_id, backfill_id, ((group_by <> 'workspace'::text)), ((stride = 'hour'::text)), is_idle, period_start DESC) WHERE (state = 'waiting'::text);

CREATE INDEX fetch_task_of_backfill ON usage.fetch_task USING btree (backfill_id, state) WHERE (backfill_id IS NOT NULL);

CREATE INDEX fetch_task_of_run ON usage.fetch_task USING btree (run_id) WHERE ((run_id IS NOT NULL) AND (backfill_id IS NULL));

CREATE INDEX fetch_task_oldest ON usage.fetch_task USING btree (source_id, created_at) WHERE ((state = 'waiting'::text) AND (backfill_id IS NULL));

CREATE UNIQUE INDEX fetch_task_routine_once ON usage.fetch_task USING btree (source_id, group_by, stride, period_start, period_end, scope_ids) WHERE (backfill_id IS NULL);

CREATE UNIQUE INDEX invoice_current ON usage.invoice USING btree (source_id, issuer, number) WHERE (replaced_at IS NULL);

CREATE INDEX operator_action_newest ON usage.operator_action USING btree (at DESC, action_id DESC);

CREATE INDEX operator_action_of_source ON usage.operator_action USING btree (source_id, at DESC, action_id DESC) WHERE (source_id IS NOT NULL);

CREATE INDEX recent_naming_noted_at ON usage.recent_naming USING btree (noted_at);

CREATE UNIQUE INDEX resource_tag_current ON usage.resource_tag USING btree (workspace_id, dimension, external_id, tag_key) WHERE (valid_to IS NULL);

CREATE INDEX restatement_time ON usage.restatement USING btree (restated_at);

CREATE INDEX run_of_kind ON usage.run USING btree (source_id, kind, started_at DESC, run_id DESC);

CREATE INDEX run_of_source ON usage.run USING btree (source_id, started_at);

CREATE CONSTRAINT TRIGGER charges_follow AFTER INSERT ON usage.charge_due DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION usage.recompute_due_charges();

CREATE TRIGGER configuration_changes AFTER UPDATE OF base_url, workspace_ids, data_start, organization_id, key_digest ON usage.source FOR EACH ROW WHEN ((((((old.base_url IS DISTINCT FROM new.base_url) OR (old.workspace_ids IS DISTINCT FROM new.workspace_ids)) OR (old.data_start IS DISTINCT FROM new.data_start)) OR (old.organization_id IS DISTINCT FROM new.organization_id)) OR (old.key_digest IS DISTINCT FROM new.key_digest))) EXECUTE FUNCTION usage.keep_configuration_change();

CREATE TRIGGER coverage_deleted AFTER DELETE ON usage.coverage REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();

CREATE TRIGGER coverage_inserted AFTER INSERT ON usage.coverage REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();

CREATE TRIGGER coverage_updated AFTER UPDATE ON usage.coverage REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();

CREATE TRIGGER digests_end AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON usage.dated_record FOR EACH STATEMENT WHEN ((current_setting('usage.keeps_digests'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION usage.begin_digest_epoch();

CREATE TRIGGER digests_end AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON usage.hourly_record FOR EACH STATEMENT WHEN ((current_setting('usage.keeps_digests'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION usage.begin_digest_epoch();

CREATE TRIGGER failure_deleted AFTER DELETE ON usage.failure REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();

CREATE TRIGGER failure_inserted AFTER INSERT ON usage.failure REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();

CREATE TRIGGER failure_updated AFTER UPDATE ON usage.failure REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION usage.state_follows();

-- VIEW reporting.data_freshness (
--   source_id text,
--   group_by text,
--   stride text,
--   loaded_until timestamp with time zone,
--   final_until timestamp with time zone,
--   fetched_at timestamp with time zone,
--   lag_seconds bigint
-- )

-- VIEW reporting.dim_date (
--   usage_date date,
--   iso_year integer,
--   iso_week integer,
--   iso_weekday integer,
--   month_start date,
--   year_start date,
--   day_name text,
--   day_of_month integer,
--   month_name text,
--   month_number integer,
--   days_in_month integer,
--   is_past boolean,
--   is_final boolean
-- )

-- VIEW reporting.dim_project (
--   source_id text,
--   project_id text,
--   project_name text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone,
--   workspace_count integer,
--   sole_workspace_id text,
--   sole_workspace_name text
-- )

-- VIEW reporting.dim_workspace (
--   source_id text,
--   workspace_id text,
--   workspace_name text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone,
--   is_deleted boolean,
--   unlisted_since timestamp with time zone
-- )

-- VIEW reporting.fct_cost_owner_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   owner text,
--   cost_center text,
--   sku text,
--   measure text,
--   currency text,
--   quantity numeric(30,10),
--   estimated_cost numeric(38,14),
--   is_closed boolean,
--   is_final boolean,
--   coverage_status text,
--   is_invoiced boolean
-- )

-- VIEW reporting.fct_cost_workspace_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   sku text,
--   price_id integer,
--   volume_tier integer,
--   unit_price numeric(18,10),
--   currency text,
--   traces bigint,
--   estimated_cost numeric(38,10),
--   is_closed boolean,
--   is_final boolean,
--   coverage_status text,
--   measure text,
--   quantity numeric(26,6),
--   is_invoiced boolean
-- )

-- VIEW reporting.fct_usage_api_key_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   api_key_short_key text,
--   api_key_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   longlived_traces bigint,
--   shortlived_traces bigint,
--   tiers_status text
-- )

-- VIEW reporting.fct_usage_owner_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   owner text,
--   cost_center text,
--   traces numeric(26,4),
--   is_final boolean,
--   coverage_status text
-- )

-- VIEW reporting.fct_usage_project_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   project_id text,
--   project_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   longlived_traces bigint,
--   shortlived_traces bigint,
--   tiers_status text
-- )

-- VIEW reporting.fct_usage_user_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   user_id text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   longlived_traces bigint,
--   shortlived_traces bigint,
--   tiers_status text
-- )

-- VIEW reporting.fct_usage_workspace_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   longlived_traces bigint,
--   shortlived_traces bigint,
--   tiers_status text
-- )

-- VIEW reporting.usage_bill_monthly (
--   source_id text,
--   month_start date,
--   line_number integer,
--   service text,
--   line text,
--   measure text,
--   sku text,
--   unit_price numeric(18,10),
--   currency text,
--   corrected_month date,
--   quantity numeric(38,10),
--   estimated_cost numeric(38,10),
--   days_expected integer,
--   days_loaded integer,
--   is_final boolean,
--   is_proved boolean,
--   is_closed boolean,
--   from_quantity bigint,
--   to_quantity bigint,
--   counted_over text,
--   days_proved integer,
--   days_differing integer,
--   unproved_cost numeric(38,10),
--   added_text text
-- )

-- VIEW reporting_detail.backfill_status (
--   source_id text,
--   backfill_id integer,
--   state text,
--   stride text,
--   period_start timestamp with time zone,
--   period_end timestamp with time zone,
--   done bigint,
--   failed bigint,
--   total bigint,
--   created_at timestamp with time zone,
--   finished_at timestamp with time zone,
--   meter text
-- )

-- VIEW reporting_detail.bridge_workspace (
--   source_id text,
--   group_by text,
--   dimension_id text,
--   workspace_id text,
--   workspace_name text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone
-- )

-- VIEW reporting_detail.dim_api_key (
--   source_id text,
--   api_key_short_key text,
--   api_key_name text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone,
--   workspace_count integer,
--   sole_workspace_id text,
--   sole_workspace_name text,
--   last_used_at timestamp with time zone,
--   expires_at timestamp with time zone,
--   created_by text
-- )

-- VIEW reporting_detail.dim_billing_period (
--   source_id text,
--   period_start date,
--   period_end date,
--   is_start_known boolean,
--   is_calendar_month boolean,
--   is_current boolean,
--   plan_tier text,
--   plan_started_on date,
--   plan_ends_on date,
--   ends_at timestamp with time zone,
--   read_at timestamp with time zone
-- )

-- VIEW reporting_detail.dim_name (
--   source_id text,
--   group_by text,
--   dimension_id text,
--   dimension_name text,
--   valid_from date,
--   valid_to date,
--   is_current boolean,
--   first_seen_at timestamp with time zone
-- )

-- VIEW reporting_detail.dim_price (
--   price_id integer,
--   volume_tier integer,
--   sku text,
--   unit_price numeric(18,10),
--   currency text,
--   valid_from date,
--   valid_to date,
--   source_id text,
--   workspace_id text,
--   workspace_name text,
--   from_quantity bigint,
--   to_quantity bigint,
--   counted_over text,
--   is_valid_today boolean,
--   imported_at timestamp with time zone,
--   measure text
-- )

-- VIEW reporting_detail.dim_resource (
--   source_id text,
--   group_by text,
--   dimension_id text,
--   dimension_name text,
--   evaluator_id text,
--   evaluator_name text,
--   project_id text,
--   project_name text,
--   dataset_id text,
--   dataset_name text,
--   weekly_limit_usd numeric(26,9),
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone
-- )

-- VIEW reporting_detail.dim_tag (
--   source_id text,
--   group_by text,
--   workspace_id text,
--   dimension_id text,
--   tag_key text,
--   tag_value text,
--   valid_from date,
--   valid_to date,
--   is_current boolean
-- )

-- VIEW reporting_detail.dim_user (
--   source_id text,
--   user_id text,
--   user_email text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone,
--   workspace_count integer,
--   sole_workspace_id text,
--   sole_workspace_name text
-- )

-- VIEW reporting_detail.fct_budget_daily (
--   budget_number integer,
--   line integer,
--   source_id text,
--   owner text,
--   workspace_id text,
--   project_id text,
--   currency text,
--   budget_per text,
--   budget_amount numeric(28,10),
--   budget_starts_on date,
--   budget_ends_on date,
--   usage_date date,
--   spent numeric(38,14),
--   even_pace numeric(38,10),
--   is_complete boolean,
--   is_unpriced boolean,
--   is_final boolean
-- )

-- VIEW reporting_detail.fct_close (
--   source_id text,
--   period_start date,
--   period_end date,
--   is_calendar_month boolean,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   is_left_out boolean,
--   closed_traces bigint,
--   adjustment_traces bigint,
--   current_traces bigint,
--   closed_at timestamp with time zone,
--   settle_after_seconds bigint,
--   accepted_disagreements integer
-- )

-- VIEW reporting_detail.fct_close_cost (
--   source_id text,
--   period_start date,
--   period_end date,
--   workspace_id text,
--   workspace_name text,
--   sku text,
--   measure text,
--   unit_price numeric(18,10),
--   currency text,
--   closed_quantity numeric(26,6),
--   closed_cost numeric(38,10),
--   adjustment_cost numeric(38,10),
--   current_cost numeric(38,10),
--   is_invoiced boolean,
--   closed_at timestamp with time zone
-- )

-- VIEW reporting_detail.fct_cost_by_id_daily (
--   source_id text,
--   usage_date date,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   sku text,
--   currency text,
--   traces bigint,
--   estimated_cost numeric(38,10),
--   is_closed boolean,
--   is_final boolean,
--   coverage_status text,
--   measure text,
--   quantity numeric(26,6),
--   is_invoiced boolean
-- )

-- VIEW reporting_detail.fct_invoice_line (
--   source_id text,
--   issuer text,
--   invoice_number text,
--   line_number integer,
--   status text,
--   issued_on date,
--   currency text,
--   kind text,
--   sum_text text,
--   line_text text,
--   quantity numeric(38,10),
--   unit text,
--   unit_price numeric(38,10),
--   amount numeric(38,10),
--   measure text,
--   sku text,
--   line_start date,
--   line_end date,
--   invoice_workspace text,
--   matched_workspace text,
--   state text,
--   why text,
--   quantity_here numeric(38,10),
--   unit_price_here numeric(38,10),
--   cost_here numeric(38,10)
-- )

-- VIEW reporting_detail.fct_invoice_owner (
--   source_id text,
--   issuer text,
--   invoice_number text,
--   status text,
--   issued_on date,
--   currency text,
--   owner text,
--   cost_center text,
--   line_number integer,
--   line_text text,
--   kind text,
--   amount numeric(38,10),
--   settled_at timestamp with time zone
-- )

-- VIEW reporting_detail.fct_other_usage_daily (
--   source_id text,
--   usage_date date,
--   meter text,
--   measure text,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   quantity numeric(26,9),
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone
-- )

-- VIEW reporting_detail.fct_usage_by_id_hourly (
--   source_id text,
--   usage_hour timestamp with time zone,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting_detail.fct_usage_monthly (
--   source_id text,
--   month_start date,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   days_expected integer,
--   days_loaded integer,
--   is_complete boolean,
--   is_final boolean,
--   traces_loaded bigint,
--   is_month_over boolean,
--   longlived_traces bigint,
--   shortlived_traces bigint,
--   tiers_status text
-- )

-- VIEW reporting_detail.fct_usage_workspace_hourly (
--   source_id text,
--   usage_hour timestamp with time zone,
--   workspace_id text,
--   workspace_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting_detail.focus_1_4_billing_period (
--   "BillingPeriodCreated" timestamp with time zone,
--   "BillingPeriodEnd" timestamp with time zone,
--   "BillingPeriodLastUpdated" timestamp with time zone,
--   "BillingPeriodStart" timestamp with time zone,
--   "BillingPeriodStatus" text,
--   "InvoiceIssuerName" text,
--   "x_BillingMonth" date,
--   "x_Sources" integer,
--   "x_SourcesClosed" integer
-- )

-- VIEW reporting_detail.focus_1_4_cost_and_usage (
--   "AllocatedMethodDetails" text,
--   "AllocatedMethodId" text,
--   "AllocatedResourceId" text,
--   "AllocatedResourceName" text,
--   "AllocatedTags" text,
--   "AvailabilityZone" text,
--   "BilledCost" numeric(38,10),
--   "BillingAccountId" text,
--   "BillingAccountName" text,
--   "BillingAccountType" text,
--   "BillingCurrency" text,
--   "BillingPeriodEnd" timestamp with time zone,
--   "BillingPeriodStart" timestamp with time zone,
--   "CapacityReservationId" text,
--   "CapacityReservationStatus" text,
--   "ChargeCategory" text,
--   "ChargeClass" text,
--   "ChargeDescription" text,
--   "ChargeFrequency" text,
--   "ChargePeriodEnd" timestamp with time zone,
--   "ChargePeriodStart" timestamp with time zone,
--   "CommitmentDiscountCategory" text,
--   "CommitmentDiscountId" text,
--   "CommitmentDiscountName" text,
--   "CommitmentDiscountQuantity" numeric(38,10),
--   "CommitmentDiscountStatus" text,
--   "CommitmentDiscountType" text,
--   "CommitmentDiscountUnit" text,
--   "CommitmentProgramEligibilityDetails" text,
--   "ConsumedQuantity" numeric(26,6),
--   "ConsumedUnit" text,
--   "ContractApplied" text,
--   "ContractedCost" numeric(38,10),
--   "ContractedUnitPrice" numeric(18,10),
--   "EffectiveCost" numeric(38,10),
--   "HostProviderName" text,
--   "InvoiceDetailId" text,
--   "InvoiceId" text,
--   "InvoiceIssuerName" text,
--   "ListCost" numeric(38,10),
--   "ListUnitPrice" numeric(18,10),
--   "PricingCategory" text,
--   "PricingCurrency" text,
--   "PricingCurrencyContractedUnitPrice" numeric(18,10),
--   "PricingCurrencyEffectiveCost" numeric(38,10),
--   "PricingCurrencyListUnitPrice" numeric(18,10),
--   "PricingQuantity" numeric(26,6),
--   "PricingUnit" text,
--   "RegionId" text,
--   "RegionName" text,
--   "ResourceId" text,
--   "ResourceName" text,
--   "ResourceType" text,
--   "ServiceCategory" text,
--   "ServiceName" text,
--   "ServiceProviderName" text,
--   "ServiceSubcategory" text,
--   "SkuId" text,
--   "SkuMeter" text,
--   "SkuPriceDetails" text,
--   "SkuPriceId" text,
--   "SubAccountId" text,
--   "SubAccountName" text,
--   "SubAccountType" text,
--   "Tags" text,
--   "x_SourceId" text,
--   "x_UsageDate" date,
--   "x_BillingMonth" date,
--   "x_IsFinal" boolean,
--   "x_CoverageStatus" text
-- )

-- VIEW reporting_detail.focus_1_4_cost_and_usage_by_resource (
--   "AllocatedMethodDetails" text,
--   "AllocatedMethodId" text,
--   "AllocatedResourceId" text,
--   "AllocatedResourceName" text,
--   "AllocatedTags" text,
--   "AvailabilityZone" text,
--   "BilledCost" numeric(38,14),
--   "BillingAccountId" text,
--   "BillingAccountName" text,
--   "BillingAccountType" text,
--   "BillingCurrency" text,
--   "BillingPeriodEnd" timestamp with time zone,
--   "BillingPeriodStart" timestamp with time zone,
--   "CapacityReservationId" text,
--   "CapacityReservationStatus" text,
--   "ChargeCategory" text,
--   "ChargeClass" text,
--   "ChargeDescription" text,
--   "ChargeFrequency" text,
--   "ChargePeriodEnd" timestamp with time zone,
--   "ChargePeriodStart" timestamp with time zone,
--   "CommitmentDiscountCategory" text,
--   "CommitmentDiscountId" text,
--   "CommitmentDiscountName" text,
--   "CommitmentDiscountQuantity" numeric(38,10),
--   "CommitmentDiscountStatus" text,
--   "CommitmentDiscountType" text,
--   "CommitmentDiscountUnit" text,
--   "CommitmentProgramEligibilityDetails" text,
--   "ConsumedQuantity" numeric(26,6),
--   "ConsumedUnit" text,
--   "ContractApplied" text,
--   "ContractedCost" numeric(38,14),
--   "ContractedUnitPrice" numeric(18,10),
--   "EffectiveCost" numeric(38,14),
--   "HostProviderName" text,
--   "InvoiceDetailId" text,
--   "InvoiceId" text,
--   "InvoiceIssuerName" text,
--   "ListCost" numeric(38,14),
--   "ListUnitPrice" numeric(18,10),
--   "PricingCategory" text,
--   "PricingCurrency" text,
--   "PricingCurrencyContractedUnitPrice" numeric(18,10),
--   "PricingCurrencyEffectiveCost" numeric(38,14),
--   "PricingCurrencyListUnitPrice" numeric(18,10),
--   "PricingQuantity" numeric(26,6),
--   "PricingUnit" text,
--   "RegionId" text,
--   "RegionName" text,
--   "ResourceId" text,
--   "ResourceName" text,
--   "ResourceType" text,
--   "ServiceCategory" text,
--   "ServiceName" text,
--   "ServiceProviderName" text,
--   "ServiceSubcategory" text,
--   "SkuId" text,
--   "SkuMeter" text,
--   "SkuPriceDetails" text,
--   "SkuPriceId" text,
--   "SubAccountId" text,
--   "SubAccountName" text,
--   "SubAccountType" text,
--   "Tags" text,
--   "x_SourceId" text,
--   "x_UsageDate" date,
--   "x_BillingMonth" date,
--   "x_IsFinal" boolean,
--   "x_CoverageStatus" text
-- )

-- VIEW reporting_detail.focus_1_4_invoice_detail (
--   "BilledCost" numeric(38,10),
--   "BillingAccountId" text,
--   "BillingCurrency" text,
--   "BillingPeriodEnd" timestamp with time zone,
--   "BillingPeriodStart" timestamp with time zone,
--   "ChargeCategory" text,
--   "InvoiceDetailCreated" timestamp with time zone,
--   "InvoiceDetailDescription" text,
--   "InvoiceDetailGrain" text,
--   "InvoiceDetailId" text,
--   "InvoiceDetailLastUpdated" timestamp with time zone,
--   "InvoiceId" text,
--   "InvoiceIssueDate" timestamp with time zone,
--   "InvoiceIssueStatus" text,
--   "InvoiceIssuerName" text,
--   "PaymentCurrency" text,
--   "PaymentCurrencyBilledCost" numeric(38,10),
--   "PaymentCurrencyInvoiceDetailId" text,
--   "PaymentDueDate" timestamp with time zone,
--   "PaymentTerms" text,
--   "PurchaseOrderNumber" text,
--   "ReferenceInvoiceId" text,
--   "x_SourceId" text
-- )

-- VIEW reporting_detail.invoice_comparison (
--   source_id text,
--   issuer text,
--   invoice_number text,
--   cause_number integer,
--   status text,
--   issued_on date,
--   currency text,
--   invoice_total numeric(38,10),
--   bill_total numeric(38,10),
--   difference numeric(38,10),
--   cause text,
--   why text,
--   amount numeric(38,10),
--   sku text,
--   cause_start date,
--   cause_end date,
--   cause_workspace text,
--   quantity numeric(38,10),
--   line_number integer,
--   settled_at timestamp with time zone,
--   settlement_reason text
-- )

-- VIEW reporting_detail.owner_assignment (
--   source_id text,
--   workspace_id text,
--   group_by text,
--   dimension_id text,
--   valid_from date,
--   valid_to date,
--   owner text,
--   cost_center text,
--   share numeric(5,4),
--   rule_number integer,
--   line integer
-- )

-- VIEW reporting_detail.provider_statement_line (
--   source_id text,
--   taken_on date,
--   kind text,
--   line_id text,
--   name text,
--   subject text,
--   window_name text,
--   month_start date,
--   value numeric(36,18),
--   unit text,
--   remark text,
--   endpoint text,
--   does_not_say text,
--   is_newest boolean,
--   read_at timestamp with time zone
-- )

-- VIEW reporting_detail.usage_coverage_by_kind_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   group_by text,
--   kind text,
--   trace_tier text,
--   status text,
--   fetched_at timestamp with time zone,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone
-- )

-- VIEW reporting_detail.usage_coverage_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   group_by text,
--   stride text,
--   status text,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   fetched_at timestamp with time zone,
--   sum_confirmed_at timestamp with time zone
-- )

-- VIEW reporting_detail.usage_late_change (
--   source_id text,
--   observed_on date,
--   trace_tier text,
--   group_by text,
--   stride text,
--   was_final boolean,
--   age_hours integer,
--   changes bigint,
--   traces_moved bigint
-- )

-- VIEW reporting_detail.usage_limit (
--   source_id text,
--   workspace_id text,
--   workspace_name text,
--   limit_type text,
--   limit_value bigint,
--   is_rejecting boolean,
--   month_start date,
--   traces_loaded bigint,
--   is_complete boolean,
--   days_final integer,
--   final_traces bigint,
--   used_percent numeric(9,2),
--   reached_on date,
--   read_at timestamp with time zone,
--   workspaces_not_loaded integer,
--   traces_not_loaded bigint
-- )

-- VIEW reporting_detail.usage_month_to_date (
--   source_id text,
--   workspace_id text,
--   workspace_name text,
--   month_start date,
--   days_in_month integer,
--   days_ended integer,
--   days_final integer,
--   days_provisional integer,
--   traces bigint,
--   final_traces bigint,
--   provisional_traces bigint,
--   ended_traces bigint,
--   days_compared integer,
--   previous_same_days_traces bigint,
--   previous_month_traces bigint,
--   run_rate_traces bigint
-- )

-- VIEW reporting_detail.usage_provider_total (
--   source_id text,
--   month_start date,
--   metric_id text,
--   workspace_id text,
--   metric_name text,
--   meter text,
--   provider_traces numeric(38,6),
--   stored_traces bigint,
--   outcome text,
--   read_at timestamp with time zone
-- )

-- VIEW reporting_detail.usage_reconciliation (
--   source_id text,
--   usage_kind text,
--   trace_tier text,
--   measure text,
--   group_by text,
--   stride text,
--   period_start timestamp with time zone,
--   period_end timestamp with time zone,
--   workspace_id text,
--   dimension_id text,
--   stored_amount numeric(26,9),
--   other_amount numeric(26,9),
--   kind text,
--   state text,
--   found_at timestamp with time zone,
--   export_says text
-- )

-- VIEW reporting_detail.usage_record (
--   source_id text,
--   group_by text,
--   stride text,
--   period_start timestamp with time zone,
--   period_end timestamp with time zone,
--   workspace_id text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   is_final boolean,
--   fetched_at timestamp with time zone
-- )

-- VIEW reporting_detail.usage_restatement (
--   source_id text,
--   usage_kind text,
--   trace_tier text,
--   measure text,
--   group_by text,
--   stride text,
--   period_start timestamp with time zone,
--   workspace_id text,
--   dimension_id text,
--   old_amount numeric(26,9),
--   new_amount numeric(26,9),
--   restated_at timestamp with time zone
-- )

-- VIEW reporting_detail.usage_unattributed_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   group_by text,
--   workspace_traces bigint,
--   attributed_traces bigint,
--   unattributed_traces bigint,
--   is_final boolean
-- )

-- VIEW reporting_detail.usage_unpriced_daily (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   traces bigint,
--   has_other_price boolean,
--   unpriced_skus text,
--   is_final boolean,
--   coverage_status text
-- )

-- VIEW reporting_detail.usage_upgrade_project_monthly (
--   source_id text,
--   month_start date,
--   workspace_id text,
--   workspace_name text,
--   project_id text,
--   project_name text,
--   traces bigint,
--   longlived_traces bigint,
--   longlived_share numeric(7,6),
--   previous_longlived_traces bigint,
--   previous_longlived_share numeric(7,6),
--   longlived_change bigint,
--   longlived_share_change numeric(7,6),
--   upgraded_when_final bigint,
--   is_final boolean,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone
-- )

-- VIEW usage.bill_cell (
--   source_id smallint,
--   workspace_entity_id integer,
--   meter text,
--   expected datemultirange,
--   loaded datemultirange,
--   final datemultirange,
--   proved datemultirange,
--   differing datemultirange
-- )

-- VIEW usage.billed_charge (
--   source_id smallint,
--   usage_date date,
--   billing_month date,
--   is_correction boolean,
--   workspace_entity_id integer,
--   sku text,
--   price_id integer,
--   tier integer,
--   from_quantity bigint,
--   unit_price numeric(18,10),
--   currency text,
--   quantity numeric,
--   cost numeric,
--   is_final boolean,
--   coverage_status text,
--   measure text
-- )

-- VIEW usage.booked_charge (
--   usage_date date,
--   workspace_id integer,
--   sku text,
--   measure text,
--   is_closed boolean,
--   tier integer,
--   price_id integer,
--   unit_price numeric(18,10),
--   currency text,
--   quantity numeric,
--   cost numeric(38,10),
--   is_final boolean,
--   coverage_status text
-- )

-- VIEW usage.cell (
--   meter text,
--   kind text,
--   trace_tier text,
--   day_scope_id integer,
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   data_start date,
--   begins_on date,
--   hourly_hours integer,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   has_no_days boolean,
--   has_no_hours boolean,
--   expected_days datemultirange
-- )

-- VIEW usage.charged_day (
--   source_id smallint,
--   month_start date,
--   usage_date date,
--   workspace_id integer,
--   measure text
-- )

-- VIEW usage.charged_month (
--   close_id integer,
--   source_id smallint,
--   month_start date,
--   workspace_entity_id integer,
--   days daterange
-- )

-- VIEW usage.closed_period (
--   close_id integer,
--   source_id smallint,
--   month_start date,
--   closed_at timestamp with time zone,
--   corrected_in date
-- )

-- VIEW usage.compared_invoice (
--   invoice_id integer,
--   source_id smallint,
--   issuer text,
--   number text,
--   status text,
--   issued_on date,
--   due_on date,
--   terms text,
--   account text,
--   purchase_order text,
--   currency text,
--   corrects_number text,
--   total numeric(38,10),
--   imported_at timestamp with time zone,
--   slug text,
--   match_id integer,
--   bill numeric(38,10),
--   remainder numeric(38,10),
--   settled_at timestamp with time zone,
--   reason text
-- )

-- VIEW usage.coverage_cell (
--   source_id smallint,
--   slug text,
--   meter text,
--   stride text,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   day_scope_id integer,
--   hour_scope_id integer,
--   loaded datemultirange,
--   days_of_hours datemultirange,
--   not_available datemultirange,
--   failed datemultirange,
--   missing datemultirange,
--   unverified datemultirange,
--   provisional datemultirange,
--   final datemultirange,
--   traced datemultirange,
--   reconciled datemultirange,
--   matched datemultirange
-- )

-- VIEW usage.daily_row (
--   slug text,
--   group_by text,
--   usage_date date,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   fetched_at timestamp with time zone,
--   status text,
--   reconciled_at timestamp with time zone,
--   matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   entity_id integer
-- )

-- VIEW usage.day_cell (
--   meter text,
--   kind text,
--   trace_tier text,
--   day_scope_id integer,
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   data_start date,
--   begins_on date,
--   hourly_hours integer,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   expected_days datemultirange,
--   expected datemultirange,
--   loaded datemultirange,
--   final datemultirange,
--   not_available datemultirange,
--   failed datemultirange,
--   unverified datemultirange,
--   missing datemultirange,
--   traced datemultirange,
--   stored_failed datemultirange,
--   stored_unverified datemultirange
-- )

-- VIEW usage.divided_charge (
--   source_id smallint,
--   usage_date date,
--   billing_month date,
--   is_correction boolean,
--   workspace_entity_id integer,
--   sku text,
--   price_id integer,
--   tier integer,
--   from_quantity bigint,
--   unit_price numeric(18,10),
--   currency text,
--   quantity numeric,
--   cost numeric(38,14),
--   is_final boolean,
--   coverage_status text,
--   measure text,
--   dimension text,
--   dimension_id text,
--   dimension_name text,
--   owner text,
--   owner_tags jsonb,
--   share numeric,
--   tags text
-- )

-- VIEW usage.divided_cost (
--   slug text,
--   group_by text,
--   usage_date date,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   entity_id integer,
--   dimension_id text,
--   dimension_name text,
--   sku text,
--   meter text,
--   measure text,
--   currency text,
--   quantity numeric,
--   cost numeric(38,10),
--   is_closed boolean,
--   is_final boolean,
--   coverage_status text
-- )

-- VIEW usage.divided_traces (
--   group_by text,
--   slug text,
--   usage_date date,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   entity_id integer,
--   dimension text,
--   dimension_id text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   dimension_name text
-- )

-- VIEW usage.entity_with_usage (
--   dimension text,
--   slug text,
--   dimension_id text,
--   dimension_name text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone,
--   workspace_count integer,
--   sole_workspace_id text,
--   sole_workspace_name text,
--   entity_id integer
-- )

-- VIEW usage.expected_day (
--   slug text,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   usage_date date,
--   loaded boolean,
--   fetched_at timestamp with time zone,
--   status text,
--   has_traces boolean,
--   by_hours boolean,
--   day_series integer[],
--   hour_series integer[],
--   reconciled_at timestamp with time zone,
--   matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   workspace_entity_id integer,
--   day_scope_id integer
-- )

-- VIEW usage.fetched (
--   scope_id integer,
--   hours timestamp with time zone[],
--   days date[],
--   fetched_at timestamp with time zone[]
-- )

-- VIEW usage.figure_days (
--   meter text,
--   trace_tier text,
--   scope_id integer,
--   trace_scope_id integer,
--   slug text,
--   source_id smallint,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   expected datemultirange,
--   loaded datemultirange,
--   final datemultirange,
--   not_available datemultirange,
--   failed datemultirange,
--   unverified datemultirange,
--   missing datemultirange,
--   starts date[],
--   fetched_at timestamp with time zone[]
-- )

-- VIEW usage.figure_of_hours (
--   day_scope_id integer,
--   entity_id integer,
--   usage_date date,
--   traces bigint,
--   status text,
--   fetched_at timestamp with time zone,
--   slug text,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text
-- )

-- VIEW usage.focus_billed_charge (
--   source_id smallint,
--   usage_date date,
--   billing_month date,
--   is_correction boolean,
--   workspace_entity_id integer,
--   sku text,
--   price_id integer,
--   tier integer,
--   from_quantity bigint,
--   unit_price numeric(18,10),
--   currency text,
--   quantity numeric,
--   cost numeric,
--   is_final boolean,
--   coverage_status text,
--   measure text
-- )

-- VIEW usage.focus_charge (
--   "AllocatedMethodDetails" text,
--   "AllocatedMethodId" text,
--   "AllocatedResourceId" text,
--   "AllocatedResourceName" text,
--   "AllocatedTags" text,
--   "AvailabilityZone" text,
--   "BilledCost" numeric,
--   "BillingAccountId" text,
--   "BillingAccountName" text,
--   "BillingAccountType" text,
--   "BillingCurrency" text,
--   "BillingPeriodEnd" timestamp with time zone,
--   "BillingPeriodStart" timestamp with time zone,
--   "CapacityReservationId" text,
--   "CapacityReservationStatus" text,
--   "ChargeCategory" text,
--   "ChargeClass" text,
--   "ChargeDescription" text,
--   "ChargeFrequency" text,
--   "ChargePeriodEnd" timestamp with time zone,
--   "ChargePeriodStart" timestamp with time zone,
--   "CommitmentDiscountCategory" text,
--   "CommitmentDiscountId" text,
--   "CommitmentDiscountName" text,
--   "CommitmentDiscountQuantity" numeric(38,10),
--   "CommitmentDiscountStatus" text,
--   "CommitmentDiscountType" text,
--   "CommitmentDiscountUnit" text,
--   "CommitmentProgramEligibilityDetails" text,
--   "ConsumedQuantity" numeric(26,6),
--   "ConsumedUnit" text,
--   "ContractApplied" text,
--   "ContractedCost" numeric,
--   "ContractedUnitPrice" numeric(18,10),
--   "EffectiveCost" numeric,
--   "HostProviderName" text,
--   "InvoiceDetailId" text,
--   "InvoiceId" text,
--   "InvoiceIssuerName" text,
--   "ListCost" numeric,
--   "ListUnitPrice" numeric(18,10),
--   "PricingCategory" text,
--   "PricingCurrency" text,
--   "PricingCurrencyContractedUnitPrice" numeric(18,10),
--   "PricingCurrencyEffectiveCost" numeric,
--   "PricingCurrencyListUnitPrice" numeric(18,10),
--   "PricingQuantity" numeric(26,6),
--   "PricingUnit" text,
--   "RegionId" text,
--   "RegionName" text,
--   "ResourceId" text,
--   "ResourceName" text,
--   "ResourceType" text,
--   "ServiceCategory" text,
--   "ServiceName" text,
--   "ServiceProviderName" text,
--   "ServiceSubcategory" text,
--   "SkuId" text,
--   "SkuMeter" text,
--   "SkuPriceDetails" text,
--   "SkuPriceId" text,
--   "SubAccountId" text,
--   "SubAccountName" text,
--   "SubAccountType" text,
--   "Tags" text,
--   "x_SourceId" text,
--   "x_UsageDate" date,
--   "x_BillingMonth" date,
--   "x_IsFinal" boolean,
--   "x_CoverageStatus" text,
--   is_divided boolean
-- )

-- VIEW usage.hour_cell (
--   day_scope_id integer,
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   data_start date,
--   hourly_hours integer,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   loaded tstzmultirange,
--   final tstzmultirange,
--   expected tstzmultirange,
--   shown tstzmultirange,
--   not_available tstzmultirange,
--   failed tstzmultirange,
--   unverified tstzmultirange,
--   missing tstzmultirange,
--   traced datemultirange
-- )

-- VIEW usage.hour_cell_by_day (
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   loaded datemultirange,
--   expected datemultirange,
--   final datemultirange,
--   not_available datemultirange,
--   failed datemultirange,
--   missing datemultirange,
--   unverified datemultirange,
--   traced datemultirange,
--   reconciled datemultirange,
--   proof_starts timestamp with time zone[],
--   reconciled_at timestamp with time zone[]
-- )

-- VIEW usage.hour_proof (
--   scope_id integer,
--   parts tstzmultirange,
--   starts timestamp with time zone[],
--   reconciled_at timestamp with time zone[]
-- )

-- VIEW usage.invoice_workspace (
--   source_id smallint,
--   workspace text,
--   name text
-- )

-- VIEW usage.kept_meter (
--   source_id smallint,
--   meter text,
--   starts_on date,
--   is_known boolean
-- )

-- VIEW usage.labelled_entity (
--   entity_id integer,
--   source_id smallint,
--   dimension text,
--   first_seen_at timestamp with time zone,
--   last_seen_at timestamp with time zone,
--   dimension_name text,
--   dimension_id text,
--   external_id text
-- )

-- VIEW usage.lost_workspace (
--   source_id smallint,
--   workspace_id integer,
--   external_id text,
--   zeros integer,
--   days datemultirange,
--   lost_at timestamp with time zone,
--   is_unread boolean,
--   is_unlisted boolean
-- )

-- VIEW usage.measure (
--   measure text,
--   meter text,
--   service text,
--   name text,
--   unit text,
--   digits integer,
--   is_reported boolean
-- )

-- VIEW usage.measured_day (
--   slug text,
--   usage_date date,
--   meter text,
--   measure text,
--   workspace_id text,
--   workspace_name text,
--   quantity numeric,
--   status text,
--   fetched_at timestamp with time zone,
--   reconciled_at timestamp with time zone,
--   matched_at timestamp with time zone,
--   proved_at timestamp with time zone
-- )

-- VIEW usage.measured_price (
--   source_id smallint,
--   slug text,
--   workspace_entity_id integer,
--   workspace_id text,
--   price_id integer,
--   sku_id integer,
--   sku text,
--   unit_price numeric(18,10),
--   currency text,
--   counted_over text,
--   price_source_id smallint,
--   price_workspace_id integer,
--   days datemultirange,
--   is_tiered boolean,
--   measure text
-- )

-- VIEW usage.meter_dimension (
--   meter text,
--   kind text,
--   trace_tier text,
--   group_by text,
--   dimension text
-- )

-- VIEW usage.month_state (
--   day_scope_id integer,
--   slug text,
--   group_by text,
--   workspace_id text,
--   workspace_name text,
--   month_start date,
--   days_expected integer,
--   days_loaded integer,
--   is_final boolean,
--   by_hours boolean,
--   workspace_entity_id integer
-- )

-- VIEW usage.monthly_row (
--   slug text,
--   group_by text,
--   month_start date,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   days_expected integer,
--   days_loaded integer,
--   is_final boolean,
--   traces_loaded bigint,
--   workspace_entity_id integer,
--   entity_id integer
-- )

-- VIEW usage.name_in_time (
--   entity_id integer,
--   name text,
--   fetched_at timestamp with time zone,
--   days daterange
-- )

-- VIEW usage.open_days (
--   source_id smallint,
--   workspace_id integer,
--   group_by text,
--   meter text,
--   scope_id integer,
--   not_available datemultirange,
--   not_known datemultirange,
--   missing datemultirange,
--   failed datemultirange,
--   unverified datemultirange,
--   provisional datemultirange,
--   open datemultirange,
--   not_reconciled datemultirange,
--   platform_disagrees datemultirange,
--   total_differs datemultirange,
--   tiers_differ datemultirange,
--   provider_differs datemultirange
-- )

-- VIEW usage.owned_cost (
--   slug text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   dimension text,
--   dimension_id text,
--   dimension_name text,
--   owner text,
--   cost_center text,
--   rule_number integer,
--   sku text,
--   measure text,
--   currency text,
--   share numeric,
--   quantity numeric,
--   cost numeric,
--   is_closed boolean,
--   is_final boolean,
--   coverage_status text,
--   entity_id integer
-- )

-- VIEW usage.owned_days (
--   slug text,
--   workspace_id text,
--   dimension text,
--   dimension_id text,
--   days datemultirange,
--   rule_number integer,
--   owner text,
--   cost_center text,
--   share numeric(5,4),
--   workspace_entity_id integer,
--   entity_id integer
-- )

-- VIEW usage.owned_dimension (
--   dimension text
-- )

-- VIEW usage.owned_usage (
--   slug text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   dimension text,
--   dimension_id text,
--   dimension_name text,
--   owner text,
--   cost_center text,
--   rule_number integer,
--   traces numeric,
--   is_final boolean,
--   coverage_status text
-- )

-- VIEW usage.priced_meter (
--   meter text
-- )

-- VIEW usage.priced_usage (
--   group_by text,
--   workspace_entity_id integer,
--   meter text,
--   measure text,
--   usage_date date,
--   entity_id integer,
--   dimension_id text,
--   quantity numeric,
--   status text
-- )

-- VIEW usage.provider (
--   source_id smallint,
--   slug text,
--   account_id text,
--   account_name text,
--   provider_name text,
--   invoice_issuer_name text,
--   data_start date,
--   created_at timestamp with time zone
-- )

-- VIEW usage.required_workspace (
--   workspace_id integer,
--   days datemultirange
-- )

-- VIEW usage.settled_usage (
--   source_id smallint,
--   currency text,
--   month_start date,
--   sku text,
--   workspace text,
--   number text
-- )

-- VIEW usage.shown_workspace (
--   entity_id integer,
--   slug text,
--   workspace_id text,
--   workspace_name text,
--   source_id smallint
-- )

-- VIEW usage.tier_cell (
--   place integer,
--   workspace_entity_id integer,
--   longlived_scope_id integer,
--   loaded datemultirange,
--   final datemultirange,
--   not_available datemultirange,
--   failed datemultirange,
--   missing datemultirange,
--   unverified datemultirange
-- )

-- VIEW usage.tiered_cell (
--   day_scope_id integer,
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   data_start date,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   expected_days datemultirange,
--   expected datemultirange,
--   own_days datemultirange,
--   days_of_hours datemultirange,
--   loaded datemultirange,
--   final datemultirange,
--   not_available datemultirange,
--   failed datemultirange,
--   unverified datemultirange,
--   missing datemultirange,
--   traced datemultirange,
--   longlived_scope_id integer,
--   tiers_begin_on date,
--   tiers_expected datemultirange,
--   tiers_loaded datemultirange,
--   tiers_final datemultirange,
--   tiers_not_available datemultirange,
--   tiers_failed datemultirange,
--   tiers_missing datemultirange,
--   tiers_unverified datemultirange
-- )

-- VIEW usage.tiered_row (
--   slug text,
--   group_by text,
--   usage_date date,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   dimension_id text,
--   dimension_name text,
--   traces bigint,
--   fetched_at timestamp with time zone,
--   status text,
--   reconciled_at timestamp with time zone,
--   matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   entity_id integer,
--   longlived_traces bigint,
--   shortlived_traces bigint,
--   tiers_status text
-- )

-- VIEW usage.tiers_month (
--   source_id smallint,
--   slug text,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   month_start date,
--   day_scope_id integer,
--   longlived_scope_id integer,
--   is_complete boolean,
--   status text
-- )

-- VIEW usage.trace_cell (
--   day_scope_id integer,
--   hour_scope_id integer,
--   source_id smallint,
--   slug text,
--   data_start date,
--   group_by text,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   expected_days datemultirange,
--   expected datemultirange,
--   own_days datemultirange,
--   days_of_hours datemultirange,
--   loaded datemultirange,
--   final datemultirange,
--   not_available datemultirange,
--   failed datemultirange,
--   unverified datemultirange,
--   missing datemultirange,
--   traced datemultirange
-- )

-- VIEW usage.trace_scope (
--   scope_id integer,
--   source_id smallint,
--   kind text,
--   trace_tier text,
--   group_by text,
--   workspace_id integer,
--   stride text
-- )

-- VIEW usage.unknown_meter (
--   source_id smallint,
--   meter text,
--   evidence text,
--   since timestamp with time zone,
--   unknown_from date
-- )

-- VIEW usage.unknown_unit (
--   scope_id integer,
--   entity_id integer,
--   measure text,
--   usage_date date
-- )

-- VIEW usage.unpriced_day (
--   source_id text,
--   usage_date date,
--   workspace_id text,
--   workspace_name text,
--   traces bigint,
--   has_other_price boolean,
--   unpriced_skus text,
--   is_final boolean,
--   coverage_status text
-- )

-- VIEW usage.usage_month (
--   source_id smallint,
--   month_start date
-- )

-- VIEW usage.volume_tier (
--   price_id integer,
--   tier integer,
--   from_quantity bigint,
--   to_quantity bigint,
--   unit_price numeric(18,10)
-- )

-- VIEW usage.workspace_day (
--   slug text,
--   usage_date date,
--   workspace_entity_id integer,
--   workspace_id text,
--   workspace_name text,
--   traces bigint,
--   is_final boolean,
--   coverage_status text,
--   fetched_at timestamp with time zone,
--   is_reconciled boolean,
--   reconciled_at timestamp with time zone,
--   totals_matched_at timestamp with time zone,
--   proved_at timestamp with time zone,
--   group_by text
-- )

-- FUNCTION reporting_detail.usage_daily_as_of(as_of timestamp with time zone, grouping_wanted text DEFAULT NULL::text) RETURNS TABLE(source_id text, usage_date date, group_by text, workspace_id text, workspace_name text, dimension_id text, dimension_name text, traces bigint, final_at timestamp with time zone)

-- FUNCTION usage.amount_of(measure text, stored numeric) RETURNS numeric

-- FUNCTION usage.as_of_limit() RETURNS timestamp with time zone

-- FUNCTION usage.begin_digest_epoch() RETURNS trigger

-- FUNCTION usage.charge_days_of(source smallint, month date, workspaces integer[], meters text[]) RETURNS SETOF usage.charge_day

-- FUNCTION usage.charges_due(source smallint, month date) RETURNS void

-- FUNCTION usage.charges_of(source smallint, month date, workspaces integer[], meters text[]) RETURNS SETOF usage.charge

-- FUNCTION usage.comment_columns(IN views regclass[], VARIADIC own text[] DEFAULT '{}'::text[]) RETURNS 

-- FUNCTION usage.count_days(parts datemultirange) RETURNS integer

-- FUNCTION usage.daily_as_of(as_of timestamp with time zone, grouping_wanted text) RETURNS TABLE(scope_id integer, entity_id integer, usage_date date, traces bigint, final_at timestamp with time zone)

-- FUNCTION usage.days_between(first date, last date) RETURNS SETOF date

-- FUNCTION usage.days_made_of_hours(whole_days datemultirange, loaded datemultirange, unverified datemultirange) RETURNS datemultirange

-- FUNCTION usage.days_of_parts(parts tstzmultirange) RETURNS datemultirange

-- FUNCTION usage.days_of(parts datemultirange) RETURNS SETOF date

-- FUNCTION usage.deployment_units_since() RETURNS date

-- FUNCTION usage.digest_part(digest bytea, whole tstzrange, part tstzrange) RETURNS bytea

-- FUNCTION usage.dimension_position(dimension text) RETURNS integer

-- FUNCTION usage.expect_many() RETURNS SETOF boolean

-- FUNCTION usage.has_inconsistent_day(source smallint, month date) RETURNS boolean

-- FUNCTION usage.hours_of(parts tstzmultirange) RETURNS SETOF timestamp with time zone

-- FUNCTION usage.invoice_parts(invoice integer) RETURNS TABLE(line_number integer, owner text, cost_center text, amount numeric)

-- FUNCTION usage.is_configured(workspace_ids text[], external_id text) RETURNS boolean

-- FUNCTION usage.is_final(status text) RETURNS boolean

-- FUNCTION usage.is_on_no_invoice(measure text, usage_date date) RETURNS boolean

-- FUNCTION usage.is_standard_unit(measure text) RETURNS boolean

-- FUNCTION usage.keep_charges(source smallint, month date, workspaces integer[], meters text[], days_of_hours datemultirange) RETURNS void

-- FUNCTION usage.keep_configuration_change() RETURNS trigger

-- FUNCTION usage.keep_proof(scopes integer[]) RETURNS void

-- FUNCTION usage.keep_state(scopes integer[]) RETURNS void

-- FUNCTION usage.learn_names(source smallint, number bigint, part integer, at timestamp with time zone, ids integer[], names text[]) RETURNS void

-- FUNCTION usage.load_instant() RETURNS timestamp with time zone

-- FUNCTION usage.loaded_months(workspace integer, data_start date) RETURNS datemultirange

-- FUNCTION usage.meter_of_measure(measure text) RETURNS text

-- FUNCTION usage.meter_of(kind text, trace_tier text) RETURNS text

-- FUNCTION usage.meters_of_measure(measure text) RETURNS text[]

-- FUNCTION usage.minor_digits(currency text) RETURNS integer

-- FUNCTION usage.month_of(day date) RETURNS date

-- FUNCTION usage.months_of(first date, last date) RETURNS SETOF date

-- FUNCTION usage.open_corrections(source smallint, month date) RETURNS TABLE(usage_date date, workspace_entity_id integer, sku text, price_id integer, tier integer, from_quantity bigint, unit_price numeric, currency text, quantity numeric, cost numeric, is_final boolean, coverage_status text, measure text)

-- FUNCTION usage.platform_id(id text) RETURNS text

-- FUNCTION usage.priced_days(dimension text) RETURNS TABLE(meter text, workspace_entity_id integer, loaded datemultirange, final datemultirange, not_available datemultirange, failed datemultirange, missing datemultirange, unverified datemultirange)

-- FUNCTION usage.proof_of(scopes integer[]) RETURNS SETOF usage.day_proof

-- FUNCTION usage.query_as_usage_reader_masked(statement text, first_row integer, most_rows integer, most_bytes integer) RETURNS text

-- FUNCTION usage.query_as_usage_reader(statement text, first_row integer, most_rows integer, most_bytes integer) RETURNS text

-- FUNCTION usage.recompute_due_charges() RETURNS trigger

-- FUNCTION usage.shortlived_status(status text, traces bigint, longlived bigint) RETURNS text

-- FUNCTION usage.shown_id(id text) RETURNS text

-- FUNCTION usage.state_by_rules(scopes integer[]) RETURNS TABLE(scope_id integer, bucket_start timestamp with time zone, state text)

-- FUNCTION usage.state_follows() RETURNS trigger

-- FUNCTION usage.status_at(at anyelement, final anymultirange, not_available anymultirange, failed anymultirange, missing anymultirange, unverified anymultirange) RETURNS text

-- FUNCTION usage.sum_confirmed_at(day_scope integer, usage_date date) RETURNS timestamp with time zone

-- FUNCTION usage.time_of(parts datemultirange) RETURNS tstzmultirange

-- FUNCTION usage.touched_days(parts tstzmultirange) RETURNS datemultirange

-- FUNCTION usage.traces_of_hours(series integer[], usage_date date) RETURNS bigint

-- FUNCTION usage.used_of(source smallint, month date, workspaces integer[], meters text[]) RETURNS TABLE(measure text, usage_date date, workspace_id text, quantity numeric, is_final boolean, coverage_status text)

-- FUNCTION usage.used_since(source smallint, month date, workspaces integer[], meters text[]) RETURNS TABLE(measure text, usage_date date, workspace_id text, quantity numeric)

-- FUNCTION usage.whole_days(parts tstzmultirange) RETURNS datemultirange

-- FUNCTION usage.worst_status(statuses text[]) RETURNS text

-- FUNCTION usage.wrong_charges(source smallint) RETURNS TABLE(is_stored boolean, usage_date date, workspace_id integer, sku text, charge jsonb)

-- FUNCTION usage.wrong_proof(scopes integer[]) RETURNS SETOF integer

-- FUNCTION usage.wrong_state(scopes integer[]) RETURNS TABLE(scope_id integer, bucket_start timestamp with time zone, stored text, by_rules text)

COMMENT ON VIEW reporting.data_freshness IS 'How fresh the figures are: up to when usage is loaded and final. Grain: source x dimension x stride (key: source_id, group_by, stride). Earlier days may still be missing: usage_coverage_daily lists them, and is_final of dim_date shows whether all figures of a day are final.';
COMMENT ON COLUMN reporting.data_freshness.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.data_freshness.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting.data_freshness.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting.data_freshness.loaded_until IS 'End of the latest loaded bucket, not included.';
COMMENT ON COLUMN reporting.data_freshness.final_until IS 'End of the latest final bucket, not included. Null: no bucket is final.';
COMMENT ON COLUMN reporting.data_freshness.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON COLUMN reporting.data_freshness.lag_seconds IS 'Seconds since the last request to the platform. Does not add up.';
COMMENT ON VIEW reporting.dim_date IS 'Each day with its week, month and year. Grain: UTC day (key: usage_date), from the earliest data start to the end of next year.';
COMMENT ON COLUMN reporting.dim_date.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.dim_date.iso_year IS 'ISO 8601 year of the week.';
COMMENT ON COLUMN reporting.dim_date.iso_week IS 'ISO 8601 week of the year.';
COMMENT ON COLUMN reporting.dim_date.iso_weekday IS '1 is Monday, 7 is Sunday.';
COMMENT ON COLUMN reporting.dim_date.month_start IS 'First day of the month.';
COMMENT ON COLUMN reporting.dim_date.year_start IS 'First day of the year.';
COMMENT ON COLUMN reporting.dim_date.day_name IS 'Monday to Sunday. Sort by iso_weekday.';
COMMENT ON COLUMN reporting.dim_date.day_of_month IS '1 to 31.';
COMMENT ON COLUMN reporting.dim_date.month_name IS 'January to December. Sort by month_number.';
COMMENT ON COLUMN reporting.dim_date.month_number IS '1 is January, 12 is December.';
COMMENT ON COLUMN reporting.dim_date.days_in_month IS 'Days of the calendar month: 28 to 31.';
COMMENT ON COLUMN reporting.dim_date.is_past IS 'Whether the UTC day has ended.';
COMMENT ON COLUMN reporting.dim_date.is_final IS 'Whether the day has ended and every figure that is expected on it is final, in all dimensions, workspaces and sources whose data has started. A workspace that is no longer configured counts only in months in which it was loaded.';
COMMENT ON VIEW reporting.dim_project IS 'Each project with usage. Grain: project (key: source_id, project_id). Names are current and not unique: join by the key. Earlier names are in dim_name.';
COMMENT ON COLUMN reporting.dim_project.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.dim_project.project_id IS E'The platform''s id of the project. (none): the platform gave no id. \\(none): an id that is spelled (none). Null: the period is not loaded.';
COMMENT ON COLUMN reporting.dim_project.project_name IS 'Current name of the project; not unique.';
COMMENT ON COLUMN reporting.dim_project.first_seen_at IS 'Start of the earliest time bucket in which a response named it.';
COMMENT ON COLUMN reporting.dim_project.last_seen_at IS 'Start of the latest time bucket in which a response named it.';
COMMENT ON COLUMN reporting.dim_project.workspace_count IS 'Number of workspaces in which it has stored usage by day or hour; bridge_workspace lists them. Does not add up.';
COMMENT ON COLUMN reporting.dim_project.sole_workspace_id IS 'The platform''s id of its workspace. Null: workspace_count is not 1.';
COMMENT ON COLUMN reporting.dim_project.sole_workspace_name IS 'Current name of its workspace. Null: workspace_count is not 1.';
COMMENT ON VIEW reporting.dim_workspace IS 'Each workspace with its current name. Grain: workspace (key: source_id, workspace_id). Earlier names are in dim_name.';
COMMENT ON COLUMN reporting.dim_workspace.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.dim_workspace.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.dim_workspace.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.dim_workspace.first_seen_at IS 'Start of the earliest time bucket in which a response named it.';
COMMENT ON COLUMN reporting.dim_workspace.last_seen_at IS 'Start of the latest time bucket in which a response named it.';
COMMENT ON COLUMN reporting.dim_workspace.is_deleted IS 'Whether the platform lists the workspace as deleted. Its past usage stays.';
COMMENT ON COLUMN reporting.dim_workspace.unlisted_since IS 'Since when the platform no longer lists the workspace. Unless is_deleted, check the access of the API key. Null: it is listed.';
COMMENT ON VIEW reporting.fct_cost_owner_daily IS 'What each owner (team) pays by day, and which cost has no owner. Grain: UTC day x workspace x owner x cost centre x SKU, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, owner, cost_center, sku). Owners come from the owner file (usage-etl owners apply). Cost that no rule gives to an owner is (unallocated), and an owner without a cost centre has (none). An ESTIMATE from the imported prices. All costs are divided, those of deployments and sandboxes too: the sum equals fct_cost_workspace_daily, to the last digit. Costs add up over all keys within one currency, quantity within one sku. A closed month keeps its costs, and is divided by today''s owners. Never add these costs to those of a dimension. Empty without prices.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.owner IS 'Who pays: an owner of the owner file, or (unallocated) if no rule matches.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.cost_center IS 'Cost centre of the owner, as the rule names it. (none): the rule names no cost centre.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.sku IS 'SKU of the imported price.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.measure IS 'What the SKU counts: traces (all of them), longlived or shortlived traces; for deployments nodes_executed, agent_runs or agent_uptime_seconds; for sandboxes lcu, lsu, compute_standard_units or storage_standard_units.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.currency IS 'ISO 4217 code of the imported price. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.quantity IS 'Quantity that is charged to the owner, in units of measure. Adds up over days, workspaces and owners within one sku.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.estimated_cost IS 'Estimate in currency, from imported prices, without taxes and discounts. Adds up within one currency, and within one dimension.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.is_closed IS 'Whether the month is closed. A closed month keeps the cost that it was closed with. Later changes are adjustments in fct_close_cost.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting.fct_cost_owner_daily.is_invoiced IS 'Whether an invoice of the platform charges by this measure on that day. False for runs, nodes and uptime of deployments since October 2026, which the platform charges by other units: never compare their cost with an invoice.';
COMMENT ON VIEW reporting.fct_cost_workspace_daily IS 'What usage costs, by workspace and day. Grain: UTC day x workspace x SKU x volume tier, days with usage on which a price is valid (key: source_id, usage_date, workspace_id, sku, volume_tier). An ESTIMATE from the imported prices, not an invoice. A closed month keeps the costs that it was closed with. Costs add up over all keys within one currency, traces and quantity within one sku. Costs by project, user, API key, deployment and sandbox are in fct_cost_by_id_daily of reporting_detail: never add costs of two dimensions. Empty without prices.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.sku IS 'SKU of the imported price.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.price_id IS 'Number of the imported price, as in dim_price. The price of a closed month may no longer be there.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.volume_tier IS 'Step of the price that these traces fall into, from 1. 0: the price has no volume tiers.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.unit_price IS 'Imported price of one unit of measure, in currency.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.currency IS 'ISO 4217 code of the imported price. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.traces IS 'Traces that are charged at this price. Adds up over days, workspaces and volume tiers within one sku. Null: the SKU counts no traces.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.estimated_cost IS 'Estimate in currency, from imported prices, without taxes and discounts. Adds up within one currency, and within one dimension.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.is_closed IS 'Whether the month is closed. A closed month keeps the cost that it was closed with. Later changes are adjustments in fct_close_cost.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.measure IS 'What the SKU counts: traces (all of them), longlived or shortlived traces; for deployments nodes_executed, agent_runs or agent_uptime_seconds; for sandboxes lcu, lsu, compute_standard_units or storage_standard_units.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.quantity IS 'Quantity that is charged at this price, in units of measure. Adds up over days, workspaces and volume tiers within one sku.';
COMMENT ON COLUMN reporting.fct_cost_workspace_daily.is_invoiced IS 'Whether an invoice of the platform charges by this measure on that day. False for runs, nodes and uptime of deployments since October 2026, which the platform charges by other units: never compare their cost with an invoice.';
COMMENT ON VIEW reporting.fct_usage_api_key_daily IS 'Traces by API key and day. Grain: UTC day x workspace x API key (key: source_id, usage_date, workspace_id, api_key_short_key), days with usage. A day of a workspace that is not loaded is one row with null id and null traces. A filter on an id or name drops that row: see usage_coverage_daily. Traces add up over all keys. Never add them to those of another dimension. Filter on usage_date: without it, DISTINCT, min, max and ORDER BY read every record. Take lists from dim_workspace and dim_api_key, and the newest day from data_freshness.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.api_key_short_key IS E'Short form of the API key, which identifies it. (none): the platform gave no key. \\(none): a key that is spelled (none). Null: the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.api_key_name IS 'Current description of the API key in the platform''s lists of keys; not unique. Null: no list could be read, or the description has an e-mail address.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.is_reconciled IS 'Whether the day was compared with a complete CSV export of the platform, in this dimension and workspace, no difference from the export or a total remains, and the day has not changed since. If is_final is true too, close lists nothing about the day.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.reconciled_at IS 'When that export was requested, by the clock of this database. For hours: the oldest of the exports that they need. Null: not reconciled.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.totals_matched_at IS 'When a total of the platform was requested that includes the day and equals the sum of the stored days, none of which has changed since. Null: there is no such total, or the day still has a difference. A total proves the sum, an export proves each row.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.proved_at IS 'The later of reconciled_at and totals_matched_at. Null: neither proves the day.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.longlived_traces IS 'Long-lived traces among traces. They add up as traces do, over the ids of this view. An id with long-lived traces but no traces in the period has no row. Null: traces or long-lived traces are not loaded.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.shortlived_traces IS 'Short-lived traces among traces, kept for 14 days: traces less longlived_traces. They add up as traces do. Null: one of the two is not loaded, or tiers_status is inconsistent.';
COMMENT ON COLUMN reporting.fct_usage_api_key_daily.tiers_status IS 'Whether both tiers can be used, in the words of coverage_status: the worse status of traces and long-lived traces. empty: there are no short-lived traces. inconsistent, before all others: there are more long-lived traces than traces, so the short-lived ones are not known. Either one was requested before the other, or the platform contradicts itself. Null: tiers are not loaded (USAGE_METERS).';
COMMENT ON VIEW reporting.fct_usage_owner_daily IS 'Traces by owner (team) and day, and traces without an owner. Grain: UTC day x workspace x owner x cost centre, days with usage (key: source_id, usage_date, workspace_id, owner, cost_center). Owners come from the owner file (usage-etl owners apply). Traces that no rule gives to an owner are (unallocated), and an owner without a cost centre has (none). Traces add up over all keys to fct_usage_workspace_daily. Where owners share an id, traces have digits after the point. A day of a workspace that is not loaded is one row with null traces. Never add these traces to those of a dimension. Filter on usage_date.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.owner IS 'Who pays: an owner of the owner file, or (unallocated) if no rule matches.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.cost_center IS 'Cost centre of the owner, as the rule names it. (none): the rule names no cost centre.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.traces IS 'Traces of the owner. They add up over days, workspaces and owners to the traces of the workspaces. Digits after the point: owners share an id. Below zero: the platform counts more traces by id than the workspace has. Null: the workspace is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_owner_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON VIEW reporting.fct_usage_project_daily IS 'Traces by project and day. Grain: UTC day x workspace x project (key: source_id, usage_date, workspace_id, project_id), days with usage. A day of a workspace that is not loaded is one row with null id and null traces. A filter on an id or name drops that row: see usage_coverage_daily. Traces add up over all keys. Never add them to those of another dimension. Filter on usage_date: without it, DISTINCT, min, max and ORDER BY read every record. Take lists from dim_workspace and dim_project, and the newest day from data_freshness.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.project_id IS E'The platform''s id of the project. (none): the platform gave no id. \\(none): an id that is spelled (none). Null: the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.project_name IS 'Current name of the project; not unique.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting.fct_usage_project_daily.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.is_reconciled IS 'Whether the day was compared with a complete CSV export of the platform, in this dimension and workspace, no difference from the export or a total remains, and the day has not changed since. If is_final is true too, close lists nothing about the day.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.reconciled_at IS 'When that export was requested, by the clock of this database. For hours: the oldest of the exports that they need. Null: not reconciled.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.totals_matched_at IS 'When a total of the platform was requested that includes the day and equals the sum of the stored days, none of which has changed since. Null: there is no such total, or the day still has a difference. A total proves the sum, an export proves each row.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.proved_at IS 'The later of reconciled_at and totals_matched_at. Null: neither proves the day.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.longlived_traces IS 'Long-lived traces among traces. They add up as traces do, over the ids of this view. An id with long-lived traces but no traces in the period has no row. Null: traces or long-lived traces are not loaded.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.shortlived_traces IS 'Short-lived traces among traces, kept for 14 days: traces less longlived_traces. They add up as traces do. Null: one of the two is not loaded, or tiers_status is inconsistent.';
COMMENT ON COLUMN reporting.fct_usage_project_daily.tiers_status IS 'Whether both tiers can be used, in the words of coverage_status: the worse status of traces and long-lived traces. empty: there are no short-lived traces. inconsistent, before all others: there are more long-lived traces than traces, so the short-lived ones are not known. Either one was requested before the other, or the platform contradicts itself. Null: tiers are not loaded (USAGE_METERS).';
COMMENT ON VIEW reporting.fct_usage_user_daily IS 'Traces by user and day. Grain: UTC day x workspace x user (key: source_id, usage_date, workspace_id, user_id), days with usage. A day of a workspace that is not loaded is one row with null id and null traces. A filter on an id or name drops that row: see usage_coverage_daily. Traces add up over all keys. Never add them to those of another dimension. Filter on usage_date: without it, DISTINCT, min, max and ORDER BY read every record. Take lists from dim_workspace and dim_user, and the newest day from data_freshness.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.user_id IS E'The platform''s id of the user. (none): the platform gave no id. \\(none): an id that is spelled (none). Null: the period is not loaded.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting.fct_usage_user_daily.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.is_reconciled IS 'Whether the day was compared with a complete CSV export of the platform, in this dimension and workspace, no difference from the export or a total remains, and the day has not changed since. If is_final is true too, close lists nothing about the day.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.reconciled_at IS 'When that export was requested, by the clock of this database. For hours: the oldest of the exports that they need. Null: not reconciled.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.totals_matched_at IS 'When a total of the platform was requested that includes the day and equals the sum of the stored days, none of which has changed since. Null: there is no such total, or the day still has a difference. A total proves the sum, an export proves each row.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.proved_at IS 'The later of reconciled_at and totals_matched_at. Null: neither proves the day.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.longlived_traces IS 'Long-lived traces among traces. They add up as traces do, over the ids of this view. An id with long-lived traces but no traces in the period has no row. Null: traces or long-lived traces are not loaded.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.shortlived_traces IS 'Short-lived traces among traces, kept for 14 days: traces less longlived_traces. They add up as traces do. Null: one of the two is not loaded, or tiers_status is inconsistent.';
COMMENT ON COLUMN reporting.fct_usage_user_daily.tiers_status IS 'Whether both tiers can be used, in the words of coverage_status: the worse status of traces and long-lived traces. empty: there are no short-lived traces. inconsistent, before all others: there are more long-lived traces than traces, so the short-lived ones are not known. Either one was requested before the other, or the platform contradicts itself. Null: tiers are not loaded (USAGE_METERS).';
COMMENT ON VIEW reporting.fct_usage_workspace_daily IS 'Traces by workspace and day. Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), every day from the data start to today. Traces add up over days and workspaces. Null traces: not loaded, which is not zero.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.is_reconciled IS 'Whether the day was compared with a complete CSV export of the platform, in this dimension and workspace, no difference from the export or a total remains, and the day has not changed since. If is_final is true too, close lists nothing about the day.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.reconciled_at IS 'When that export was requested, by the clock of this database. For hours: the oldest of the exports that they need. Null: not reconciled.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.totals_matched_at IS 'When a total of the platform was requested that includes the day and equals the sum of the stored days, none of which has changed since. Null: there is no such total, or the day still has a difference. A total proves the sum, an export proves each row.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.proved_at IS 'The later of reconciled_at and totals_matched_at. Null: neither proves the day.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.longlived_traces IS 'Long-lived traces among traces. They add up as traces do, over the ids of this view. An id with long-lived traces but no traces in the period has no row. Null: traces or long-lived traces are not loaded.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.shortlived_traces IS 'Short-lived traces among traces, kept for 14 days: traces less longlived_traces. They add up as traces do. Null: one of the two is not loaded, or tiers_status is inconsistent.';
COMMENT ON COLUMN reporting.fct_usage_workspace_daily.tiers_status IS 'Whether both tiers can be used, in the words of coverage_status: the worse status of traces and long-lived traces. empty: there are no short-lived traces. inconsistent, before all others: there are more long-lived traces than traces, so the short-lived ones are not known. Either one was requested before the other, or the platform contradicts itself. Null: tiers are not loaded (USAGE_METERS).';
COMMENT ON VIEW reporting.usage_bill_monthly IS 'The bill of a month, line by line. Grain: calendar month (UTC) x line of its bill (key: source_id, month_start, line_number). An ESTIMATE from the imported prices, for all workspaces together. The bill is the sum of the lines charge, correction and added within one currency. A correction is a change of an earlier month after its costs were closed. The cost of a line estimate is on no invoice. The bill is complete if the month has no line unpriced, inconsistent, not_loaded, not_known, not_available or not_reported: these lines name unknown usage, and have no cost. Lines not_loaded and not_known of the service evaluators do not count, since evaluators'' spend (not_invoiced) is on no bill and has no cost here.';
COMMENT ON COLUMN reporting.usage_bill_monthly.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting.usage_bill_monthly.month_start IS 'First day of the month.';
COMMENT ON COLUMN reporting.usage_bill_monthly.line_number IS 'Place of the line on the bill of its month, from 1. It may change while the month is open.';
COMMENT ON COLUMN reporting.usage_bill_monthly.service IS 'Service of the platform that is billed: traces, deployments, sandboxes or evaluators; other for an added line.';
COMMENT ON COLUMN reporting.usage_bill_monthly.line IS 'What the line is. charge: usage of the month at a price. estimate: the same for nodes, runs or uptime of deployments from October 2026 on, which no invoice counts. correction: a change in corrected_month after it was closed. unpriced: usage without a price. inconsistent: short-lived traces of days with more long-lived traces than traces. not_loaded: days that are not loaded. not_known: it is not known whether the server counts this usage. not_available: days on which the platform gave no number of priced standard units. not_reported: usage that is charged, but that the platform''s API does not report. not_charged: usage that is charged by other units, so this line has no cost. counted_apart: standard units of sandboxes that no SKU prices; no document says that they are charged. not_invoiced: evaluators'' spend, computed by the platform from model prices. added: a line that no API reports, which somebody entered with usage-etl bill add. Only charge, estimate, correction and added have a cost.';
COMMENT ON COLUMN reporting.usage_bill_monthly.measure IS 'What the line counts: traces (all of them), longlived or shortlived traces, nodes_executed, agent_runs or agent_uptime_seconds; lcu and lsu, the compute and storage units of sandboxes; compute_standard_units and storage_standard_units, other units of the same usage; spend_usd, US dollars of evaluators; deployment_lcu and deployment_lsu, those of deployments, are not reported. Null: an added line that counts nothing.';
COMMENT ON COLUMN reporting.usage_bill_monthly.sku IS 'SKU of the imported price. On a line unpriced: the SKUs that have a price on other days only. Null: no SKU has a price.';
COMMENT ON COLUMN reporting.usage_bill_monthly.unit_price IS 'Imported price of one unit of measure, in currency. Null: the line has no price.';
COMMENT ON COLUMN reporting.usage_bill_monthly.currency IS 'ISO 4217 code of the price. Never add amounts of different currencies. Null: the line has no price.';
COMMENT ON COLUMN reporting.usage_bill_monthly.corrected_month IS 'First day of the closed month that is corrected. Null: the line is no correction.';
COMMENT ON COLUMN reporting.usage_bill_monthly.quantity IS 'Quantity in units of measure. On a line unpriced: of the days that are loaded. Adds up over months within one sku. Null: not known.';
COMMENT ON COLUMN reporting.usage_bill_monthly.estimated_cost IS 'Estimate in currency, from imported prices, without taxes and discounts. Adds up within one currency. Null: not known, which is not zero.';
COMMENT ON COLUMN reporting.usage_bill_monthly.days_expected IS 'Days of the month x workspaces that have ended and are expected to have the line''s measure. The same on each line of a measure: never add up.';
COMMENT ON COLUMN reporting.usage_bill_monthly.days_loaded IS 'Number of days_expected that are loaded. Never add up.';
COMMENT ON COLUMN reporting.usage_bill_monthly.is_final IS 'Whether the month is over and every day of the line''s measure is final in every workspace.';
COMMENT ON COLUMN reporting.usage_bill_monthly.is_proved IS 'Whether every day that has ended is final and proved in every workspace, by an export or by totals.';
COMMENT ON COLUMN reporting.usage_bill_monthly.is_closed IS 'Whether the costs of the month are closed: then its charges and corrections never change.';
COMMENT ON COLUMN reporting.usage_bill_monthly.from_quantity IS 'Usage of a calendar month after which this volume tier begins, in units of measure. Null: the price has no volume tiers. Does not add up.';
COMMENT ON COLUMN reporting.usage_bill_monthly.to_quantity IS 'Usage of a calendar month at which this volume tier ends, in units of measure. Null: the tier has no end, the price has no volume tiers, or the price of a closed month is no longer imported. Does not add up.';
COMMENT ON COLUMN reporting.usage_bill_monthly.counted_over IS 'Whose usage fills the volume tiers: source (all workspaces together) or workspace (each one separately). Null: the price has no volume tiers, or is no longer imported.';
COMMENT ON COLUMN reporting.usage_bill_monthly.days_proved IS 'Number of days_expected that are final, and equal the export or the totals. Never add up.';
COMMENT ON COLUMN reporting.usage_bill_monthly.days_differing IS 'Number of days_expected that differ from the export or the totals. Never add up.';
COMMENT ON COLUMN reporting.usage_bill_monthly.unproved_cost IS 'The part of estimated_cost of days that are not proved. Adds up within one currency. Null: the line has no cost. A correction has 0.';
COMMENT ON COLUMN reporting.usage_bill_monthly.added_text IS 'Text of an added line. Null: the line was not added.';
COMMENT ON VIEW reporting_detail.backfill_status IS 'How far each backfill is. Grain: backfill (key: source_id, backfill_id). The counts are fetch tasks, one request each. They are 0 once the tasks are pruned (USAGE_KEEP_HISTORY).';
COMMENT ON COLUMN reporting_detail.backfill_status.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.backfill_status.backfill_id IS 'Number of the backfill, as the command line shows it.';
COMMENT ON COLUMN reporting_detail.backfill_status.state IS 'running, paused, cancelled or done.';
COMMENT ON COLUMN reporting_detail.backfill_status.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting_detail.backfill_status.period_start IS 'Start of the requested range.';
COMMENT ON COLUMN reporting_detail.backfill_status.period_end IS 'End of the requested range, not included.';
COMMENT ON COLUMN reporting_detail.backfill_status.done IS 'Fetch tasks that are loaded. Adds up over backfills.';
COMMENT ON COLUMN reporting_detail.backfill_status.failed IS 'Fetch tasks that failed; `backfill show` lists them. Adds up over backfills.';
COMMENT ON COLUMN reporting_detail.backfill_status.total IS 'All fetch tasks, waiting and cancelled ones included. Adds up over backfills.';
COMMENT ON COLUMN reporting_detail.backfill_status.created_at IS 'When the backfill was requested.';
COMMENT ON COLUMN reporting_detail.backfill_status.finished_at IS 'When the backfill was done or cancelled. Null: it is neither.';
COMMENT ON COLUMN reporting_detail.backfill_status.meter IS 'What is loaded: traces (of all retention tiers), longlived, shortlived, deployments, sandboxes or evaluators.';
COMMENT ON VIEW reporting_detail.bridge_workspace IS 'In which workspaces each project, user and API key has usage. Grain: id of a dimension x workspace in which it has stored usage (key: source_id, group_by, dimension_id, workspace_id). Use it for filters that depend on each other. Join facts by both ids, or their counts double.';
COMMENT ON COLUMN reporting_detail.bridge_workspace.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.bridge_workspace.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.bridge_workspace.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.bridge_workspace.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.bridge_workspace.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.bridge_workspace.first_seen_at IS 'Start of its earliest stored day or hour in this workspace.';
COMMENT ON COLUMN reporting_detail.bridge_workspace.last_seen_at IS 'Start of its latest stored day or hour in this workspace.';
COMMENT ON VIEW reporting_detail.dim_api_key IS 'Each API key with usage. Grain: API key (key: source_id, api_key_short_key). Names are current and not unique: join by the key. Earlier names are in dim_name.';
COMMENT ON COLUMN reporting_detail.dim_api_key.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.dim_api_key.api_key_short_key IS E'Short form of the API key, which identifies it. (none): the platform gave no key. \\(none): a key that is spelled (none). Null: the period is not loaded.';
COMMENT ON COLUMN reporting_detail.dim_api_key.api_key_name IS 'Current description of the API key in the platform''s lists of keys; not unique. Null: no list could be read, or the description has an e-mail address.';
COMMENT ON COLUMN reporting_detail.dim_api_key.first_seen_at IS 'Start of the earliest time bucket in which a response named it.';
COMMENT ON COLUMN reporting_detail.dim_api_key.last_seen_at IS 'Start of the latest time bucket in which a response named it.';
COMMENT ON COLUMN reporting_detail.dim_api_key.workspace_count IS 'Number of workspaces in which it has stored usage by day or hour; bridge_workspace lists them. Does not add up.';
COMMENT ON COLUMN reporting_detail.dim_api_key.sole_workspace_id IS 'The platform''s id of its workspace. Null: workspace_count is not 1.';
COMMENT ON COLUMN reporting_detail.dim_api_key.sole_workspace_name IS 'Current name of its workspace. Null: workspace_count is not 1.';
COMMENT ON COLUMN reporting_detail.dim_api_key.last_used_at IS 'When the key was last used, by the platform''s lists of keys. Null: no list says it.';
COMMENT ON COLUMN reporting_detail.dim_api_key.expires_at IS 'When the key expires, by the platform''s lists of keys. Null: no list says it, or it does not expire.';
COMMENT ON COLUMN reporting_detail.dim_api_key.created_by IS 'Who created the key, as the platform''s lists of keys name it. Null: no list says it, or it is an e-mail address.';
COMMENT ON VIEW reporting_detail.dim_billing_period IS 'When each billing period of the organization begins and ends. Grain: source x billing period, from the first one that was read (key: source_id, period_end). A billing period need not be a calendar month.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.period_start IS 'First UTC day of the billing period.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.period_end IS 'UTC day on which the billing period ends, not included.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.is_start_known IS 'Whether the period before was read, so that this one begins at its end. If not, period_start is inferred: a month before period_end, or the start of the plan.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.is_calendar_month IS 'Whether the period is a calendar month.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.is_current IS 'Whether the period is the current one.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.plan_tier IS 'The platform''s word for the plan.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.plan_started_on IS 'UTC day on which the plan began.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.plan_ends_on IS 'UTC day on which the plan ends. Null: it does not end.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.ends_at IS 'The instant at which the platform says that the period ends.';
COMMENT ON COLUMN reporting_detail.dim_billing_period.read_at IS 'When this was last read from the platform.';
COMMENT ON VIEW reporting_detail.dim_name IS 'Names over time: what was renamed, and when. Grain: id of a dimension other than user x name in time (key: source_id, group_by, dimension_id, valid_from). A UTC day has the name that was valid at its end. Facts have the current name. To name a fact as on its day, join by the id and usage_date >= valid_from AND usage_date < valid_to: one name for each day. An id with more than one row was renamed.';
COMMENT ON COLUMN reporting_detail.dim_name.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.dim_name.group_by IS 'What was named: a dimension, deployment, sandbox or run_rule.';
COMMENT ON COLUMN reporting_detail.dim_name.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.dim_name.dimension_name IS 'A name that the id had. Several ids may have the same name.';
COMMENT ON COLUMN reporting_detail.dim_name.valid_from IS 'First UTC day of this name. 1900-01-01: the first name that is known.';
COMMENT ON COLUMN reporting_detail.dim_name.valid_to IS 'UTC day on which the next name begins, not included. 9999-12-31: the current name.';
COMMENT ON COLUMN reporting_detail.dim_name.is_current IS 'Whether it is the current name.';
COMMENT ON COLUMN reporting_detail.dim_name.first_seen_at IS 'When a fetch first carried this name, after the name before it.';
COMMENT ON VIEW reporting_detail.dim_price IS 'Which prices are imported, and when each is valid. Grain: imported price x volume tier (key: price_id, volume_tier). Valid on a day: valid_from <= day AND (valid_to IS NULL OR valid_to > day). If several prices of one sku are valid for a workspace, the most specific one applies: the workspace''s own, then its source''s, then the one for everybody. fct_cost_workspace_daily names the price that it used.';
COMMENT ON COLUMN reporting_detail.dim_price.price_id IS 'Number of the imported price, as in dim_price. The price of a closed month may no longer be there.';
COMMENT ON COLUMN reporting_detail.dim_price.volume_tier IS 'Step of the price that these traces fall into, from 1. 0: the price has no volume tiers.';
COMMENT ON COLUMN reporting_detail.dim_price.sku IS 'SKU of the imported price.';
COMMENT ON COLUMN reporting_detail.dim_price.unit_price IS 'Imported price of one unit of measure, in currency.';
COMMENT ON COLUMN reporting_detail.dim_price.currency IS 'ISO 4217 code of the imported price. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting_detail.dim_price.valid_from IS 'First UTC day on which the price is valid.';
COMMENT ON COLUMN reporting_detail.dim_price.valid_to IS 'First UTC day on which the price is no longer valid. Null: no end is known.';
COMMENT ON COLUMN reporting_detail.dim_price.source_id IS 'Slug of the source that the price is for. Null: the price is for every source.';
COMMENT ON COLUMN reporting_detail.dim_price.workspace_id IS 'The platform''s id of the workspace that the price is for. Null: the price is for every workspace.';
COMMENT ON COLUMN reporting_detail.dim_price.workspace_name IS 'Current name of that workspace. Null: the price is for every workspace.';
COMMENT ON COLUMN reporting_detail.dim_price.from_quantity IS 'Usage of a calendar month after which this unit price applies, in units of measure. Does not add up.';
COMMENT ON COLUMN reporting_detail.dim_price.to_quantity IS 'Usage of a calendar month up to which this unit price applies, in units of measure. Null: without limit. Does not add up.';
COMMENT ON COLUMN reporting_detail.dim_price.counted_over IS 'Whose usage fills the volume tiers: source (all workspaces together) or workspace (each one separately). Null: the price has no volume tiers.';
COMMENT ON COLUMN reporting_detail.dim_price.is_valid_today IS 'Whether the price is valid on the current UTC day.';
COMMENT ON COLUMN reporting_detail.dim_price.imported_at IS 'When the price was imported.';
COMMENT ON COLUMN reporting_detail.dim_price.measure IS 'What the SKU counts: traces (all of them), longlived or shortlived traces; for deployments nodes_executed, agent_runs or agent_uptime_seconds; for sandboxes lcu, lsu, compute_standard_units or storage_standard_units.';
COMMENT ON VIEW reporting_detail.dim_resource IS 'Each deployment, sandbox, snapshot and run rule, with its current name. Grain: resource (key: source_id, group_by, dimension_id). Names are not unique: join by the key. Names of sandboxes are null until their lists are read. A run rule also has its evaluator, its project or dataset, and its weekly limit, from the newest response. Never join dimension_id to projects of traces: these are other ids.';
COMMENT ON COLUMN reporting_detail.dim_resource.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.dim_resource.group_by IS 'Kind of resource: deployment, sandbox (or snapshot), or run_rule (a rule that runs an evaluator).';
COMMENT ON COLUMN reporting_detail.dim_resource.dimension_id IS E'The platform''s id of the resource. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.dim_resource.dimension_name IS 'Current name of the resource; not unique. Null: no name is known.';
COMMENT ON COLUMN reporting_detail.dim_resource.evaluator_id IS 'The platform''s id of the evaluator that the rule runs. Several rules may run the same one. Null: the resource is no rule.';
COMMENT ON COLUMN reporting_detail.dim_resource.evaluator_name IS 'Name of the evaluator in the newest response.';
COMMENT ON COLUMN reporting_detail.dim_resource.project_id IS 'The platform''s id of the project whose traces the rule evaluates. Null: it evaluates a dataset, or is no rule.';
COMMENT ON COLUMN reporting_detail.dim_resource.project_name IS 'Name of the project in the newest response.';
COMMENT ON COLUMN reporting_detail.dim_resource.dataset_id IS 'The platform''s id of the dataset that the rule evaluates. Null: it evaluates a project, or is no rule.';
COMMENT ON COLUMN reporting_detail.dim_resource.dataset_name IS 'Name of the dataset in the newest response.';
COMMENT ON COLUMN reporting_detail.dim_resource.weekly_limit_usd IS 'US dollars that the rule may spend in a week that begins on Monday (UTC). Null: the platform reports no limit, or the resource is no rule. Does not add up.';
COMMENT ON COLUMN reporting_detail.dim_resource.first_seen_at IS 'Start of the earliest time bucket in which a response named it.';
COMMENT ON COLUMN reporting_detail.dim_resource.last_seen_at IS 'Start of the latest time bucket in which a response named it.';
COMMENT ON VIEW reporting_detail.dim_tag IS 'Tags of each project, deployment and sandbox, with the days on which they were set. Grain: resource x key of a tag x value in time (key: source_id, group_by, workspace_id, dimension_id, tag_key, valid_from). Choose ONE group_by and ONE tag_key, then join facts by source_id, workspace_id and the id, with usage_date >= valid_from AND usage_date < valid_to: there is at most one row for each. Use a LEFT JOIN, which keeps usage without the tag.';
COMMENT ON COLUMN reporting_detail.dim_tag.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.dim_tag.group_by IS 'What has the tag: project, deployment or sandbox.';
COMMENT ON COLUMN reporting_detail.dim_tag.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.dim_tag.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.dim_tag.tag_key IS 'Key of a tag, such as Application. Choose one: a resource has a row for each of its keys.';
COMMENT ON COLUMN reporting_detail.dim_tag.tag_value IS 'Value of the tag. Several values of one key are one text, separated by commas.';
COMMENT ON COLUMN reporting_detail.dim_tag.valid_from IS 'First UTC day of this value, by the nightly readings. 1900-01-01: the first day of readings found it.';
COMMENT ON COLUMN reporting_detail.dim_tag.valid_to IS 'UTC day on which the value was found changed or gone, not included. 9999-12-31: a current value.';
COMMENT ON COLUMN reporting_detail.dim_tag.is_current IS 'Whether the value was set when the tags were last read.';
COMMENT ON VIEW reporting_detail.dim_user IS 'Each user with usage. Grain: user (key: source_id, user_id). Names are current and not unique: join by the key. Earlier names are in dim_name.';
COMMENT ON COLUMN reporting_detail.dim_user.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.dim_user.user_id IS E'The platform''s id of the user. (none): the platform gave no id. \\(none): an id that is spelled (none). Null: the period is not loaded.';
COMMENT ON COLUMN reporting_detail.dim_user.user_email IS 'Current e-mail address of the user, or its hash, as USAGE_USER_EMAIL says. Null: the platform gave no address, or it is not stored.';
COMMENT ON COLUMN reporting_detail.dim_user.first_seen_at IS 'Start of the earliest time bucket in which a response named it.';
COMMENT ON COLUMN reporting_detail.dim_user.last_seen_at IS 'Start of the latest time bucket in which a response named it.';
COMMENT ON COLUMN reporting_detail.dim_user.workspace_count IS 'Number of workspaces in which it has stored usage by day or hour; bridge_workspace lists them. Does not add up.';
COMMENT ON COLUMN reporting_detail.dim_user.sole_workspace_id IS 'The platform''s id of its workspace. Null: workspace_count is not 1.';
COMMENT ON COLUMN reporting_detail.dim_user.sole_workspace_name IS 'Current name of its workspace. Null: workspace_count is not 1.';
COMMENT ON VIEW reporting_detail.fct_budget_daily IS 'How much of each budget is used, by day. Grain: budget of the owner file x source that it counts x UTC day, from the data start to today (key: budget_number, source_id, usage_date). Add spent over sources and over the days with the same budget_starts_on: usage-etl owners budgets shows the same sum. The used part is that sum divided by budget_amount, which is the same in each row: never add it up. Budgets overlap: never add up over budgets. Filter on usage_date.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.budget_number IS 'Place of the budget in the owner file.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.line IS 'Line of the owner file on which the budget begins.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.owner IS 'Owner whose budget it is. Null: the budget is for a project, a workspace or, if both are null too, everything.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.workspace_id IS 'The platform''s id of the workspace that the budget is for. Null: the budget is not for a workspace.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.project_id IS 'The platform''s id of the project that the budget is for. Null: the budget is not for a project.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.currency IS 'ISO 4217 code of the amounts. Null: the budget is in traces.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.budget_per IS 'month: the budget is for a calendar month. billing_period: for a billing period of its source.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.budget_amount IS 'Amount that may be used in a month or billing period, in traces or in currency, in all sources of the budget together. The same in each row: never add up.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.budget_starts_on IS 'First UTC day of the month or billing period of the day. Null: no such period is known.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.budget_ends_on IS 'First UTC day after the month or billing period. Null: no such period is known.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.spent IS 'Traces, or estimated cost in currency, of the day in the source. If is_complete is false, the true amount may be larger. Adds up over days and sources. Null: nothing is known.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.even_pace IS 'Amount used by the end of the day if every day used the same. Compare it with the sum of spent since budget_starts_on over all sources. Never add up. Null: no such period is known.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.is_complete IS 'Whether all usage that the budget counts is loaded on the day and, for a budget in money, has a price.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.is_unpriced IS 'Whether a price is missing: a workspace has usage and has prices on other days, but not on this one.';
COMMENT ON COLUMN reporting_detail.fct_budget_daily.is_final IS 'Whether spent is complete and final.';
COMMENT ON VIEW reporting_detail.fct_close IS 'How many traces each closed period had when it was closed, and what changed since. Grain: closed calendar month or other billing period x dimension x workspace x id (key: source_id, period_start, period_end, group_by, workspace_id, dimension_id). closed_traces never change. Later changes are adjustment_traces, and the sum of both is current_traces. A workspace that was left out has one row, without traces. Costs are in fct_close_cost. Choose ONE group_by and ONE value of is_calendar_month: billing periods overlap months.';
COMMENT ON COLUMN reporting_detail.fct_close.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_close.period_start IS 'First UTC day of the closed period.';
COMMENT ON COLUMN reporting_detail.fct_close.period_end IS 'UTC day on which the closed period ends, not included.';
COMMENT ON COLUMN reporting_detail.fct_close.is_calendar_month IS 'Whether the period is a calendar month.';
COMMENT ON COLUMN reporting_detail.fct_close.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.fct_close.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_close.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_close.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.fct_close.dimension_name IS 'Current name in this dimension. Null for users: their addresses are in dim_user.';
COMMENT ON COLUMN reporting_detail.fct_close.is_left_out IS 'Whether the workspace was left out when the period was closed, so that the close has no totals of it.';
COMMENT ON COLUMN reporting_detail.fct_close.closed_traces IS 'Traces of the period when it was closed. Adds up over workspaces and ids of one dimension, and over months. Null: the workspace was left out.';
COMMENT ON COLUMN reporting_detail.fct_close.adjustment_traces IS 'Traces added or removed since the period was closed. Adds up as closed_traces do. Null: the workspace was left out.';
COMMENT ON COLUMN reporting_detail.fct_close.current_traces IS 'Traces of the period as stored today: closed_traces plus adjustment_traces. Adds up as closed_traces do. Null: the workspace was left out.';
COMMENT ON COLUMN reporting_detail.fct_close.closed_at IS 'When the period was closed.';
COMMENT ON COLUMN reporting_detail.fct_close.settle_after_seconds IS 'USAGE_SETTLE_AFTER when the period was closed.';
COMMENT ON COLUMN reporting_detail.fct_close.accepted_disagreements IS 'Number of days x dimensions x workspaces of the close on which the platform contradicts itself. The same in each row of a close: never add up.';
COMMENT ON VIEW reporting_detail.fct_close_cost IS 'What each closed month cost when it was closed, and what changed since. Grain: closed calendar month x workspace x SKU x price (key: source_id, period_start, workspace_id, sku, unit_price, currency). An ESTIMATE from the imported prices. closed_cost never changes. Later prices and counts make adjustment_cost, and the sum of both is current_cost. Costs add up over all keys within one currency, closed_quantity within one sku.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.period_start IS 'First UTC day of the closed month.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.period_end IS 'First UTC day of the next month.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.sku IS 'SKU of the imported price.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.measure IS 'What the SKU counts: traces (all of them), longlived or shortlived traces; for deployments nodes_executed, agent_runs or agent_uptime_seconds; for sandboxes lcu, lsu, compute_standard_units or storage_standard_units.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.unit_price IS 'Imported price of one unit of measure, in currency.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.currency IS 'ISO 4217 code of the imported price. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.closed_quantity IS 'Quantity that this price applied to when the month was closed, in units of measure. Adds up within one sku.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.closed_cost IS 'Estimate when the month was closed, in currency: unit price times quantity. Adds up within one currency.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.adjustment_cost IS 'Cost that later prices and counts added or removed. Adds up within one currency.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.current_cost IS 'Today''s estimate: closed_cost plus adjustment_cost. Adds up within one currency.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.is_invoiced IS 'Whether an invoice of the platform charges by this measure on that day. False for runs, nodes and uptime of deployments since October 2026, which the platform charges by other units: never compare their cost with an invoice.';
COMMENT ON COLUMN reporting_detail.fct_close_cost.closed_at IS 'When the period was closed.';
COMMENT ON VIEW reporting_detail.fct_cost_by_id_daily IS 'What usage costs, by project, user, API key, deployment or sandbox and day. Grain: UTC day x dimension x workspace x id x SKU, days with usage on which a price is valid (key: source_id, usage_date, group_by, workspace_id, dimension_id, sku). An ESTIMATE: the quantity of the SKU times the average unit price of its workspace, day and SKU. Choose ONE group_by: costs add up over the other keys within one currency, traces and quantity within one sku, never over two dimensions. Cost of no id is in the row (none), or in a row with null id where this dimension is not loaded. In a closed month the row (adjustment) is the closed cost less what the ids are charged today. So the sum by project, user or API key equals fct_cost_workspace_daily, and the sum by deployment or sandbox equals their SKUs there. Empty without prices.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.group_by IS 'What dimension_id names: project, user, api_key, deployment or sandbox.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.dimension_name IS 'Current name in this dimension. Null for users: their addresses are in dim_user.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.sku IS 'SKU of the imported price.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.currency IS 'ISO 4217 code of the imported price. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.traces IS 'Traces that are charged. Adds up over the view''s own key within one sku. Below zero in the row (none): the platform counts more traces by id than the workspace has. Below zero in the row (adjustment): the month was closed with other counts.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.estimated_cost IS 'Estimate in currency, from imported prices, without taxes and discounts. Adds up within one currency, and within one dimension.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.is_closed IS 'Whether the month is closed. The sum of a closed month by workspace stays, and the row (adjustment) balances what the ids have more or less since.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.measure IS 'What the SKU counts: traces (all of them), longlived or shortlived traces; for deployments nodes_executed, agent_runs or agent_uptime_seconds; for sandboxes lcu, lsu, compute_standard_units or storage_standard_units.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.quantity IS 'Quantity that is charged at this price, in units of measure. Adds up over days, workspaces and volume tiers within one sku.';
COMMENT ON COLUMN reporting_detail.fct_cost_by_id_daily.is_invoiced IS 'Whether an invoice of the platform charges by this measure on that day. False for runs, nodes and uptime of deployments since October 2026, which the platform charges by other units: never compare their cost with an invoice.';
COMMENT ON VIEW reporting_detail.fct_invoice_line IS 'What an invoice charges, line by line, beside our bill. Grain: invoice x line, without sum rows (key: source_id, issuer, invoice_number, line_number). Amounts add up within one currency; they are the invoice''s, not an estimate.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.issuer IS 'Who issued the invoice.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.invoice_number IS 'Number of the invoice.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.line_number IS 'Place of the line on the invoice, from 1.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.status IS 'Whether the invoice is open (a draft), issued or voided. A voided invoice charges nothing.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.issued_on IS 'Day of issue.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.currency IS 'ISO 4217 code of the invoice. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.kind IS 'What the line charges: usage, seat, commitment, drawdown, credit, discount, tax or adjustment.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.sum_text IS 'Text of the sum row that the line is a part of. Null: it is a line of its own.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.line_text IS 'Text of the line.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.quantity IS 'Quantity on the invoice, in unit. Null: the invoice does not write it.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.unit IS 'Unit of quantity as the invoice writes it.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.unit_price IS 'Price of one unit on the invoice. Null: the invoice does not write it.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.amount IS 'Amount of the line in currency.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.measure IS 'What the line counts here. Null: it is not compared.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.sku IS 'SKU of our bill that the line is compared with. Null: it is not compared.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.line_start IS 'First day that the line charges. Null: not known.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.line_end IS 'Day after the last day that the line charges.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.invoice_workspace IS 'Workspace as the invoice writes it. Null: the whole organization.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.matched_workspace IS 'The platform''s id of the workspace, or the invoice''s word for one that is not known here. Null: the whole organization.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.state IS 'Result of the newest comparison: agrees, within_tolerance, quantity_differs, price_differs, only_on_invoice or not_comparable. Null: never compared.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.why IS 'Why the line is not comparable.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.quantity_here IS 'Quantity on our bill. Null: our bill has no such line.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.unit_price_here IS 'Price on our bill. Null: our bill has no such line.';
COMMENT ON COLUMN reporting_detail.fct_invoice_line.cost_here IS 'Exact cost on our bill. Adds up within one currency. Null: our bill has no such line.';
COMMENT ON VIEW reporting_detail.fct_invoice_owner IS 'Who pays each line of an invoice. Grain: invoice x line x owner x cost centre (key: source_id, issuer, invoice_number, line_number, owner, cost_center). The amounts of an invoice add up to its total, to the cent. Lines of usage are divided by what the owners'' usage costs, others by the rules of invoices, by the newest comparison. Name the invoice in a filter: each is computed. Voided invoices, and those that were never compared, have no row.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.issuer IS 'Who issued the invoice.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.invoice_number IS 'Number of the invoice.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.status IS 'Whether the invoice is open (a draft) or issued.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.issued_on IS 'Day of issue.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.currency IS 'ISO 4217 code of the invoice. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.owner IS 'Who pays: an owner of the owner file, or (unallocated) if no rule matches.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.cost_center IS 'Cost centre of the owner, as the rule names it. (none): the rule names no cost centre.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.line_number IS 'Place of the line on the invoice, from 1. 0: the part of the total that no line has.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.line_text IS 'Text of the line, after that of its sum row.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.kind IS 'What the line charges: usage, seat, commitment, drawdown, credit, discount, tax or adjustment.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.amount IS 'What the owner pays of the line, in whole cents of currency. Adds up to the total of the invoice.';
COMMENT ON COLUMN reporting_detail.fct_invoice_owner.settled_at IS 'When the invoice was last settled. Null: nobody has settled it.';
COMMENT ON VIEW reporting_detail.fct_other_usage_daily IS 'Usage of deployments, sandboxes and evaluators by day. Grain: UTC day x measure x dimension x workspace x id (key: source_id, usage_date, measure, group_by, workspace_id, dimension_id). Choose ONE measure and ONE group_by: quantities add up over the other keys, never over two measures or dimensions. By workspace there is a row for every day to today, from the data start or the beginning of the usage, whichever is earlier. By another dimension there are days with usage, and one row with null id and null quantity for a day of a workspace that is not loaded. Null quantity: not loaded, before the beginning, or not given by the platform, which is not zero. None of this usage is part of traces. Evaluators'' spend is the platform''s estimate from model prices and NO INVOICE. Filter on usage_date: without it every record is read.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.meter IS 'Kind of usage: deployments, sandboxes or evaluators.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.measure IS 'What the quantity counts. nodes_executed: nodes of graphs that were executed. agent_runs: runs of agents. agent_uptime_seconds: a RAW SUM OVER ALL REPLICAS; the invoice counts deduplicated standby minutes instead, so never multiply it by an invoice price. lcu, lsu: compute and storage units of sandboxes and snapshots. compute_standard_units, storage_standard_units: OTHER units of the same usage, NEVER to be added to lcu and lsu. spend_usd: US dollars that evaluators spent on models, computed by the platform from the configured model prices, NO INVOICE. evaluated_traces: traces that were evaluated, once for each rule.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.group_by IS 'What dimension_id names: workspace, deployment, sandbox, run_rule, user or api_key.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.dimension_id IS E'The platform''s id of the workspace, deployment, sandbox or snapshot, rule, user or API key. (none): the platform gave no id. \\(none): an id that is spelled (none). Null: the day is not loaded.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.quantity IS 'Quantity in units of measure. Adds up over days, workspaces and ids, within one measure and one group_by. Null: not loaded, before the beginning, or standard units of a day on which the platform gave no number for an item.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.coverage_status IS 'Whether the figure can be used: the first that applies of not_available, failed, missing, unverified, provisional, empty, ok. not_available: the server does not count this usage, or not yet on that day, or gave no number of standard units for an item of that day.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.is_reconciled IS 'Whether the day was compared with a complete CSV export of the platform, in this dimension and workspace, no difference from the export or a total remains, and the day has not changed since. If is_final is true too, close lists nothing about the day.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.reconciled_at IS 'When that export was requested, by the clock of this database. For hours: the oldest of the exports that they need. Null: not reconciled.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.totals_matched_at IS 'When a total of the platform was requested that includes the day and equals the sum of the stored days, none of which has changed since. Null: there is no such total, or the day still has a difference. A total proves the sum, an export proves each row.';
COMMENT ON COLUMN reporting_detail.fct_other_usage_daily.proved_at IS 'The later of reconciled_at and totals_matched_at. Null: neither proves the day.';
COMMENT ON VIEW reporting_detail.fct_usage_by_id_hourly IS 'Traces by project, user or API key and hour. Grain: UTC hour x dimension x workspace x id (key: source_id, usage_hour, group_by, workspace_id, dimension_id), hours with usage. Choose ONE group_by: traces add up over the other keys, never over two dimensions. An hour of a workspace that is not loaded is one row with null id and null traces. Filter on usage_hour: without it, DISTINCT, min, max and ORDER BY read every record. Take lists from the dimensions, and the newest hour from data_freshness.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.usage_hour IS 'Start of the UTC hour.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.dimension_name IS 'Current name in this dimension. Null for users: their addresses are in dim_user.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. Null: not loaded.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting_detail.fct_usage_by_id_hourly.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON VIEW reporting_detail.fct_usage_monthly IS 'Traces by month. Grain: calendar month (UTC) x dimension x workspace x id (key: source_id, month_start, group_by, workspace_id, dimension_id). Choose ONE group_by: traces add up over the other keys, never over two dimensions. By workspace there is a row for every month from the data start on; null traces: an expected day is not loaded. By another dimension there are months with usage, and one row with null id and null traces for an incomplete month of a workspace: read its days instead. Every day that has ended is expected, and today once it is loaded.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.month_start IS 'First day of the month.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.dimension_name IS 'Current name in this dimension. Null for users: their addresses are in dim_user.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. Null: not loaded.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.days_expected IS 'Days of the month that are expected: from the data start on, every day that has ended, and today once it is loaded. Adds up over months of one workspace.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.days_loaded IS 'Expected days that are loaded. Adds up over months of one workspace.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.is_complete IS 'Whether every expected day is loaded. The current month is complete up to its last ended day.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.is_final IS 'Whether the month is over and each of its days is final. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.traces_loaded IS 'Traces of the loaded days of the month. Once all days are loaded, the same as traces. On a row with a null id: of all ids. Adds up as traces do. Null: no day is loaded.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.is_month_over IS 'Whether the calendar month has ended (UTC).';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.longlived_traces IS 'Long-lived traces among traces. They add up as traces do, over the ids of this view. An id with long-lived traces but no traces in the period has no row. Null: traces or long-lived traces are not loaded.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.shortlived_traces IS 'Short-lived traces among traces, kept for 14 days: traces less longlived_traces. They add up as traces do. Null: one of the two is not loaded, or tiers_status is inconsistent.';
COMMENT ON COLUMN reporting_detail.fct_usage_monthly.tiers_status IS 'Whether both tiers can be used, in the words of coverage_status: the worse status of traces and long-lived traces. empty: there are no short-lived traces. inconsistent, before all others: there are more long-lived traces than traces, so the short-lived ones are not known. Either one was requested before the other, or the platform contradicts itself. Null: tiers are not loaded (USAGE_METERS).';
COMMENT ON VIEW reporting_detail.fct_usage_workspace_hourly IS 'Traces by workspace and hour. Grain: UTC hour x workspace (key: source_id, usage_hour, workspace_id), every hour that is kept up to date or was loaded. Traces add up over hours and workspaces. Null traces: not loaded, which is not zero.';
COMMENT ON COLUMN reporting_detail.fct_usage_workspace_hourly.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.fct_usage_workspace_hourly.usage_hour IS 'Start of the UTC hour.';
COMMENT ON COLUMN reporting_detail.fct_usage_workspace_hourly.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_usage_workspace_hourly.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.fct_usage_workspace_hourly.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. Null: not loaded.';
COMMENT ON COLUMN reporting_detail.fct_usage_workspace_hourly.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting_detail.fct_usage_workspace_hourly.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting_detail.fct_usage_workspace_hourly.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON VIEW reporting_detail.focus_1_4_billing_period IS 'Which months are closed, in the columns of FOCUS 1.4. Grain: calendar month (UTC) x issuer of invoices, from the data start on (key: InvoiceIssuerName, x_BillingMonth). Joins focus_1_4_cost_and_usage by BillingPeriodStart and InvoiceIssuerName. Closed: every source of the issuer closed the month.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."BillingPeriodCreated" IS 'Start of the month, or when the first source of the issuer was created, whichever is later.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."BillingPeriodEnd" IS 'End of the UTC calendar month, not included.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."BillingPeriodLastUpdated" IS 'When a source of the issuer last closed the month. Before that: BillingPeriodCreated.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."BillingPeriodStart" IS 'Start of the UTC calendar month.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."BillingPeriodStatus" IS 'Closed: every source of the issuer closed the month, so its charges never change. Open: any other month.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."InvoiceIssuerName" IS 'Who invoices the usage: USAGE_INVOICE_ISSUER_NAME, or the provider.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."x_BillingMonth" IS 'First day of the billing period, a UTC calendar month.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."x_Sources" IS 'Sources of the issuer whose data starts in this month or before.';
COMMENT ON COLUMN reporting_detail.focus_1_4_billing_period."x_SourcesClosed" IS 'How many of them closed the month.';
COMMENT ON VIEW reporting_detail.focus_1_4_cost_and_usage IS 'What usage costs, in the columns of FOCUS 1.4. Grain: UTC day x workspace x SKU x price x billing month (key: x_SourceId, x_BillingMonth, x_UsageDate, SubAccountId, SkuId, SkuPriceId, BillingCurrency, ContractedUnitPrice). An ESTIMATE from the imported prices, not an invoice. Rows of a closed month never change: a later change is a row with ChargeClass Correction in the first open month after it. Costs add up over all keys within one BillingCurrency, to today''s cost of the loaded days. Empty without prices.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."AllocatedMethodDetails" IS 'JSON object as text with the owner''s share. Null: owners do not share the row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."AllocatedMethodId" IS 'usage-etl/owner-shares. Null: owners do not share the row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."AllocatedResourceId" IS 'Owner of the share. Null: owners do not share the row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."AllocatedResourceName" IS 'Same as AllocatedResourceId.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."AllocatedTags" IS 'JSON object as text: owner and cost centre of the share. Null: owners do not share the row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."AvailabilityZone" IS 'Null: the platform names no zones.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."BilledCost" IS 'Estimate: unit price times PricingQuantity, exactly. Adds up within one BillingCurrency.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."BillingAccountId" IS 'The platform''s id of the organization; the slug of the source if the platform gives none.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."BillingAccountName" IS 'Name of the organization; the slug of the source if the platform gives none.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."BillingAccountType" IS 'Organization.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."BillingCurrency" IS 'ISO 4217 code of the imported price. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."BillingPeriodEnd" IS 'End of the UTC calendar month, not included.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."BillingPeriodStart" IS 'Start of the UTC calendar month.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CapacityReservationId" IS 'Null: no capacity is reserved.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CapacityReservationStatus" IS 'Null: no capacity is reserved.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ChargeCategory" IS 'Usage.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ChargeClass" IS 'Correction: a change of a month since it was closed, with quantities and costs that may be negative. Null: any other charge.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ChargeDescription" IS 'The charge in words.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ChargeFrequency" IS 'Usage-Based.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ChargePeriodEnd" IS 'End of the UTC day, not included.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ChargePeriodStart" IS 'Start of the UTC day.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CommitmentDiscountCategory" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CommitmentDiscountId" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CommitmentDiscountName" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CommitmentDiscountQuantity" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CommitmentDiscountStatus" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CommitmentDiscountType" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CommitmentDiscountUnit" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."CommitmentProgramEligibilityDetails" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ConsumedQuantity" IS 'What the SKU counts. Adds up over days and workspaces within one SkuId: two SKUs may charge the same traces.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ConsumedUnit" IS 'Traces, Nodes, Runs, Seconds, LCU or LSU, as the SKU counts.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ContractApplied" IS 'Null: no contracts are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ContractedCost" IS 'Same as BilledCost: ContractedUnitPrice times PricingQuantity.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ContractedUnitPrice" IS 'Imported price of one unit of ConsumedQuantity, in BillingCurrency.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."EffectiveCost" IS 'Same as BilledCost: nothing is paid in advance.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."HostProviderName" IS 'Same as ServiceProviderName: on whose servers the platform runs is not known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."InvoiceDetailId" IS 'Null: a day''s charge is a part of a line.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."InvoiceId" IS 'Number of the settled invoice that charges the SKU and workspace in this month. Null: an estimate, which is on no settled invoice, or a correction.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."InvoiceIssuerName" IS 'Who invoices the usage: USAGE_INVOICE_ISSUER_NAME, or the provider.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ListCost" IS 'Same as BilledCost: only imported prices are known, no list prices.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ListUnitPrice" IS 'The imported unit price: no list prices are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."PricingCategory" IS 'Standard.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."PricingCurrency" IS 'Same as BillingCurrency.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."PricingCurrencyContractedUnitPrice" IS 'Same as ContractedUnitPrice.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."PricingCurrencyEffectiveCost" IS 'Same as EffectiveCost.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."PricingCurrencyListUnitPrice" IS 'Same as ListUnitPrice.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."PricingQuantity" IS 'Same as ConsumedQuantity.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."PricingUnit" IS 'Traces, Nodes, Runs, Seconds, LCU or LSU, as the SKU counts.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."RegionId" IS 'Null: usage is not counted by region.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."RegionName" IS 'Null: usage is not counted by region.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ResourceId" IS 'The platform''s id of the project, deployment or sandbox. Null: a row by workspace, or usage of no resource.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ResourceName" IS 'Name of the resource. Null: a row by workspace, or usage of no resource.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ResourceType" IS 'Project, Deployment or Sandbox. Null: a row by workspace, or usage of no resource.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ServiceCategory" IS 'AI and Machine Learning.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ServiceName" IS 'Agent platform traces, Agent platform deployments, or Agent platform sandboxes.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ServiceProviderName" IS 'USAGE_PROVIDER_NAME, or the host of the platform''s billing API.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."ServiceSubcategory" IS 'AI Platforms.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."SkuId" IS 'SKU of the imported price.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."SkuMeter" IS 'What the SKU counts: Traces, Long-lived Traces, Short-lived Traces, Nodes Executed, Agent Runs, Agent Uptime, Sandbox Compute Units or Sandbox Storage Units.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."SkuPriceDetails" IS 'JSON object as text: the volume tier of the price and its first quantity; {} without tiers.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."SkuPriceId" IS 'Number of the imported price, and of the volume tier where it has tiers: one unit price each.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."SubAccountId" IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."SubAccountName" IS 'Name of the workspace on the day of the charge, or its id if it has none.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."SubAccountType" IS 'Workspace.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."Tags" IS 'JSON object as text: tags of the resource and, as usage-etl/owner and usage-etl/cost_center, who pays. Empty in rows by workspace.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."x_SourceId" IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."x_UsageDate" IS 'UTC day of the charge, for filters and joins with the other views.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."x_BillingMonth" IS 'First day of the billing period, a UTC calendar month.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."x_IsFinal" IS 'Whether the usage of the day is final. False: provisional, the estimate may still change.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage."x_CoverageStatus" IS 'Status of the day''s usage, the first that applies: failed, unverified, provisional, ok.';
COMMENT ON VIEW reporting_detail.focus_1_4_cost_and_usage_by_resource IS 'What usage costs by project, deployment or sandbox and owner, in the columns of FOCUS 1.4. Grain: UTC day x workspace x SKU x price x billing month x project, deployment or sandbox x owner (key: x_SourceId, x_BillingMonth, x_UsageDate, SubAccountId, SkuId, SkuPriceId, BillingCurrency, ContractedUnitPrice, ResourceType, ResourceId, Tags, AllocatedMethodDetails). These are the charges of focus_1_4_cost_and_usage, divided: never add the two. An ESTIMATE from the imported prices, not an invoice. Tags has the resource''s tags of the day and, as usage-etl/owner and usage-etl/cost_center, who pays by the owner file. A part without a resource has null ResourceId. Costs add up over all keys within one BillingCurrency to focus_1_4_cost_and_usage, to the last digit. Closed months keep their charges, and are divided by today''s counts, rules and names. Filter on x_UsageDate.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."AllocatedMethodDetails" IS 'JSON object as text with the owner''s share. Null: owners do not share the row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."AllocatedMethodId" IS 'usage-etl/owner-shares. Null: owners do not share the row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."AllocatedResourceId" IS 'Owner of the share. Null: owners do not share the row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."AllocatedResourceName" IS 'Same as AllocatedResourceId.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."AllocatedTags" IS 'JSON object as text: owner and cost centre of the share. Null: owners do not share the row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."AvailabilityZone" IS 'Null: the platform names no zones.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."BilledCost" IS 'Estimate: unit price times PricingQuantity, exactly. Adds up within one BillingCurrency.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."BillingAccountId" IS 'The platform''s id of the organization; the slug of the source if the platform gives none.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."BillingAccountName" IS 'Name of the organization; the slug of the source if the platform gives none.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."BillingAccountType" IS 'Organization.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."BillingCurrency" IS 'ISO 4217 code of the imported price. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."BillingPeriodEnd" IS 'End of the UTC calendar month, not included.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."BillingPeriodStart" IS 'Start of the UTC calendar month.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CapacityReservationId" IS 'Null: no capacity is reserved.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CapacityReservationStatus" IS 'Null: no capacity is reserved.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ChargeCategory" IS 'Usage.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ChargeClass" IS 'Correction: a change of a month since it was closed, with quantities and costs that may be negative. Null: any other charge.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ChargeDescription" IS 'The charge in words.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ChargeFrequency" IS 'Usage-Based.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ChargePeriodEnd" IS 'End of the UTC day, not included.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ChargePeriodStart" IS 'Start of the UTC day.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CommitmentDiscountCategory" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CommitmentDiscountId" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CommitmentDiscountName" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CommitmentDiscountQuantity" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CommitmentDiscountStatus" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CommitmentDiscountType" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CommitmentDiscountUnit" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."CommitmentProgramEligibilityDetails" IS 'Null: no commitments are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ConsumedQuantity" IS 'What the SKU counts. Adds up over days and workspaces within one SkuId: two SKUs may charge the same traces.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ConsumedUnit" IS 'Traces, Nodes, Runs, Seconds, LCU or LSU, as the SKU counts.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ContractApplied" IS 'Null: no contracts are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ContractedCost" IS 'Same as BilledCost: ContractedUnitPrice times PricingQuantity.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ContractedUnitPrice" IS 'Imported price of one unit of ConsumedQuantity, in BillingCurrency.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."EffectiveCost" IS 'Same as BilledCost: nothing is paid in advance.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."HostProviderName" IS 'Same as ServiceProviderName: on whose servers the platform runs is not known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."InvoiceDetailId" IS 'Null: a day''s charge is a part of a line.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."InvoiceId" IS 'Number of the settled invoice that charges the SKU and workspace in this month. Null: an estimate, which is on no settled invoice, or a correction.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."InvoiceIssuerName" IS 'Who invoices the usage: USAGE_INVOICE_ISSUER_NAME, or the provider.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ListCost" IS 'Same as BilledCost: only imported prices are known, no list prices.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ListUnitPrice" IS 'The imported unit price: no list prices are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."PricingCategory" IS 'Standard.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."PricingCurrency" IS 'Same as BillingCurrency.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."PricingCurrencyContractedUnitPrice" IS 'Same as ContractedUnitPrice.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."PricingCurrencyEffectiveCost" IS 'Same as EffectiveCost.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."PricingCurrencyListUnitPrice" IS 'Same as ListUnitPrice.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."PricingQuantity" IS 'Same as ConsumedQuantity.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."PricingUnit" IS 'Traces, Nodes, Runs, Seconds, LCU or LSU, as the SKU counts.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."RegionId" IS 'Null: usage is not counted by region.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."RegionName" IS 'Null: usage is not counted by region.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ResourceId" IS 'The platform''s id of the project, deployment or sandbox. Null: a row by workspace, or usage of no resource.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ResourceName" IS 'Name of the resource. Null: a row by workspace, or usage of no resource.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ResourceType" IS 'Project, Deployment or Sandbox. Null: a row by workspace, or usage of no resource.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ServiceCategory" IS 'AI and Machine Learning.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ServiceName" IS 'Agent platform traces, Agent platform deployments, or Agent platform sandboxes.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ServiceProviderName" IS 'USAGE_PROVIDER_NAME, or the host of the platform''s billing API.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."ServiceSubcategory" IS 'AI Platforms.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."SkuId" IS 'SKU of the imported price.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."SkuMeter" IS 'What the SKU counts: Traces, Long-lived Traces, Short-lived Traces, Nodes Executed, Agent Runs, Agent Uptime, Sandbox Compute Units or Sandbox Storage Units.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."SkuPriceDetails" IS 'JSON object as text: the volume tier of the price and its first quantity; {} without tiers.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."SkuPriceId" IS 'Number of the imported price, and of the volume tier where it has tiers: one unit price each.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."SubAccountId" IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."SubAccountName" IS 'Name of the workspace on the day of the charge, or its id if it has none.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."SubAccountType" IS 'Workspace.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."Tags" IS 'JSON object as text: tags of the resource and, as usage-etl/owner and usage-etl/cost_center, who pays. Empty in rows by workspace.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."x_SourceId" IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."x_UsageDate" IS 'UTC day of the charge, for filters and joins with the other views.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."x_BillingMonth" IS 'First day of the billing period, a UTC calendar month.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."x_IsFinal" IS 'Whether the usage of the day is final. False: provisional, the estimate may still change.';
COMMENT ON COLUMN reporting_detail.focus_1_4_cost_and_usage_by_resource."x_CoverageStatus" IS 'Status of the day''s usage, the first that applies: failed, unverified, provisional, ok.';
COMMENT ON VIEW reporting_detail.focus_1_4_invoice_detail IS 'What invoices charge, in the columns of FOCUS 1.4 InvoiceDetail. Grain: invoice x line, without sum rows (key: x_SourceId, InvoiceIssuerName, InvoiceDetailId). The billing period is the month of issue. These are invoiced amounts, with tax and credits.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."BilledCost" IS 'Amount of the line in BillingCurrency.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."BillingAccountId" IS 'The account on the invoice; otherwise the platform''s id of the organization.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."BillingCurrency" IS 'ISO 4217 code of the invoice.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."BillingPeriodEnd" IS 'Start of the month after the month of issue, UTC.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."BillingPeriodStart" IS 'Start of the month of issue, UTC.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."ChargeCategory" IS 'Usage, Purchase (seats and commitments), Tax, Credit (also discounts and drawdowns) or Adjustment.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceDetailCreated" IS 'When the invoice was imported.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceDetailDescription" IS 'Text of the line, after that of its sum row.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceDetailGrain" IS 'JSON: workspace, SKU and period of the line, as far as they are known.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceDetailId" IS 'Number of the invoice and place of the line.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceDetailLastUpdated" IS 'When this version of the invoice was imported.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceId" IS 'Number of the invoice.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceIssueDate" IS 'Day of issue, UTC.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceIssueStatus" IS 'Open, Issued or Voided.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."InvoiceIssuerName" IS 'Who issued the invoice.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."PaymentCurrency" IS 'The same as BillingCurrency.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."PaymentCurrencyBilledCost" IS 'The same as BilledCost.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."PaymentCurrencyInvoiceDetailId" IS 'The same as InvoiceDetailId.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."PaymentDueDate" IS 'Day on which the invoice is due. Null: the invoice does not write it.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."PaymentTerms" IS 'Terms of payment. Not stated: the invoice does not write them.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."PurchaseOrderNumber" IS 'Number of the purchase order. Null: the invoice does not write it.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."ReferenceInvoiceId" IS 'Number of the invoice that this one corrects; otherwise its own.';
COMMENT ON COLUMN reporting_detail.focus_1_4_invoice_detail."x_SourceId" IS 'Slug of the source.';
COMMENT ON VIEW reporting_detail.invoice_comparison IS 'Why an invoice differs from our bill of the same usage. Grain: invoice x cause, of the newest comparison (key: source_id, issuer, invoice_number, cause_number). The amounts of an invoice add up to its difference, to the last digit. An invoice that was never compared, or is equal to the bill, has no row.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.issuer IS 'Who issued the invoice.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.invoice_number IS 'Number of the invoice.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.cause_number IS 'Place of the cause in the order in which causes are worked out, from 1.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.status IS 'Whether the invoice is open (a draft), issued or voided.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.issued_on IS 'Day of issue.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.currency IS 'ISO 4217 code of the invoice. Never add amounts of different currencies.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.invoice_total IS 'Total of the invoice, with tax. The same in each row of an invoice: never add up.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.bill_total IS 'Our bill of the usage that the invoice charges, exact. The same in each row of an invoice: never add up.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.difference IS 'invoice_total less bill_total. The same in each row of an invoice: never add up.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.cause IS 'What the amount comes from: rounding, period (another period), changes (after the day of issue), upgrades, days_open (days that are not loaded or not final), unread_workspace (one that no sync loads), counted_over (volume tiers of the organization or of each workspace), price, not_reported (usage that no API reports), seat, credit, tax, adjustment, or unexplained.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.why IS 'What is unexplained. Null: the amount is explained.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.amount IS 'How much higher the invoice is because of the cause. Negative: lower. Adds up to difference.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.sku IS 'SKU of our bill. Null: the cause is no usage.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.cause_start IS 'First day of the usage. Null: the cause has no period.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.cause_end IS 'Day after the last day of the usage.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.cause_workspace IS 'The platform''s id of the workspace, or the invoice''s word for one that is not known here. Null: all workspaces.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.quantity IS 'How much more usage the invoice has because of the cause. Null: the same usage.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.line_number IS 'Line of the invoice. Null: the cause is not about one line.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.settled_at IS 'When the invoice was last settled. Null: nobody has settled it.';
COMMENT ON COLUMN reporting_detail.invoice_comparison.settlement_reason IS 'Why what is unexplained was accepted.';
COMMENT ON VIEW reporting_detail.owner_assignment IS 'Who owns which project, user, API key or workspace, and on which days. Grain: id x its days x owner who pays a share of them (key: source_id, workspace_id, group_by, dimension_id, valid_from, owner, cost_center). It shows the owner file that was applied last. The id (none), with null group_by, is the rest of a workspace: its usage without an id. An id or a day without a row has no owner.';
COMMENT ON COLUMN reporting_detail.owner_assignment.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.owner_assignment.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.owner_assignment.group_by IS 'What the id names: project, user or api_key (the dimension that divides traces), deployment or sandbox. Null: the rest of the workspace.';
COMMENT ON COLUMN reporting_detail.owner_assignment.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.owner_assignment.valid_from IS 'First UTC day on which the owner has the id. 1900-01-01: from the beginning.';
COMMENT ON COLUMN reporting_detail.owner_assignment.valid_to IS 'First UTC day on which the owner no longer has the id. 9999-12-31: no end is set.';
COMMENT ON COLUMN reporting_detail.owner_assignment.owner IS 'Who pays: an owner of the owner file, or the value of the tag that the rule names.';
COMMENT ON COLUMN reporting_detail.owner_assignment.cost_center IS 'Cost centre of the owner, as the rule names it. (none): the rule names no cost centre.';
COMMENT ON COLUMN reporting_detail.owner_assignment.share IS 'The owner''s share of the id''s usage, at most 1. The shares of one id and day add up to 1.';
COMMENT ON COLUMN reporting_detail.owner_assignment.rule_number IS 'Place of the rule in the owner file. The first rule that matches a day decides.';
COMMENT ON COLUMN reporting_detail.owner_assignment.line IS 'Line of the owner file on which the rule begins.';
COMMENT ON VIEW reporting_detail.provider_statement_line IS 'What the platform also reports, in NO total: members, spend through its gateway, units and limits of Engine and Fleet. Grain: UTC day of a reading x kind x what it is about (key: source_id, taken_on, kind, line_id). Each row is a SNAPSHOT of that night. Never add values, except engine_units of one day over line_id. A day without a row was not read: that is not zero.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.taken_on IS 'UTC day on which the platform was asked.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.kind IS 'What the line is: members, gateway_spend, engine_units, engine_enforced_limit, engine_limit or fleet_limit.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.line_id IS 'The platform''s ids: of the policy, or of the workspace and project. An entry without an id has its place in parentheses. Empty: the organization.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.name IS 'The kind in words.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.subject IS 'Whom the line is about, in the platform''s words and ids. Null: the organization.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.window_name IS 'The window under way that the value counts, in the platform''s word. Null: none, or it is not named. A policy with several windows lists them all, since the platform does not say which one it counted.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.month_start IS 'First day of the calendar month (UTC) that the line belongs to.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.value IS 'The platform''s number, in unit. Null: unknown or, if remark says so, no limit. Never zero.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.unit IS 'Unit of value: members, USD or LCU.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.remark IS 'What is special: no limit, an unknown value, or a refused one with its place in the response.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.endpoint IS 'The request whose response gave the line.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.does_not_say IS 'What the line does not say.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.is_newest IS 'Whether the line is of the newest reading of its kind for the month.';
COMMENT ON COLUMN reporting_detail.provider_statement_line.read_at IS 'When this was last read from the platform.';
COMMENT ON VIEW reporting_detail.usage_coverage_by_kind_daily IS 'Which days of retention tiers, deployments, sandboxes and evaluators are missing. Grain: UTC day x workspace x dimension x kind of usage x tier (key: source_id, usage_date, workspace_id, group_by, kind, trace_tier). Each kind and tier has the status of its own responses. For days of traces take usage_coverage_daily, where hours can fill a day. Never count days over kinds and tiers. All days from the data start on are expected, for deployments from their own beginning if that is earlier.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.kind IS 'Kind of usage: traces, langsmith_deployments, sandboxes or evaluators.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.trace_tier IS 'Requested tier: all, longlived or shortlived. Short-lived traces need no response of their own: they are all traces less the long-lived ones.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.is_reconciled IS 'Whether the day was compared with a complete CSV export of the platform, in this dimension and workspace, no difference from the export or a total remains, and the day has not changed since. If is_final is true too, close lists nothing about the day.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.reconciled_at IS 'When that export was requested, by the clock of this database. For hours: the oldest of the exports that they need. Null: not reconciled.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.totals_matched_at IS 'When a total of the platform was requested that includes the day and equals the sum of the stored days, none of which has changed since. Null: there is no such total, or the day still has a difference. A total proves the sum, an export proves each row.';
COMMENT ON COLUMN reporting_detail.usage_coverage_by_kind_daily.proved_at IS 'The later of reconciled_at and totals_matched_at. Null: neither proves the day.';
COMMENT ON VIEW reporting_detail.usage_coverage_daily IS 'Which days of traces are missing and why, which are final, and which are proved. Grain: UTC day x workspace x dimension x stride (key: source_id, usage_date, workspace_id, group_by, stride). Choose one group_by and one stride. It covers traces of all tiers, as the views of traces show them: hours fill a day that is not loaded itself. Other usage is in usage_coverage_by_kind_daily, so no day is counted twice here. status shows whether the figures of the day can be used, or why not: missing, failed, unverified, not_available. All days from the data start on are expected, and the hours that are kept up to date.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.is_reconciled IS 'Whether the day was compared with a complete CSV export of the platform, in this dimension and workspace, no difference from the export or a total remains, and the day has not changed since. If is_final is true too, close lists nothing about the day.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.reconciled_at IS 'When that export was requested, by the clock of this database. For hours: the oldest of the exports that they need. Null: not reconciled.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.totals_matched_at IS 'When a total of the platform was requested that includes the day and equals the sum of the stored days, none of which has changed since. Null: there is no such total, or the day still has a difference. A total proves the sum, an export proves each row.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.proved_at IS 'The later of reconciled_at and totals_matched_at. Null: neither proves the day.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.fetched_at IS 'When the day was requested from the platform in this dimension and stride, by the clock of this database. For hours: the oldest request. Null: no part of the day is loaded.';
COMMENT ON COLUMN reporting_detail.usage_coverage_daily.sum_confirmed_at IS 'When the sum of the day was last known to be unchanged. It is fetched_at or, while the day is provisional, the time of a later response by workspace that has as many traces as the sum of this dimension. It does not confirm the traces of each project, user or key. Null: the row is of hours, or nothing is loaded.';
COMMENT ON VIEW reporting_detail.usage_late_change IS 'How late counts still changed. Grain: day of observation x retention tier x dimension x stride x whether the count was final x class of ages (key: source_id, observed_on, trace_tier, group_by, stride, was_final, age_hours). Only changes of buckets that had ended before the previous response are counted. Never add up over tiers, dimensions or strides.';
COMMENT ON COLUMN reporting_detail.usage_late_change.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_late_change.observed_on IS 'UTC day on which the change was found.';
COMMENT ON COLUMN reporting_detail.usage_late_change.trace_tier IS 'Requested retention tier: all, longlived or shortlived.';
COMMENT ON COLUMN reporting_detail.usage_late_change.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.usage_late_change.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting_detail.usage_late_change.was_final IS 'Whether the count was final when it changed.';
COMMENT ON COLUMN reporting_detail.usage_late_change.age_hours IS 'Upper end of the class of ages, in hours since the end of the bucket.';
COMMENT ON COLUMN reporting_detail.usage_late_change.changes IS 'Number of counts that changed. Adds up over days of observation and classes within one group_by and stride.';
COMMENT ON COLUMN reporting_detail.usage_late_change.traces_moved IS 'Sum of the absolute changes, in traces. Adds up over days of observation and classes within one group_by and stride.';
COMMENT ON VIEW reporting_detail.usage_limit IS 'Which limits the platform enforces, and how much of each is used this month. Grain: source x workspace x kind of limit, as it was last read, in the current UTC calendar month (key: source_id, workspace_id, limit_type). The workspace (all) is the organization. Never add up limits.';
COMMENT ON COLUMN reporting_detail.usage_limit.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_limit.workspace_id IS 'The platform''s id of the workspace; (all) for the organization.';
COMMENT ON COLUMN reporting_detail.usage_limit.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_limit.limit_type IS 'The platform''s word for the limit: monthly_traces, monthly_longlived_traces, or another limit, whose usage is not known here.';
COMMENT ON COLUMN reporting_detail.usage_limit.limit_value IS 'Most traces that the limit allows in a month. Null: there is no limit.';
COMMENT ON COLUMN reporting_detail.usage_limit.is_rejecting IS 'Whether the platform rejected traces of the workspace because of this limit when the limit was read.';
COMMENT ON COLUMN reporting_detail.usage_limit.month_start IS 'First day of the current calendar month (UTC). It is inferred that limits count by calendar month.';
COMMENT ON COLUMN reporting_detail.usage_limit.traces_loaded IS 'Loaded traces of the limit''s kind in the month, those of provisional days too. Days that are not loaded are left out, so the true number may be larger. Null: the kind is not loaded.';
COMMENT ON COLUMN reporting_detail.usage_limit.is_complete IS 'Whether every day of the month that has ended is loaded, and no workspace that the limit counts is left out.';
COMMENT ON COLUMN reporting_detail.usage_limit.days_final IS 'Days of the month that are final in every workspace of the limit.';
COMMENT ON COLUMN reporting_detail.usage_limit.final_traces IS 'Traces of these final days. Null: no day is final yet.';
COMMENT ON COLUMN reporting_detail.usage_limit.used_percent IS 'traces_loaded in percent of limit_value, rounded down. Null: no limit, or its usage is not known. Does not add up.';
COMMENT ON COLUMN reporting_detail.usage_limit.reached_on IS 'UTC day of this month on which the limit is reached at the average pace of the final days, whatever the weekday, and of traces_not_loaded. Null: it is already reached, it is not reached this month at this pace, or no pace is known.';
COMMENT ON COLUMN reporting_detail.usage_limit.read_at IS 'When this was last read from the platform.';
COMMENT ON COLUMN reporting_detail.usage_limit.workspaces_not_loaded IS 'Workspaces that a limit of the organization counts and no sync loads, by the platform or the billing provider.';
COMMENT ON COLUMN reporting_detail.usage_limit.traces_not_loaded IS 'Traces of these workspaces in a month: the larger of the last and the current month. They are in no other column.';
COMMENT ON VIEW reporting_detail.usage_month_to_date IS 'How many traces this month has so far, compared with the same days of the last month, by workspace. Grain: source x workspace, in the current UTC calendar month (key: source_id, workspace_id). It also estimates the whole month, and has no costs. Traces add up over workspaces. A figure is null if a day that it needs is not loaded.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.month_start IS 'First day of the month.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.days_in_month IS 'Days of the calendar month: 28 to 31.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.days_ended IS 'Days of the month that have ended, from the data start on. Does not add up.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.days_final IS 'Days of the month whose figures are final.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.days_provisional IS 'Days of the month that are loaded and not final, including today. Their figures may still grow.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.traces IS 'Month to date: every day that has ended, and today once it is loaded. It equals final_traces plus provisional_traces. Null: a day that has ended is not loaded.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.final_traces IS 'Traces of the final days. Null: no day is final yet.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.provisional_traces IS 'Traces of the days that are loaded and not final: the part that may still grow. Null: there is no such day.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.ended_traces IS 'Month to date without today. Compare it with previous_same_days_traces. Null: one of these days is not loaded, or it is the first day of the month.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.days_compared IS 'Number of days of the month before in previous_same_days_traces: as many as have ended in this month, at most all of that month. Does not add up.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.previous_same_days_traces IS 'Traces of the first days_compared days of the month before. Null: one of them is not loaded or before the data start.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.previous_month_traces IS 'Traces of the whole month before. Null: one of its days is not loaded or before the data start.';
COMMENT ON COLUMN reporting_detail.usage_month_to_date.run_rate_traces IS 'Estimate for the whole month: final_traces divided by the final days, times the days of the month from the data start on, rounded. Weekdays make no difference. Null: no day is final yet, or a day that has ended is not loaded.';
COMMENT ON VIEW reporting_detail.usage_provider_total IS 'Whether the billing provider''s monthly totals equal the stored traces. Grain: source x calendar month x metric of the billing provider x workspace, as it was last read (key: source_id, month_start, metric_id, workspace_id). The billing provider is a second system, which proves no day. Each metric has a row (all) and a row for each of its workspaces: never add both, and never add metrics.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.month_start IS 'First day of the month.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.metric_id IS 'The billing provider''s id of the metric. Where its response has no such metric: no traces, or no longlived.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.workspace_id IS 'The platform''s id of the workspace, which need not be loaded here; (all) for all workspaces of the metric.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.metric_name IS 'The billing provider''s name of the metric. Null: the metric has no name.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.meter IS 'Usage that is compared with the metric: traces (all tiers), longlived, or agent_runs or nodes_executed of deployments. Null: no loaded usage counts it.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.provider_traces IS 'Traces, runs or nodes that the billing provider counts. For a metric without a meter: its amount, in units of the metric. Null: not known, which is not zero.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.stored_traces IS 'Traces, runs or nodes of the stored days of the month when the total was compared. Null: not compared.';
COMMENT ON COLUMN reporting_detail.usage_provider_total.outcome IS 'Result of the comparison. equal or differs: compared. not_final, not_loaded, unknown_value, unknown_workspace, unknown_metric, no_metric, several_metrics, other_period, not_whole: not compared, for that reason. sum_of_workspaces or not_the_sum: the row (all).';
COMMENT ON COLUMN reporting_detail.usage_provider_total.read_at IS 'When this was last read from the platform.';
COMMENT ON VIEW reporting_detail.usage_reconciliation IS 'Where the platform''s export or totals differed from the stored amounts, and how each difference ended. Grain: one difference between a stored amount and another figure of the platform, of any kind of usage (key: source_id, usage_kind, trace_tier, measure, kind, group_by, period_start, period_end, workspace_id, dimension_id). Differences with the state open or platform_disagrees still exist.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.usage_kind IS 'Kind of usage: traces, langsmith_deployments (the platform''s words), sandboxes or evaluators.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.trace_tier IS 'Retention tier of the traces: all, longlived or shortlived.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.measure IS 'What the amounts count: traces, or for deployments nodes_executed, agent_runs or agent_uptime_seconds (a raw sum over replicas), or for sandboxes lcu, lsu or standard units, or for evaluators spend_usd or evaluated_traces.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.period_start IS 'Start of the time bucket.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.period_end IS 'End of the time bucket, not included.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.stored_amount IS 'Stored amount of the measure. For a tier_total: the stored traces of all tiers less the long-lived ones. Null: no record. Does not add up.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.other_amount IS 'Amount in the CSV export, or the total that the stored days should add up to. Null: no record. Does not add up.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.kind IS 'How the amounts differ. From the CSV export: missing_in_store, missing_in_export, traces_differ (the amounts differ), bucket_end_differs, name_differs. From totals: stride_total (days compared with a window of weeks, months or years), grouping_total (a dimension compared with the workspace), tier_total (short-lived traces compared with all traces less the long-lived ones), tier_exceeds (more long-lived traces than traces), provider_total (a calendar month compared with the billing provider).';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.state IS 'How the difference ended. open: will be fetched again; platform_disagrees: fetched twice, the platform contradicts itself; repaired: the stored count was outdated and was replaced; unattributed: the workspace has more traces than the ids of the dimension; closed: a later check did not find the difference; withdrawn: fetched again, the platform agrees with the stored count, and nothing was changed; not_configured: the workspace is no longer read; hours_dropped: the hour is no longer kept.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.found_at IS 'When the difference was first found.';
COMMENT ON COLUMN reporting_detail.usage_reconciliation.export_says IS 'Name or end of the bucket in the CSV export, if it differs. Null: neither differs, or it is the name of a user.';
COMMENT ON VIEW reporting_detail.usage_record IS 'What is stored, record by record. Grain: one stored record, at its own stride (key: source_id, group_by, stride, period_start, workspace_id, dimension_id). NEVER SUM without one group_by and one stride: each shows the same traces in another way.';
COMMENT ON COLUMN reporting_detail.usage_record.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_record.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.usage_record.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting_detail.usage_record.period_start IS 'Start of the time bucket.';
COMMENT ON COLUMN reporting_detail.usage_record.period_end IS 'End of the time bucket, not included.';
COMMENT ON COLUMN reporting_detail.usage_record.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_record.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.usage_record.dimension_name IS 'Current name in this dimension. Null for users: their addresses are in dim_user.';
COMMENT ON COLUMN reporting_detail.usage_record.traces IS 'Number of traces. Adds up over time and over the view''s own key, never across dimensions or strides. Null: not loaded.';
COMMENT ON COLUMN reporting_detail.usage_record.is_final IS 'Whether the record is final: it was fetched at least USAGE_SETTLE_AFTER after the UTC day of its bucket ended, or it was final before.';
COMMENT ON COLUMN reporting_detail.usage_record.fetched_at IS 'When the figures were requested from the platform, by the clock of this database. Null: not loaded.';
COMMENT ON VIEW reporting_detail.usage_restatement IS 'Which final figures were changed afterwards, and when. Grain: one change of a final figure, of any kind of usage (key: source_id, usage_kind, trace_tier, measure, group_by, stride, period_start, workspace_id, dimension_id, restated_at). Choose one usage_kind, trace_tier, measure, group_by and stride: never add up over two.';
COMMENT ON COLUMN reporting_detail.usage_restatement.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_restatement.usage_kind IS 'Kind of usage: traces, langsmith_deployments (the platform''s words), sandboxes or evaluators.';
COMMENT ON COLUMN reporting_detail.usage_restatement.trace_tier IS 'Retention tier of the traces: all, longlived or shortlived.';
COMMENT ON COLUMN reporting_detail.usage_restatement.measure IS 'What the amounts count: traces, or for deployments nodes_executed, agent_runs or agent_uptime_seconds (a raw sum over replicas), or for sandboxes lcu, lsu or standard units, or for evaluators spend_usd or evaluated_traces.';
COMMENT ON COLUMN reporting_detail.usage_restatement.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.usage_restatement.stride IS 'Size of the time bucket: hour, day, week (7 days), month (30 days) or year (365 days).';
COMMENT ON COLUMN reporting_detail.usage_restatement.period_start IS 'Start of the time bucket.';
COMMENT ON COLUMN reporting_detail.usage_restatement.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_restatement.dimension_id IS E'The platform''s id in this dimension. (none): the platform gave no id. \\(none): an id that is spelled (none).';
COMMENT ON COLUMN reporting_detail.usage_restatement.old_amount IS 'Amount of the measure before the change. Null: no record. Does not add up: one bucket may change more than once.';
COMMENT ON COLUMN reporting_detail.usage_restatement.new_amount IS 'Amount of the measure after the change. Null: no record. Does not add up: one bucket may change more than once.';
COMMENT ON COLUMN reporting_detail.usage_restatement.restated_at IS 'When the change was stored.';
COMMENT ON VIEW reporting_detail.usage_unattributed_daily IS 'Traces that name no project, user or API key, by day. Grain: UTC day x workspace x dimension other than workspace (key: source_id, usage_date, workspace_id, group_by). Traces and costs without an owner are another question: see the owner (unallocated) in fct_cost_owner_daily. Never add up over dimensions: each counts the same traces. Filter on usage_date or use LIMIT: ORDER BY alone adds up every day.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.group_by IS 'Dimension: workspace, project, user or api_key.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.workspace_traces IS 'Traces of the day by workspace. Null: not loaded. Adds up over days and workspaces within one group_by.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.attributed_traces IS 'Traces of the day whose records have an id in the dimension. Null: not loaded. Adds up over days and workspaces within one group_by.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.unattributed_traces IS 'Traces of the day without an id in the dimension: in records without an id, or in no record at all. Null: one of the two counts is not final. Adds up over days and workspaces within one group_by.';
COMMENT ON COLUMN reporting_detail.usage_unattributed_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON VIEW reporting_detail.usage_unpriced_daily IS 'On which days of a workspace a price is missing. Grain: UTC day x workspace (key: source_id, usage_date, workspace_id), loaded days with usage on which a SKU has no valid price, or whose month was closed without their cost. The lines unpriced of usage_bill_monthly show which usage lacks a price, and how much. If has_other_price is false, the traces cost nothing in the estimates. Traces add up over days and workspaces within one value of has_other_price. Empty without prices, since nothing is estimated then.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.usage_date IS 'UTC day.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.traces IS 'All traces of the workspace on the day, priced or not. Adds up over days and workspaces within one value of has_other_price.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.has_other_price IS 'Whether another SKU has a price on that day. False: the traces of the day have no price at all.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.unpriced_skus IS 'SKUs with a price for the workspace on other days only, separated by commas. Null: no SKU has a price for it on any day.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting_detail.usage_unpriced_daily.coverage_status IS 'Whether the figure can be used: the first of these that applies. Not usable: not_available (the server has no such figures), failed (the last response could not be used), missing (not loaded yet), unverified (no record, and no proof of access). Usable: provisional (may still change), empty (final, and zero), ok (final).';
COMMENT ON VIEW reporting_detail.usage_upgrade_project_monthly IS 'Which share of traces is long-lived and so costs more, by project and month. Grain: calendar month (UTC) x workspace x project (key: source_id, month_start, workspace_id, project_id), months with usage whose days are all loaded in both tiers. It also shows the change since the month before. Traces add up over all keys, shares do not.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.source_id IS 'Slug of the source, the platform organization that usage is read from. With a single source: default.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.month_start IS 'First day of the month.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.workspace_id IS 'The platform''s id of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.workspace_name IS 'Current name of the workspace.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.project_id IS E'The platform''s id of the project. (none): the platform gave no id. \\(none): an id that is spelled (none). Null: the period is not loaded.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.project_name IS 'Current name of the project; not unique.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.traces IS 'Traces of the project in the month, of both tiers. Adds up over months, workspaces and projects. Null: there are more long-lived traces than traces.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.longlived_traces IS 'Long-lived traces of the month. Adds up over months, workspaces and projects.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.longlived_share IS 'longlived_traces divided by traces, from 0 to 1. Does not add up. Null: the project has no traces.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.previous_longlived_traces IS 'Long-lived traces of the month before. Null: not all of its days are loaded. Does not add up over months.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.previous_longlived_share IS 'Share of long-lived traces in the month before. Does not add up. Null: not all of its days are loaded, or the project had no traces.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.longlived_change IS 'longlived_traces less those of the month before. Adds up over workspaces and projects. Null: not all days of the month before are loaded.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.longlived_share_change IS 'longlived_share less that of the month before: 0.1 is ten percentage points. Does not add up. Null: one of them is not known.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.upgraded_when_final IS 'Long-lived traces that came late: those added, less those removed, after the figures of their day were final. Adds up over months, workspaces and projects.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.is_final IS 'Whether the figure is final: it was fetched late enough, and no failure overlaps it. Later changes are kept as restatements.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.is_reconciled IS 'Whether the month is over, each of its days was compared with complete CSV exports of all traces and of the long-lived ones, no difference remains, and no day has changed since.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.reconciled_at IS 'When the oldest of these exports was requested, by the clock of this database. Null: not reconciled.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.totals_matched_at IS 'When the oldest of the totals that equal the stored days of the month was requested, in both tiers; no day has changed since. Null: a day has no such total, or still has a difference.';
COMMENT ON COLUMN reporting_detail.usage_upgrade_project_monthly.proved_at IS 'The oldest proof of a day of the month, in both tiers. Null: a day is not proved.';
COMMENT ON TABLE usage.dated_record IS 'Records of the strides day, week, month and year. The scope of the series has the stride. Never add records of different strides.';