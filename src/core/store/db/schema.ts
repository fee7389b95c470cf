// biome-ignore-all format: `npm run schema` makes this file from the migrated database.
import type { Generated, GeneratedAlways } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import type { Measure, Meter } from "../../domain/usage/meter.ts";
import type { Dimension, GroupBy } from "../../domain/usage/record.ts";

/** Tables, and the views that the code names. Any column of a view may be null. */
export interface Schema {
  "usage.added_line": {
    added_line_id: GeneratedAlways<number>;
    source_id: number;
    month_start: string;
    line_text: string;
    measure: "deployment_lcu" | "deployment_lsu" | null;
    amount: string;
    currency: string;
    reason: string;
    added_by: string | null;
    added_at: Generated<Date>;
  };
  "usage.backfill": {
    backfill_id: GeneratedAlways<number>;
    source_id: number;
    meter: Generated<Meter>;
    stride: Stride;
    period_start: Date;
    period_end: Date;
    groupings: readonly GroupBy[];
    workspace_ids: readonly string[];
    reprocess: "all" | "missing";
    state: Generated<"cancelled" | "done" | "paused" | "running">;
    created_at: Generated<Date>;
    finished_at: Date | null;
  };
  "usage.became_final": {
    scope_id: number;
    period_start: Date;
    period_end: Date;
    final_at: Date;
  };
  "usage.bill_part": {
    source_id: number;
    part: "all_workspaces" | "audit_log" | "billing_period" | "engine_limit" | "engine_units" | "gateway_spend" | "members" | "names" | "provider_totals" | "resource_tags" | "usage_limits";
    refusal: string | null;
    requested_at: Date;
  };
  "usage.billing_period": {
    source_id: number;
    ends_at: Date;
    plan_tier: string | null;
    plan_started_at: Date | null;
    plan_ends_at: Date | null;
    read_at: Date;
  };
  "usage.budget": {
    budget_number: number;
    line: number;
    source: string | null;
    owner: string | null;
    workspace: string | null;
    project: string | null;
    currency: string | null;
    amount: string;
    warn_at: readonly number[];
    per: Generated<"billing_period" | "month">;
  };
  "usage.charge": {
    source_id: number;
    month_start: string;
    usage_date: string;
    workspace_id: number;
    sku: string;
    measure: string;
    is_closed: boolean;
    tier: number;
    price_id: number;
    from_quantity: number;
    unit_price: string;
    currency: string;
    quantity: string;
    cost: string;
    is_final: boolean;
    coverage_status: string;
  };
  "usage.charge_day": {
    source_id: number;
    month_start: string;
    usage_date: string;
    workspace_id: number;
    sku: string;
    measure: string;
    is_closed: boolean;
    currency: string;
    quantity: string;
    cost: string;
    unit_price: string | null;
    quantity_now: string;
    is_final: boolean;
    coverage_status: string;
  };
  "usage.charge_due": {
    source_id: number | null;
    month_start: string | null;
    workspace_ids: readonly number[] | null;
    meters: readonly Meter[] | null;
    days_of_hours: string | null;
    due_number: GeneratedAlways<number>;
  };
  "usage.close": {
    close_id: GeneratedAlways<number>;
    source_id: number;
    period_start: string;
    period_end: string;
    month_start: GeneratedAlways<string | null>;
    closed_at: Generated<Date>;
    settle_after_seconds: number;
    accepted_disagreements: number;
    costs_closed_at: Date | null;
  };
  "usage.closed_charge": {
    close_id: number;
    usage_date: string;
    workspace_id: number;
    sku: string;
    measure: Generated<string>;
    price_id: number;
    tier: number;
    from_quantity: number;
    unit_price: string;
    currency: string;
    quantity: string;
    cost: string;
  };
  "usage.closed_correction": {
    close_id: number;
    usage_date: string;
    workspace_id: number;
    sku: string;
    measure: Generated<string>;
    price_id: number;
    tier: number;
    from_quantity: number;
    unit_price: string;
    currency: string;
    quantity: string;
    cost: string;
  };
  "usage.closed_total": {
    close_id: number;
    series_id: number;
    traces: number;
  };
  "usage.closed_workspace": {
    close_id: number;
    workspace_id: number;
    is_left_out: boolean;
  };
  "usage.configuration_change": {
    change_id: GeneratedAlways<number>;
    source_id: number;
    changed_at: Generated<Date>;
    setting: "base_url" | "data_start" | "key" | "organization" | "workspaces";
    old_value: string | null;
    new_value: string | null;
  };
  "usage.control_check": {
    source_id: number;
    checked_at: Generated<Date>;
    failures: number;
  };
  "usage.coverage": {
    scope_id: number;
    period_start: Date;
    period_end: Date;
    final: boolean;
    fetch_number: number;
    fetched_at: Date;
    traced: string;
    digest: Buffer | null;
    digest_epoch: number | null;
  };
  "usage.dated_record": {
    series_id: number;
    bucket_start: string;
    traces: number;
  };
  "usage.day_proof": {
    scope_id: number;
    starts: readonly Date[];
    reconciled_at: readonly Date[];
    matched_at: readonly Date[];
    proved_at: readonly Date[];
    compared: string;
    totalled: string;
    differing: string;
  };
  "usage.day_state": {
    scope_id: number;
    loaded: string;
    final: string;
    failed: string;
    unverified: string;
    traced: string;
  };
  "usage.difference": {
    scope_id: number;
    compared_with: "export" | "grouping_total" | "provider_total" | "stride_total" | "tier_exceeds" | "tier_total";
    period_start: Date;
    period_end: Date;
    external_id: string;
    measure: Generated<Measure>;
    kind: string;
    stored_traces: number | null;
    other_traces: number | null;
    export_says: string | null;
    state: Generated<"closed" | "hours_dropped" | "not_configured" | "open" | "platform_disagrees" | "repaired" | "unattributed" | "withdrawn">;
    fetch_number: number;
    fetched_at: Generated<Date>;
    found_at: Generated<Date>;
    closed_at: Date | null;
  };
  "usage.ended_session": {
    session: string;
    until: Date;
  };
  "usage.entity": {
    entity_id: GeneratedAlways<number>;
    source_id: number;
    dimension: Dimension;
    external_id: string;
    first_seen_at: Date | null;
    last_seen_at: Date | null;
  };
  "usage.entity_name": {
    entity_id: number;
    fetch_number: number;
    fetched_at: Date;
    name: string;
  };
  "usage.failure": {
    scope_id: number;
    period_start: Date;
    period_end: Date;
    state: "failed" | "unverified";
    code: string;
    message: string;
    attempts: number;
    fetch_number: number;
    failed_at: Date;
    retry_at: Date;
  };
  "usage.fetch": {
    fetch_number: Generated<number>;
    source_id: number;
    run_id: number | null;
    purpose: "load" | "reconcile";
    kind: Generated<string>;
    trace_tier: Generated<string>;
    group_by: GroupBy;
    stride: Stride;
    period_start: Date;
    period_end: Date;
    workspaces: number;
    fetched_at: Generated<Date>;
    finished_at: Date | null;
    outcome: Generated<"compared" | "discarded" | "failed" | "loaded" | "refused" | "running" | "unconfirmed" | "unverified">;
    code: string | null;
    status: number | null;
    records: number | null;
    traces: number | null;
    as_of_limit: Date | null;
  };
  "usage.fetch_task": {
    task_id: GeneratedAlways<number>;
    source_id: number;
    backfill_id: number | null;
    run_id: number | null;
    group_by: GroupBy;
    stride: Stride;
    period_start: Date;
    period_end: Date;
    scope_ids: readonly number[];
    workspace_ids: readonly string[];
    is_idle: Generated<boolean>;
    due_from: Date | null;
    state: Generated<"cancelled" | "done" | "failed" | "queued" | "waiting">;
    generation: Generated<number>;
    open_claims: Generated<number>;
    leased_until: Date | null;
    code: string | null;
    message: string | null;
    created_at: Generated<Date>;
    finished_at: Date | null;
  };
  "usage.hour_state": {
    scope_id: number;
    loaded: string;
    final: string;
    failed: string;
    unverified: string;
    whole_days: string;
    whole_final_days: string;
    traced: string;
  };
  "usage.hourly_record": {
    series_id: number;
    bucket_start: Date;
    traces: number;
  };
  "usage.invoice": {
    invoice_id: GeneratedAlways<number>;
    source_id: number;
    issuer: string;
    number: string;
    status: "issued" | "open" | "voided";
    issued_on: string | null;
    due_on: string | null;
    terms: string | null;
    account: string | null;
    purchase_order: string | null;
    currency: string;
    corrects_number: string | null;
    subtotal: string | null;
    total: string;
    file_name: string;
    file_form: "csv" | "focus" | "json" | "pdf" | "text" | "xlsx";
    file: Buffer;
    file_digest: Buffer;
    accepted_difference: string | null;
    imported_at: Generated<Date>;
    imported_by: string;
    replaced_at: Date | null;
  };
  "usage.invoice_cause": {
    match_id: number;
    place: number;
    cause: "adjustment" | "changes" | "counted_over" | "credit" | "days_open" | "not_reported" | "period" | "price" | "rounding" | "seat" | "tax" | "unexplained" | "unread_workspace" | "upgrades";
    why: string | null;
    amount: string;
    sku: string | null;
    period_start: string | null;
    period_end: string | null;
    workspace: string | null;
    quantity: string | null;
    line_number: number | null;
    days_not_loaded: number | null;
    days_not_final: number | null;
    is_tolerated: boolean;
  };
  "usage.invoice_line": {
    invoice_id: number;
    line_number: number;
    line_text: string;
    is_sum: boolean;
    part_of: number | null;
    kind: "adjustment" | "commitment" | "credit" | "discount" | "drawdown" | "seat" | "tax" | "usage";
    quantity: string | null;
    unit: string | null;
    unit_price: string | null;
    amount: string;
    period_start: string | null;
    period_end: string | null;
    workspace: string | null;
    place: string;
    source_text: string;
  };
  "usage.invoice_match": {
    match_id: GeneratedAlways<number>;
    invoice_id: number;
    inputs: string;
    inputs_digest: Buffer;
    total: string;
    bill: string;
    remainder: string;
    matched_at: Generated<Date>;
    confirmed_at: Generated<Date>;
  };
  "usage.invoice_match_line": {
    match_id: number;
    place: number;
    line_number: number | null;
    state: "agrees" | "not_comparable" | "only_here" | "only_on_invoice" | "price_differs" | "quantity_differs" | "within_tolerance";
    why: string | null;
    measure: string | null;
    sku: string | null;
    period_start: string | null;
    period_end: string | null;
    billed_start: string | null;
    billed_end: string | null;
    divide: string | null;
    workspace: string | null;
    quantity_here: string | null;
    unit_price_here: string | null;
    cost_here: string | null;
  };
  "usage.invoice_rule": {
    rule_number: number;
    line_text: string;
    kind: "adjustment" | "commitment" | "credit" | "discount" | "drawdown" | "seat" | "tax" | "usage" | null;
    unit: string | null;
    valid_from: string | null;
    valid_to: string | null;
    period: "month_of_issue" | "previous_month";
    measure: string | null;
    sku: string | null;
    rounding: "down" | "half_up" | "none";
    tolerance_amount: string | null;
    tolerance_percent: string | null;
    divide: string | null;
  };
  "usage.invoice_settlement": {
    settlement_id: GeneratedAlways<number>;
    invoice_id: number;
    match_id: number;
    reason: string | null;
    settled_at: Generated<Date>;
    settled_by: string;
  };
  "usage.late_change": {
    source_id: number;
    observed_on: string;
    trace_tier: string;
    group_by: GroupBy;
    stride: Stride;
    was_final: boolean;
    age_hours: number;
    changes: number;
    traces_moved: number;
  };
  "usage.later_charge": {
    source_id: number;
    month_start: string;
    usage_date: string;
    workspace_id: number;
    sku: string;
    measure: string;
    is_closed: boolean;
    tier: number;
    price_id: number;
    from_quantity: number;
    unit_price: string;
    currency: string;
    quantity: string;
    cost: string;
    is_final: boolean;
    coverage_status: string;
  };
  "usage.listed_key": {
    entity_id: number;
    last_used_at: Date | null;
    expires_at: Date | null;
    created_by: string | null;
  };
  "usage.logged_change": {
    change_id: GeneratedAlways<number>;
    source_id: number;
    external_id: string;
    operation: string;
    changed_at: Date;
    workspace: string | null;
    user_id: string | null;
    is_certain: boolean;
  };
  "usage.matched_total": {
    scope_id: number;
    period_start: Date;
    period_end: Date;
    total_start: Date;
    total_end: Date;
    fetch_number: number;
    matched_at: Date;
  };
  "usage.monthly_total": {
    series_id: number;
    month_start: string;
    traces: number;
    records: number;
  };
  "usage.notification": {
    source_id: number;
    route: string;
    kind: "access_lost" | "budget" | "control_total" | "difference" | "final_changed" | "invoice_missing" | "invoice_open" | "meter_not_known" | "provider_total" | "refused" | "stale" | "unpriced" | "unusual" | "usage_limit" | "workspace_unloaded";
    owner: string;
    count: number;
    newest: number;
    since: Date;
    notified_at: Date | null;
    ended_at: Date | null;
  };
  "usage.open_charge": {
    source_id: number;
    month_start: string;
    usage_date: string;
    workspace_id: number;
    sku: string;
    measure: string;
    is_closed: boolean;
    tier: number;
    price_id: number;
    from_quantity: number;
    unit_price: string;
    currency: string;
    quantity: string;
    cost: string;
    is_final: boolean;
    coverage_status: string;
  };
  "usage.operator_action": {
    action_id: GeneratedAlways<number>;
    at: Generated<Date>;
    source_id: number | null;
    action: string;
    detail: string;
    actor: string | null;
    role: "operator" | "viewer";
    via: "command" | "page";
    outcome: Generated<"done" | "failed" | "refused">;
  };
  "usage.owner_file": {
    is_only: Generated<boolean>;
    content: string;
    divide_by: "api_key" | "project" | "user";
    applied_at: Generated<Date>;
    budgets_changed_at: Generated<Date>;
  };
  "usage.owner_rule": {
    rule_number: number;
    line: number;
    source: string | null;
    workspace: string | null;
    dimension: "api_key" | "deployment" | "project" | "sandbox" | "user" | null;
    external_id: string | null;
    name_pattern: string | null;
    tag_key: string | null;
    tag_value: string | null;
    valid: string;
  };
  "usage.owner_share": {
    rule_number: number;
    owner: string | null;
    cost_center: string | null;
    share: string;
    share_number: GeneratedAlways<number>;
  };
  "usage.price": {
    price_id: GeneratedAlways<number>;
    sku_id: number;
    source_id: number | null;
    workspace_id: number | null;
    unit_price: string;
    currency: string;
    valid_from: string;
    valid_to: string | null;
    counted_over: Generated<"source" | "workspace">;
    imported_at: Generated<Date>;
  };
  "usage.price_tier": {
    price_id: number;
    from_quantity: number;
    unit_price: string;
  };
  "usage.provider_total": {
    source_id: number;
    month_start: string;
    metric_id: string;
    workspace: string;
    metric_name: string | null;
    meter: "agent_runs" | "longlived" | "nodes_executed" | "traces" | null;
    value: string | null;
    outcome: "differs" | "equal" | "no_metric" | "not_final" | "not_loaded" | "not_the_sum" | "not_whole" | "other_period" | "several_metrics" | "sum_of_workspaces" | "unknown_metric" | "unknown_value" | "unknown_workspace";
    stored_traces: number | null;
    fetch_number: number;
    read_at: Date;
  };
  "usage.recent_naming": {
    source_id: number;
    fetch_number: number;
    part: number;
    fetched_at: Date;
    entity_ids: readonly number[];
    noted_at: Generated<Date>;
  };
  "usage.reconciled": {
    scope_id: number;
    period_start: Date;
    period_end: Date;
    fetch_number: number;
    reconciled_at: Date;
  };
  "usage.resource_tag": {
    workspace_id: number;
    dimension: "deployment" | "project" | "sandbox";
    external_id: string;
    tag_key: string;
    tag_value: string;
    valid_from: string;
    valid_to: string | null;
  };
  "usage.restatement": {
    restatement_id: GeneratedAlways<number>;
    series_id: number;
    bucket_start: Date;
    old_traces: number | null;
    new_traces: number | null;
    fetch_number: number;
    restated_at: Generated<Date>;
  };
  "usage.route": {
    name: string;
    line: number;
    type: "email" | "google_chat" | "pagerduty" | "slack" | "teams" | "webhook";
    setting: string;
    sender: string | null;
    recipients: readonly string[];
    owners: readonly string[] | null;
    kinds: readonly string[] | null;
    severities: readonly string[] | null;
  };
  "usage.route_state": {
    source_id: number;
    route: string;
    claim: string | null;
    claimed_until: Date | null;
    read_at: Date | null;
    failures: Generated<number>;
    problem: string | null;
    next_try_at: Date | null;
  };
  "usage.run": {
    run_id: GeneratedAlways<number>;
    source_id: number;
    kind: "backfill" | "files" | "reconcile" | "sync" | "totals";
    backfill_id: number | null;
    started_at: Generated<Date>;
    finished_at: Date | null;
    seen_at: Date | null;
    outcome: "differs" | "done" | "failed" | "partly_failed" | "skipped" | null;
    tasks: number | null;
    failed: Generated<number>;
    code: string | null;
    message: string | null;
  };
  "usage.run_rule": {
    entity_id: number;
    evaluator_id: string | null;
    evaluator_name: string | null;
    project_id: string | null;
    project_name: string | null;
    dataset_id: string | null;
    dataset_name: string | null;
    weekly_limit_usd: string | null;
    fetch_number: number;
  };
  "usage.scope": {
    scope_id: GeneratedAlways<number>;
    source_id: number;
    kind: Generated<"evaluators" | "langsmith_deployments" | "sandboxes" | "traces">;
    trace_tier: Generated<string>;
    group_by: GroupBy;
    workspace_id: number;
    stride: Stride;
  };
  "usage.series": {
    series_id: GeneratedAlways<number>;
    scope_id: number;
    entity_id: number;
    measure: Generated<Measure>;
  };
  "usage.sku": {
    sku_id: GeneratedAlways<number>;
    name: string;
    measure: Generated<"agent_runs" | "agent_uptime_seconds" | "compute_standard_units" | "lcu" | "longlived" | "lsu" | "nodes_executed" | "shortlived" | "storage_standard_units" | "traces">;
  };
  "usage.source": {
    source_id: GeneratedAlways<number>;
    slug: string;
    base_url: string;
    organization_id: string | null;
    organization_name: string | null;
    data_start: string;
    hourly_hours: number;
    workspace_ids: Generated<readonly string[]>;
    wanted_meters: Generated<readonly Meter[]>;
    configuration_digest: string;
    key_digest: string | null;
    refused_at: Date | null;
    refused_code: string | null;
    refused_message: string | null;
    provider_name: string | null;
    invoice_issuer_name: string | null;
    history_since: Date | null;
    created_at: Generated<Date>;
  };
  "usage.source_fact": {
    source_id: number;
    fact: "no_day" | "no_future_end" | "no_hour" | "no_listing" | "no_month" | "no_week" | "no_year";
    evidence: string;
    learned_at: Generated<Date>;
    probe_after: Date | null;
  };
  "usage.source_meter": {
    source_id: number;
    meter: "deployments" | "evaluators" | "longlived" | "sandboxes" | "shortlived";
    state: "counted" | "not_counted" | "not_known" | "nothing_yet";
    evidence: string;
    starts_on: string | null;
    learned_at: Generated<Date>;
    none_until: Date | null;
    request_again_at: Date;
  };
  "usage.statement_line": {
    source_id: number;
    taken_on: string;
    kind: "engine_enforced_limit" | "engine_limit" | "engine_units" | "fleet_limit" | "gateway_spend" | "members";
    line_id: string;
    subject: string | null;
    window_name: string | null;
    month_start: string;
    value: string | null;
    remark: string | null;
    read_at: Date;
  };
  "usage.unloaded_workspace": {
    source_id: number;
    month_start: string;
    workspace: string;
    name: string | null;
    traces: number;
    read_at: Date;
  };
  "usage.usage_limit": {
    source_id: number;
    workspace: string;
    limit_type: string;
    limit_value: number | null;
    is_rejecting: boolean;
    read_at: Date;
  };
  "usage.withdrawal": {
    scope_id: number;
    period_start: Date;
    period_end: Date;
    final: boolean;
    final_at: Date | null;
    invalidated_at: Date;
  };
  "usage.workspace": {
    entity_id: number;
    readable_at: Date | null;
    readable_since: Date | null;
    used_before: Date | null;
    is_deleted: Generated<boolean>;
    unlisted_since: Date | null;
    tags_since: string | null;
  };
}
