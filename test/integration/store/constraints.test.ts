import type pg from "pg";
import { expect, test } from "vitest";
import { setupStore } from "./setup.ts";

// Each constraint and unique index of the migrations, with a statement that it refuses. Those of keys are made of the catalog.

/** One whole row of everything: source 1, workspace entity 1, project entity 2, scope 1, series 1. */
const WHOLE = `
  INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    VALUES ('default', 'http://platform.test', '2026-01-05', 24, 'digest');
  INSERT INTO usage.configuration_change (source_id, setting, old_value, new_value) VALUES (1, 'base_url', 'http://a', 'http://b');
  INSERT INTO usage.source_meter (source_id, meter, state, evidence, ask_again_at)
    VALUES (1, 'longlived', 'counted', 'test', now());
  INSERT INTO usage.source_fact (source_id, fact, evidence) VALUES (1, 'no_hour', 'test');
  INSERT INTO usage.entity (source_id, dimension, external_id) VALUES (1, 'workspace', 'w1'), (1, 'project', 'p1');
  INSERT INTO usage.entity_name VALUES (1, 1, '2026-01-05Z', 'One');
  INSERT INTO usage.recent_naming VALUES (1, 1, 0, '2026-01-05Z', '{1}');
  INSERT INTO usage.workspace (entity_id) VALUES (1);
  INSERT INTO usage.resource_tag VALUES (1, 'project', 'p1', 'Application', 'chat', '2026-01-01', NULL);
  INSERT INTO usage.run_rule (entity_id, fetch_number) VALUES (1, 1);
  INSERT INTO usage.scope (source_id, group_by, workspace_id, stride) VALUES (1, 'project', 1, 'day');
  INSERT INTO usage.series (scope_id, entity_id) VALUES (1, 2);
  INSERT INTO usage.hourly_record VALUES (1, '2026-01-05Z', 1);
  INSERT INTO usage.dated_record VALUES (1, '2026-01-05', 1);
  INSERT INTO usage.monthly_total (series_id, month_start, traces, records) VALUES (1, '2026-01-01', 1, 1);
  INSERT INTO usage.fetch (source_id, purpose, group_by, stride, period_start, period_end, workspaces)
    VALUES (1, 'load', 'project', 'day', '2026-01-05Z', '2026-01-06Z', 1);
  INSERT INTO usage.coverage VALUES (1, '2026-01-05Z', '2026-01-07Z', true, 1, now(), '{}');
  INSERT INTO usage.hour_state VALUES (1, '{}', '{}', '{}', '{}', '{}', '{}', '{}');
  INSERT INTO usage.failure VALUES (1, '2026-01-05Z', '2026-01-07Z', 'failed', 'code', 'message', 1, 1, now(), now());
  INSERT INTO usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number)
    VALUES (1, '2026-01-05Z', 1, 2, 1);
  INSERT INTO usage.became_final VALUES (1, '2026-01-05Z', '2026-01-07Z', now());
  INSERT INTO usage.withdrawal VALUES (1, '2026-01-05Z', '2026-01-07Z', true, now(), now());
  INSERT INTO usage.late_change VALUES (1, '2026-01-05', 'all', 'project', 'day', true, 24, 1, 1);
  INSERT INTO usage.control_difference (scope_id, kind, period_start, period_end, external_id, state, fetch_number)
    VALUES (1, 'stride_total', '2026-01-05Z', '2026-01-06Z', 'p1', 'platform_disagrees', 1);
  INSERT INTO usage.control_check VALUES (1, '2026-01-05Z', 0);
  INSERT INTO usage.provider_total
    VALUES (1, '2026-01-01', 'm1', 'w1', 'Traces', 'traces', 5, 'equal', 5, 1, now());
  INSERT INTO usage.usage_limit VALUES (1, 'w1', 'monthly_traces', 5, false, now());
  INSERT INTO usage.billing_period VALUES (1, '2026-02-01Z', NULL, NULL, NULL, now());
  INSERT INTO usage.period_close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
    VALUES (1, '2026-01-15', '2026-02-15', 1, 0);
  INSERT INTO usage.period_total VALUES (1, 'project', 'w1', 'p1', 5);
  INSERT INTO usage.bill_part VALUES (1, 'provider_totals', NULL, now());
  INSERT INTO usage.month_close (source_id, month_start, settle_after_seconds, accepted_disagreements)
    VALUES (1, '2026-01-01', 1, 0);
  INSERT INTO usage.closed_total VALUES (1, 1, 5);
  INSERT INTO usage.closed_workspace VALUES (1, 1, false);
  INSERT INTO usage.closed_cost VALUES (1, 1, 'sku', 'traces', 0.5, 'USD', 2, 1);
  INSERT INTO usage.sku (name) VALUES ('traces');
  INSERT INTO usage.price (sku_id, source_id, workspace_id, unit_price, currency, valid_from, valid_to)
    VALUES (1, 1, 1, 0.0005, 'USD', '2026-01-01', '2027-01-01');
  INSERT INTO usage.price_tier VALUES (1, 1000, 0.0004);
  INSERT INTO usage.owner_file VALUES (true, '', 'project', now());
  INSERT INTO usage.owner_rule VALUES (1, 1, NULL, NULL, 'project', 'p1', NULL, NULL, NULL, '(,)');
  INSERT INTO usage.owner_share VALUES (1, 'team', 'cc', 1);
  INSERT INTO usage.budget VALUES (1, 1, NULL, 'team', NULL, NULL, 'USD', 5, '{80}', 'month');
  INSERT INTO usage.closed_charge VALUES (1, '2026-01-05', 1, 'sku', 'traces', 1, 0, 0, 0.5, 'USD', 2, 1);
  INSERT INTO usage.closed_correction VALUES (1, '2026-01-05', 1, 'sku', 'traces', 1, 0, 0, 0.5, 'USD', -2, -1);
  INSERT INTO usage.route VALUES ('mail', 1, 'email', 'USAGE_ROUTE_SMTP', 'a@example.com', '{b@example.com}', NULL, NULL, NULL);
  INSERT INTO usage.route_state VALUES (1, 'mail', 'one', now(), now(), 1, 'it answered 500', now());
  INSERT INTO usage.notification VALUES (1, 'mail', 'stale', '', 1, 0, now(), now(), NULL);
  INSERT INTO usage.ended_session VALUES ('00000000-0000-4000-8000-000000000001', now());
  INSERT INTO usage.reconciliation_difference (scope_id, external_id, bucket_start, kind, fetch_number)
    VALUES (1, 'p1', '2026-01-05Z', 'traces_differ', 1);
  INSERT INTO usage.reconciled VALUES (1, '2026-01-05Z', '2026-01-07Z', 1, now());
  INSERT INTO usage.matched_total VALUES (1, '2026-01-05Z', '2026-01-07Z', '2026-01-05Z', '2026-01-12Z', 1, now());
  INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspace_ids, reprocess)
    VALUES (1, 'day', '2026-01-05Z', '2026-01-06Z', '{project}', '{w1}', 'missing');
  INSERT INTO usage.run (source_id, kind, backfill_id) VALUES (1, 'backfill', 1);
  INSERT INTO usage.operator_action (source_id, action, detail, actor, role, via)
    VALUES (1, 'backfill.start', 'backfill 1', 'ada', 'operator', 'command');
  INSERT INTO usage.fetch_task (source_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
    VALUES (1, 'project', 'day', '2026-01-05Z', '2026-01-06Z', '{1}', '{w1}')`;

/** `column = value` in a copy of the whole row: one change that breaks one constraint. */
function copyOf(table: string, change: Record<string, string>): string {
  const values = Object.entries(change).map(([column, value]) => `'${column}', ${value}`);
  return `
    INSERT INTO usage.${table} OVERRIDING SYSTEM VALUE
    SELECT (jsonb_populate_record(NULL::usage.${table}, to_jsonb(r) || jsonb_build_object(${values.join(", ")}))).*
    FROM (SELECT * FROM usage.${table} ORDER BY 1 LIMIT 1) r`;
}

/** A primary key refuses its row once more, a foreign key one that points nowhere. */
async function keyViolations(reader: pg.Client): Promise<Record<string, string>> {
  const columns = (key: string) => `(
    SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = ${key}.conrelid AND attnum = ANY (${key}.conkey))`;
  const { rows } = await reader.query<{
    name: string;
    table: string;
    points: string[] | null;
    own: string[];
  }>(`
    SELECT k.conname AS name, relname AS "table", CASE k.contype WHEN 'f' THEN ${columns("k")} END AS points,
           coalesce(${columns("p")}, '{}') AS own
    FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
    LEFT JOIN pg_constraint p ON p.conrelid = k.conrelid AND p.contype = 'p'
    WHERE k.connamespace = 'usage'::regnamespace AND k.contype IN ('p', 'f') AND relname NOT LIKE 'kysely%'`);
  return Object.fromEntries(
    rows.map(({ name, table, points, own }) => {
      const [first = ""] = own;
      const changed = points?.some((column) => own.includes(column))
        ? points.slice(-1)
        : [first, ...(points ?? [])];
      const value = points === null ? {} : Object.fromEntries(changed.map((column) => [column, "'9'"]));
      return [name, copyOf(table, value)];
    }),
  );
}

const next = { period_start: "'2026-02-01Z'::timestamptz", period_end: "'2026-02-02Z'::timestamptz" };

const laterPrice = { price_id: "9", valid_from: "'2027-01-01'::date", valid_to: "'2028-01-01'::date" };

/** Of all constraints but primary and foreign keys, and of the key of a table that is empty after each transaction. */
const VIOLATIONS: Readonly<Record<string, string>> = {
  charge_due_pkey: "INSERT INTO usage.charge_due (due_number) OVERRIDING SYSTEM VALUE VALUES (1), (1)",
  backfill_period_order: copyOf("backfill", { backfill_id: "9", ...next, period_end: next.period_start }),
  backfill_reprocess_known: copyOf("backfill", { backfill_id: "9", reprocess: "'some'" }),
  backfill_meter_known: copyOf("backfill", { backfill_id: "9", meter: "'runs'" }),
  backfill_state_known: copyOf("backfill", { backfill_id: "9", state: "'lost'" }),
  backfill_finished_when: copyOf("backfill", { backfill_id: "9", state: "'done'" }),
  provider_total_on_first: copyOf("provider_total", { month_start: "'2026-01-02'" }),
  provider_total_meter_known: copyOf("provider_total", { metric_id: "'m2'", meter: "'deployments'" }),
  provider_total_value_range: copyOf("provider_total", { metric_id: "'m2'", value: "-1" }),
  provider_total_outcome_known: copyOf("provider_total", {
    metric_id: "'m2'",
    outcome: "'guessed'",
    stored_traces: "NULL::bigint",
  }),
  provider_total_compared_when: copyOf("provider_total", { metric_id: "'m2'", outcome: "'not_final'" }),
  usage_limit_value_range: copyOf("usage_limit", { limit_type: "'other'", limit_value: "-1" }),
  period_close_once: copyOf("period_close", { period_close_id: "9" }),
  period_close_order: copyOf("period_close", { period_close_id: "9", period_end: "'2026-01-15'" }),
  period_total_traces_range: copyOf("period_total", { external_id: "'p2'", traces: "0" }),
  bill_part_known: copyOf("bill_part", { part: "'invoices'" }),
  run_kind_known: copyOf("run", { run_id: "9", kind: "'walk'" }),
  run_outcome_known: copyOf("run", { run_id: "9", outcome: "'lost'", finished_at: "now()" }),
  run_finished_when: copyOf("run", { run_id: "9", outcome: "'done'" }),
  configuration_change_setting_known: copyOf("configuration_change", { change_id: "9", setting: "'mood'" }),
  configuration_change_key_unseen: copyOf("configuration_change", { change_id: "9", setting: "'key'" }),
  operator_action_action_form: copyOf("operator_action", { action_id: "9", action: "'Start it'" }),
  operator_action_detail_one_line: copyOf("operator_action", { action_id: "9", detail: "E'two\\nlines'" }),
  operator_action_role_known: copyOf("operator_action", { action_id: "9", role: "'owner'" }),
  operator_action_via_known: copyOf("operator_action", { action_id: "9", via: "'post'" }),
  operator_action_outcome_known: copyOf("operator_action", { action_id: "9", outcome: "'odd'" }),
  fetch_task_period_order: copyOf("fetch_task", { task_id: "9", ...next, period_end: next.period_start }),
  fetch_task_state_known: copyOf("fetch_task", { task_id: "9", state: "'lost'", ...next }),
  fetch_task_lease_when_queued: copyOf("fetch_task", { task_id: "9", state: "'queued'", ...next }),
  fetch_task_finished_when: copyOf("fetch_task", { task_id: "9", state: "'done'", ...next }),
  fetch_task_routine_once: copyOf("fetch_task", { task_id: "9" }),
  source_slug_key: copyOf("source", { source_id: "2" }),
  source_slug_form: copyOf("source", { source_id: "2", slug: "'No Slug'" }),
  source_wanted_meters_known: copyOf("source", {
    source_id: "2",
    slug: "'other'",
    wanted_meters: "ARRAY['nights']",
  }),
  source_provider_name_form: copyOf("source", { source_id: "2", slug: "'other'", provider_name: "' '" }),
  source_invoice_issuer_name_form: copyOf("source", {
    source_id: "2",
    slug: "'other'",
    invoice_issuer_name: "''",
  }),
  source_refusal_whole: copyOf("source", { source_id: "2", slug: "'other'", refused_at: "now()" }),
  source_fact_known: copyOf("source_fact", { fact: "'no_minute'" }),
  source_meter_known: copyOf("source_meter", { meter: "'traces'" }),
  source_meter_state_known: copyOf("source_meter", { meter: "'shortlived'", state: "'doubtful'" }),
  source_meter_starts: copyOf("source_meter", { meter: "'shortlived'", starts_on: "'2026-01-01'::date" }),
  entity_identity: copyOf("entity", { entity_id: "9" }),
  entity_dimension_known: copyOf("entity", { entity_id: "9", dimension: "'planet'" }),
  entity_external_id_length: copyOf("entity", { entity_id: "9", external_id: "repeat('é', 501)" }),
  resource_tag_dimension_known: copyOf("resource_tag", { dimension: "'user'" }),
  resource_tag_order: copyOf("resource_tag", { tag_key: "'b'", valid_to: "'2026-01-01'" }),
  resource_tag_current: copyOf("resource_tag", { valid_from: "'2026-02-01'" }),
  scope_identity: copyOf("scope", { scope_id: "9" }),
  scope_kind_known: copyOf("scope", { scope_id: "9", kind: "'runs'" }),
  scope_trace_tier_known: copyOf("scope", { scope_id: "9", trace_tier: "'extended'" }),
  scope_group_by_known: copyOf("scope", { scope_id: "9", group_by: "'planet'" }),
  scope_stride_known: copyOf("scope", { scope_id: "9", stride: "'minute'" }),
  series_measure_known: copyOf("series", { series_id: "9", measure: "'tokens'" }),
  series_identity: copyOf("series", { series_id: "9" }),
  hourly_record_traces_range: copyOf("hourly_record", { series_id: "9", traces: "-1" }),
  dated_record_traces_range: copyOf("dated_record", { series_id: "9", traces: "-1" }),
  monthly_total_on_first: copyOf("monthly_total", { month_start: "'2026-01-02'::date" }),
  monthly_total_traces_range: copyOf("monthly_total", { series_id: "9", traces: "-1" }),
  monthly_total_records_counted: copyOf("monthly_total", { series_id: "9", records: "0" }),
  fetch_purpose_known: copyOf("fetch", { fetch_number: "9", purpose: "'fun'" }),
  fetch_outcome_known: copyOf("fetch", { fetch_number: "9", outcome: "'lost'" }),
  coverage_period_order: copyOf("coverage", { ...next, period_end: next.period_start }),
  coverage_traced_within: "UPDATE usage.coverage SET traced = '{[2026-01-04Z,2026-01-06Z)}'",
  day_proof_alike: "UPDATE usage.day_proof SET starts = '{}'",
  coverage_digest_epoch: "UPDATE usage.coverage SET digest = ''",
  coverage_no_overlap: copyOf("coverage", { period_start: "'2026-01-06Z'::timestamptz" }),
  failure_period_order: copyOf("failure", { ...next, period_end: next.period_start }),
  failure_state_known: copyOf("failure", { ...next, state: "'bored'" }),
  failure_attempts_counted: copyOf("failure", { ...next, attempts: "0" }),
  failure_no_overlap: copyOf("failure", { period_start: "'2026-01-06Z'::timestamptz" }),
  withdrawal_period_order: copyOf("withdrawal", { ...next, period_end: next.period_start }),
  became_final_period_order: copyOf("became_final", { ...next, period_end: next.period_start }),
  became_final_no_overlap: copyOf("became_final", { period_start: "'2026-01-06Z'::timestamptz" }),
  late_change_age_range: copyOf("late_change", { age_hours: "0" }),
  control_difference_measure_known: copyOf("control_difference", { measure: "'other'" }),
  control_difference_period_order: copyOf("control_difference", { period_end: "'2026-01-05Z'::timestamptz" }),
  control_difference_kind_known: copyOf("control_difference", { kind: "'other'" }),
  control_difference_state_known: copyOf("control_difference", { external_id: "'p2'", state: "'lost'" }),
  control_difference_closed_when: copyOf("control_difference", { external_id: "'p2'", state: "'closed'" }),
  month_close_once: copyOf("month_close", { close_id: "9" }),
  month_close_on_first: copyOf("month_close", { close_id: "9", month_start: "'2026-01-02'::date" }),
  month_close_settle_after_range: copyOf("month_close", { close_id: "9", settle_after_seconds: "-1" }),
  closed_cost_traces_range: copyOf("closed_cost", { traces: "0" }),
  closed_charge_traces_range: copyOf("closed_charge", { traces: "0" }),
  charge_traces_range: copyOf("charge", { traces: "0" }),
  closed_correction_traces_nonzero: copyOf("closed_correction", { sku: "'other'", traces: "0" }),
  closed_total_traces_range: copyOf("closed_total", { traces: "0" }),
  sku_name_key: copyOf("sku", { sku_id: "9" }),
  sku_name_form: copyOf("sku", { sku_id: "9", name: "' '" }),
  price_unit_price_range: copyOf("price", { ...laterPrice, unit_price: "-0.0000000001" }),
  price_currency_form: copyOf("price", { ...laterPrice, currency: "'usd'" }),
  price_validity_order: copyOf("price", { ...laterPrice, valid_to: laterPrice.valid_from }),
  price_workspace_of_source: copyOf("price", { ...laterPrice, source_id: "NULL" }),
  price_no_overlap: copyOf("price", { price_id: "9", valid_from: "'2026-12-31'::date", valid_to: "NULL" }),
  sku_measure_known: copyOf("sku", { name: "'other'", measure: "'tokens'" }),
  price_counted_over_known: copyOf("price", { ...laterPrice, counted_over: "'year'" }),
  price_tier_from_quantity_range: copyOf("price_tier", { from_quantity: "0" }),
  owner_file_one: copyOf("owner_file", { is_only: "false" }),
  owner_file_divide_by_known: copyOf("owner_file", { divide_by: "'workspace'" }),
  owner_rule_dimension_known: copyOf("owner_rule", { rule_number: "2", dimension: "'workspace'" }),
  owner_rule_id_of_dimension: copyOf("owner_rule", { rule_number: "2", external_id: "NULL" }),
  owner_rule_about_one: copyOf("owner_rule", { rule_number: "2", name_pattern: "'*'" }),
  owner_rule_tag_key: copyOf("owner_rule", { rule_number: "2", tag_value: "'chat'" }),
  owner_rule_validity: copyOf("owner_rule", { rule_number: "2", valid: "'empty'" }),
  budget_of_one: copyOf("budget", { budget_number: "2", project: "'p1'" }),
  budget_currency_form: copyOf("budget", { budget_number: "2", currency: "'usd'" }),
  budget_amount_range: copyOf("budget", { budget_number: "2", amount: "0" }),
  budget_per_known: copyOf("budget", { budget_number: "2", per: "'quarter'" }),
  budget_per_source: copyOf("budget", { budget_number: "2", per: "'billing_period'" }),
  owner_share_range: copyOf("owner_share", { owner: "'other'", share: "0" }),
  owner_share_once: copyOf("owner_share", { share_number: "9" }),
  price_tier_unit_price_range: copyOf("price_tier", { from_quantity: "9", unit_price: "-1" }),
  notification_kind_known: copyOf("notification", { kind: "'other'" }),
  notification_ended_notified: copyOf("notification", {
    kind: "'refused'",
    notified_at: "NULL::timestamptz",
    ended_at: "now()",
  }),
  route_state_claimed_until_when: copyOf("route_state", { route: "'other'", claim: "NULL::text" }),
  route_state_failures_not_negative: copyOf("route_state", {
    route: "'other'",
    failures: "-1",
    problem: "NULL::text",
    next_try_at: "NULL::timestamptz",
  }),
  route_state_problem_when: copyOf("route_state", { route: "'other'", failures: "0" }),
  route_state_waits_after_failure: copyOf("route_state", {
    route: "'other'",
    failures: "0",
    problem: "NULL::text",
  }),
  route_name_form: copyOf("route", { name: "'default'" }),
  route_type_known: copyOf("route", {
    name: "'other'",
    type: "'sms'",
    sender: "NULL::text",
    recipients: "'{}'::text[]",
  }),
  route_setting_form: copyOf("route", { name: "'other'", setting: "'USAGE_API_KEY'" }),
  route_mail_ends: copyOf("route", { name: "'other'", sender: "NULL::text" }),
  restatement_once: copyOf("restatement", { restatement_id: "9" }),
  restatement_is_change: copyOf("restatement", { restatement_id: "9", fetch_number: "9", new_traces: "1" }),
  reconciliation_difference_measure_known: copyOf("reconciliation_difference", { measure: "'nights'" }),
  reconciliation_difference_kind_known: copyOf("reconciliation_difference", {
    external_id: "'p9'",
    kind: "'odd'",
  }),
  reconciliation_difference_state_known: copyOf("reconciliation_difference", {
    external_id: "'p9'",
    state: "'ajar'",
  }),
  reconciliation_difference_closed_when: copyOf("reconciliation_difference", {
    external_id: "'p9'",
    state: "'closed'",
  }),
  reconciliation_difference_says_when: copyOf("reconciliation_difference", {
    external_id: "'p9'",
    kind: "'name_differs'",
  }),
  reconciled_period_order: copyOf("reconciled", { ...next, period_end: next.period_start }),
  reconciled_no_overlap: copyOf("reconciled", { period_start: "'2026-01-06Z'::timestamptz" }),
  matched_total_period_order: copyOf("matched_total", {
    period_start: "'2026-01-08Z'::timestamptz",
    period_end: "'2026-01-08Z'::timestamptz",
  }),
  matched_total_within: copyOf("matched_total", {
    period_start: "'2026-01-08Z'::timestamptz",
    period_end: "'2026-01-13Z'::timestamptz",
  }),
  matched_total_no_overlap: copyOf("matched_total", { period_start: "'2026-01-06Z'::timestamptz" }),
};

test("every constraint refuses the row that violates it", async () => {
  const { reader } = await setupStore({ isStateTrue: false });
  await reader.query(WHOLE);
  const violations = { ...(await keyViolations(reader)), ...VIOLATIONS };
  const refused: Record<string, string | undefined> = {};
  for (const [name, statement] of Object.entries(violations)) {
    refused[name] = await constraintOf(reader, statement);
  }
  expect(refused).toEqual(Object.fromEntries(Object.keys(violations).map((name) => [name, name])));

  // Postgres 18 lists NOT NULL among the constraints; their names are its own. A constraint trigger refuses nothing.
  const { rows } = await reader.query<{ name: string }>(`
    SELECT conname AS name FROM pg_constraint
    WHERE connamespace = 'usage'::regnamespace AND contype NOT IN ('n', 't') AND conrelid::regclass::text NOT LIKE 'usage.kysely%'
    UNION
    SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
    WHERE i.relnamespace = 'usage'::regnamespace AND x.indisunique AND i.relname NOT LIKE 'kysely%'`);
  const untested = rows.map(({ name }) => name).filter((name) => !(name in violations));
  expect(untested, "constraints that no test violates").toEqual([]);
});

/** Name of the constraint that refuses a statement; without one, what happened instead. */
async function constraintOf(client: pg.Client, statement: string): Promise<string | undefined> {
  await client.query("BEGIN");
  try {
    await client.query(statement);
    return "nothing: it was stored";
  } catch (error) {
    const { constraint, message } = error as { constraint?: string; message: string };
    return constraint ?? message;
  } finally {
    await client.query("ROLLBACK");
  }
}
