import type pg from "pg";
import { expect, test } from "vitest";
import { setupStore } from "./setup.ts";

const WHOLE = `
  INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    VALUES ('default', 'http://platform.test', '2026-01-05', 24, 'digest');
  INSERT INTO usage.configuration_change (source_id, setting, old_value, new_value) VALUES (1, 'base_url', 'http://a', 'http://b');
  INSERT INTO usage.source_meter (source_id, meter, state, evidence, request_again_at)
    VALUES (1, 'longlived', 'counted', 'test', now());
  INSERT INTO usage.source_fact (source_id, fact, evidence) VALUES (1, 'no_hour', 'test');
  INSERT INTO usage.entity (source_id, dimension, external_id) VALUES (1, 'workspace', 'w1'), (1, 'project', 'p1');
  INSERT INTO usage.entity_name VALUES (1, 1, '2026-01-05Z', 'One');
  INSERT INTO usage.recent_naming VALUES (1, 1, 0, '2026-01-05Z', '{1}');
  INSERT INTO usage.workspace (entity_id) VALUES (1);
  INSERT INTO usage.resource_tag VALUES (1, 'project', 'p1', 'Application', 'chat', '2026-01-01', NULL);
  INSERT INTO usage.run_rule (entity_id, fetch_number) VALUES (1, 1);
  INSERT INTO usage.listed_key (entity_id) VALUES (1);
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
    INSERT INTO usage.control_check VALUES (1, '2026-01-05Z', 0);
  INSERT INTO usage.provider_total
    VALUES (1, '2026-01-01', 'm1', 'w1', 'Traces', 'traces', 5, 'equal', 5, 1, now());
  INSERT INTO usage.added_line (source_id, month_start, line_text, amount, currency, reason)
    VALUES (1, '2026-01-01', 'Seats', 390, 'USD', 'invoice 4711');
  INSERT INTO usage.unloaded_workspace VALUES (1, '2026-01-01', 'w2', NULL, 5, now());
  INSERT INTO usage.statement_line VALUES (1, '2026-01-05', 'members', '', NULL, NULL, '2026-01-01', 5, NULL, now());
  INSERT INTO usage.usage_limit VALUES (1, 'w1', 'monthly_traces', 5, false, now());
  INSERT INTO usage.billing_period VALUES (1, '2026-02-01Z', NULL, NULL, NULL, now());
  INSERT INTO usage.bill_part VALUES (1, 'provider_totals', NULL, now());
  INSERT INTO usage.logged_change (source_id, external_id, operation, changed_at, is_certain)
    VALUES (1, 'e1', 'update_usage_limit', now(), true);
  INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
    VALUES (1, '2026-01-01', '2026-02-01', 1, 0);
  INSERT INTO usage.closed_total VALUES (1, 1, 5);
  INSERT INTO usage.closed_workspace VALUES (1, 1, false);
  INSERT INTO usage.sku (name) VALUES ('traces');
  INSERT INTO usage.price (sku_id, source_id, workspace_id, unit_price, currency, valid_from, valid_to)
    VALUES (1, 1, 1, 0.0005, 'USD', '2026-01-01', '2027-01-01');
  INSERT INTO usage.price_tier VALUES (1, 1000, 0.0004);
  INSERT INTO usage.invoice (source_id, issuer, number, status, currency, total, file_name, file_form, file, file_digest, imported_by)
    VALUES (1, 'L', '1', 'issued', 'USD', 5, 'invoice.pdf', 'pdf', '', '', 'ada');
  INSERT INTO usage.invoice_line VALUES (1, 1, 'Traces', true, NULL, 'usage', NULL, NULL, NULL, 5, '2026-10-01', '2026-11-01', NULL, '', '');
  INSERT INTO usage.invoice_rule VALUES (1, 'Traces', NULL, NULL, '2026-01-01', '2027-01-01', 'previous_month', 'traces', NULL, 'half_up', 1, 1, NULL);
  INSERT INTO usage.invoice_match (invoice_id, inputs, inputs_digest, total, bill, remainder) VALUES (1, '{}', '', 5, 5, 0);
  INSERT INTO usage.invoice_match_line VALUES (1, 1, 1, 'agrees', NULL, 'traces', 'traces', '2026-10-01', '2026-11-01', '2026-10-01', '2026-11-01', NULL, NULL, 5, 1, 5);
  INSERT INTO usage.invoice_cause VALUES (1, 1, 'seat', NULL, 5, NULL, NULL, NULL, NULL, NULL, 1, NULL, NULL, false);
  INSERT INTO usage.invoice_settlement (invoice_id, match_id, reason, settled_by) VALUES (1, 1, 'credited', 'ada');
  INSERT INTO usage.owner_file VALUES (true, '', 'project', now());
  INSERT INTO usage.owner_rule VALUES (1, 1, NULL, NULL, 'project', 'p1', NULL, NULL, NULL, '(,)');
  INSERT INTO usage.owner_share VALUES (1, 'team', 'cc', 1);
  INSERT INTO usage.budget VALUES (1, 1, NULL, 'team', NULL, NULL, 'USD', 5, '{80}', 'month');
  INSERT INTO usage.closed_charge VALUES (1, '2026-01-05', 1, 'sku', 'traces', 1, 0, 0, 0.5, 'USD', 2, 1);
  SELECT usage.charges_due(1::smallint, NULL);
  INSERT INTO usage.closed_correction VALUES (1, '2026-01-05', 1, 'sku', 'traces', 1, 0, 0, 0.5, 'USD', -2, -1);
  INSERT INTO usage.route VALUES ('mail', 1, 'email', 'USAGE_ROUTE_SMTP', 'a@example.com', '{b@example.com}', NULL, NULL, NULL);
  INSERT INTO usage.route_state VALUES (1, 'mail', 'one', now(), now(), 1, 'it responded with 500', now());
  INSERT INTO usage.notification VALUES (1, 'mail', 'stale', '', 1, 0, now(), now(), NULL);
  INSERT INTO usage.ended_session VALUES ('00000000-0000-4000-8000-000000000001', now());
  INSERT INTO usage.difference (scope_id, compared_with, kind, period_start, period_end, external_id, fetch_number)
    VALUES (1, 'export', 'traces_differ', '2026-01-05Z', '2026-01-06Z', 'p1', 1);
  INSERT INTO usage.reconciled VALUES (1, '2026-01-05Z', '2026-01-07Z', 1, now());
  SELECT usage.keep_proof('{1}');
  INSERT INTO usage.matched_total VALUES (1, '2026-01-05Z', '2026-01-07Z', '2026-01-05Z', '2026-01-12Z', 1, now());
  INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspace_ids, reprocess)
    VALUES (1, 'day', '2026-01-05Z', '2026-01-06Z', '{project}', '{w1}', 'missing');
  INSERT INTO usage.run (source_id, kind, backfill_id) VALUES (1, 'backfill', 1);
  INSERT INTO usage.operator_action (source_id, action, detail, actor, role, via)
    VALUES (1, 'backfill.start', 'backfill 1', 'ada', 'operator', 'command');
  INSERT INTO usage.fetch_task (source_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
    VALUES (1, 'project', 'day', '2026-01-05Z', '2026-01-06Z', '{1}', '{w1}')`;

function copyOf(table: string, change: Record<string, string>): string {
  const values = Object.entries(change).map(([column, value]) => `'${column}', ${value}`);
  const columns =
    "close_id, source_id, period_start, period_end, closed_at, settle_after_seconds, accepted_disagreements, costs_closed_at";
  const [into, from] = table === "close" ? [`(${columns})`, columns] : ["", "*"];
  return `
    INSERT INTO usage.${table} ${into} OVERRIDING SYSTEM VALUE
    SELECT ${from} FROM (SELECT (jsonb_populate_record(NULL::usage.${table}, to_jsonb(r) || jsonb_build_object(${values.join(", ")}))).*
    FROM (SELECT * FROM usage.${table} ORDER BY 1 LIMIT 1) r) copied`;
}

/** Values that a constraint of one column may refuse, by the column's type. */
const ODD: Readonly<Record<string, readonly string[]>> = {
  text: ["'odd'", "'Odd one'", "' '", "E'two\\nlines'"],
  "text[]": ["ARRAY['odd']"],
  integer: ["-1", "0"],
  bigint: ["-1", "0"],
  numeric: ["-1", "0"],
  date: ["'2026-01-02'"],
  boolean: ["false"],
};

async function violationsOfCatalog(reader: pg.Client): Promise<Record<string, string[]>> {
  const columns = (relation: string, numbers: string) =>
    `array(SELECT attname::text FROM pg_attribute WHERE attrelid = ${relation} AND attnum = ANY (${numbers}) ORDER BY attnum)`;
  const { rows } = await reader.query<Constraint>(`
    SELECT k.name, t.relname AS "table", k.kind, ${columns("t.oid", "k.key")} AS columns,
           coalesce(${columns("t.oid", "p.conkey")}, '{}') AS own,
           (SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = t.oid AND attnum = k.key[1]) AS type
    FROM (
      SELECT conname AS name, conrelid, contype::text AS kind, conkey AS key FROM pg_constraint WHERE contype IN ('p', 'f', 'c', 'u')
      UNION ALL
      SELECT i.relname, x.indrelid, 'u', x.indkey::smallint[] FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
      WHERE x.indisunique AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.oid)
    ) k
    -- Of a table in parts, its parts refuse.
    JOIN pg_class t ON t.oid = k.conrelid AND t.relkind = 'r' AND t.relnamespace = 'usage'::regnamespace AND t.relname NOT LIKE 'kysely%'
    LEFT JOIN pg_constraint p ON p.conrelid = t.oid AND p.contype = 'p'`);
  return Object.fromEntries(
    rows.map((one) => [one.name, changesAgainst(one).map((change) => copyOf(one.table, change))]),
  );
}

interface Constraint {
  readonly name: string;
  readonly table: string;
  readonly kind: "p" | "f" | "c" | "u";
  readonly columns: readonly string[];
  readonly own: readonly string[];
  readonly type: string;
}

function changesAgainst({ kind, columns, own, type }: Constraint): Record<string, string>[] {
  const [first = "", ...others] = columns;
  const another = { [own[0] ?? ""]: "'9'" };
  if (kind === "p") return [{}];
  if (kind === "u") return [another];
  if (kind === "f") {
    const isOwn = columns.some((column) => own.includes(column));
    const changed = isOwn ? columns.slice(-1) : columns;
    return [{ ...(isOwn ? {} : another), ...Object.fromEntries(changed.map((column) => [column, "'9'"])) }];
  }
  if (columns.join() === "period_start,period_end") return [{ period_end: "r.period_start" }];
  return others.length > 0 ? [] : (ODD[type] ?? []).map((value) => ({ [first]: value }));
}

const next = { period_start: "'2026-02-01Z'::timestamptz", period_end: "'2026-02-02Z'::timestamptz" };

const laterPrice = { price_id: "9", valid_from: "'2027-01-01'::date", valid_to: "'2028-01-01'::date" };

const VIOLATIONS: Readonly<Record<string, string>> = {
  charge_due_pkey: "INSERT INTO usage.charge_due (due_number) OVERRIDING SYSTEM VALUE VALUES (1), (1)",
  backfill_finished_when: copyOf("backfill", { backfill_id: "9", state: "'done'" }),
  provider_total_outcome_known: copyOf("provider_total", {
    metric_id: "'m2'",
    outcome: "'guessed'",
    stored_traces: "NULL::bigint",
  }),
  provider_total_compared_when: copyOf("provider_total", { metric_id: "'m2'", outcome: "'not_final'" }),
  run_outcome_known: copyOf("run", { run_id: "9", outcome: "'lost'", finished_at: "now()" }),
  run_finished_when: copyOf("run", { run_id: "9", outcome: "'done'" }),
  configuration_change_key_unseen: copyOf("configuration_change", { change_id: "9", setting: "'key'" }),
  fetch_task_lease_when_queued: copyOf("fetch_task", { task_id: "9", state: "'queued'", ...next }),
  fetch_task_finished_when: copyOf("fetch_task", { task_id: "9", state: "'done'", ...next }),
  source_refusal_whole: copyOf("source", { source_id: "2", slug: "'other'", refused_at: "now()" }),
  source_meter_starts: copyOf("source_meter", { meter: "'shortlived'", starts_on: "'2026-01-01'::date" }),
  entity_external_id_length: copyOf("entity", { entity_id: "9", external_id: "repeat('é', 501)" }),
  resource_tag_order: copyOf("resource_tag", { tag_key: "'b'", valid_to: "'2026-01-01'" }),
  resource_tag_current: copyOf("resource_tag", { valid_from: "'2026-02-01'" }),
  scope_trace_tier_known: copyOf("scope", { scope_id: "9", trace_tier: "'extended'" }),
  coverage_traced_within: "UPDATE usage.coverage SET traced = '{[2026-01-04Z,2026-01-06Z)}'",
  day_proof_alike: "UPDATE usage.day_proof SET starts = '{}'",
  coverage_digest_epoch: "UPDATE usage.coverage SET digest = ''",
  coverage_no_overlap: copyOf("coverage", { period_start: "'2026-01-06Z'::timestamptz" }),
  failure_no_overlap: copyOf("failure", { period_start: "'2026-01-06Z'::timestamptz" }),
  became_final_no_overlap: copyOf("became_final", { period_start: "'2026-01-06Z'::timestamptz" }),
  invoice_line_sum_is_whole: copyOf("invoice_line", { line_number: "9", part_of: "1" }),
  invoice_line_part_of_fkey: copyOf("invoice_line", { line_number: "9", is_sum: "false", part_of: "7" }),
  invoice_rule_validity_order: copyOf("invoice_rule", { rule_number: "9", valid_to: "'2025-01-01'" }),
  invoice_match_line_why_when: copyOf("invoice_match_line", { place: "9", why: "'seat'" }),
  invoice_cause_why_when: copyOf("invoice_cause", { place: "9", why: "'usage'" }),
  close_order: copyOf("close", { close_id: "9", period_end: "'2026-01-01'" }),
  close_costs_of_month: copyOf("close", {
    close_id: "9",
    period_end: "'2026-01-09'",
    costs_closed_at: "now()",
  }),
  price_validity_order: copyOf("price", { ...laterPrice, valid_to: laterPrice.valid_from }),
  price_workspace_of_source: copyOf("price", { ...laterPrice, source_id: "NULL" }),
  price_no_overlap: copyOf("price", { price_id: "9", valid_from: "'2026-12-31'::date", valid_to: "NULL" }),
  owner_rule_id_of_dimension: copyOf("owner_rule", { rule_number: "2", external_id: "NULL" }),
  owner_rule_about_one: copyOf("owner_rule", { rule_number: "2", name_pattern: "'*'" }),
  owner_rule_tag_key: copyOf("owner_rule", { rule_number: "2", tag_value: "'chat'" }),
  owner_rule_validity: copyOf("owner_rule", { rule_number: "2", valid: "'empty'" }),
  budget_of_one: copyOf("budget", { budget_number: "2", project: "'p1'" }),
  budget_per_source: copyOf("budget", { budget_number: "2", per: "'billing_period'" }),
  notification_ended_notified: copyOf("notification", {
    kind: "'refused'",
    notified_at: "NULL::timestamptz",
    ended_at: "now()",
  }),
  route_state_claimed_until_when: copyOf("route_state", { route: "'other'", claim: "NULL::text" }),
  route_state_problem_when: copyOf("route_state", { route: "'other'", failures: "0" }),
  route_state_waits_after_failure: copyOf("route_state", {
    route: "'other'",
    failures: "0",
    problem: "NULL::text",
  }),
  route_type_known: copyOf("route", {
    name: "'other'",
    type: "'sms'",
    sender: "NULL::text",
    recipients: "'{}'::text[]",
  }),
  route_setting_form: copyOf("route", { name: "'other'", setting: "'USAGE_API_KEY'" }),
  route_mail_ends: copyOf("route", { name: "'other'", sender: "NULL::text" }),
  restatement_is_change: copyOf("restatement", { restatement_id: "9", fetch_number: "9", new_traces: "1" }),
  difference_closed_when: copyOf("difference", { external_id: "'p9'", state: "'closed'" }),
  difference_says_when: copyOf("difference", { external_id: "'p9'", kind: "'name_differs'" }),
  difference_kind_known: copyOf("difference", { external_id: "'p9'", kind: "'stride_total'" }),
  difference_state_of_totals: copyOf("difference", { external_id: "'p9'", state: "'unattributed'" }),
  reconciled_no_overlap: copyOf("reconciled", { period_start: "'2026-01-06Z'::timestamptz" }),
  matched_total_within: copyOf("matched_total", {
    period_start: "'2026-01-08Z'::timestamptz",
    period_end: "'2026-01-13Z'::timestamptz",
  }),
  matched_total_no_overlap: copyOf("matched_total", { period_start: "'2026-01-06Z'::timestamptz" }),
};

test("every constraint refuses the row that violates it", async () => {
  const { reader } = await setupStore({ isStateTrue: false });
  await reader.query(WHOLE);
  await reader.query(`
    INSERT INTO usage.charge SELECT 1, '2026-02-01', '2026-02-05', 1, 'sku', 'traces', c, 0, 1, 0, 0.5, 'USD', 2, 1, true, 'ok'
    FROM (VALUES (false), (true)) v (c)`);
  const given = Object.entries(VIOLATIONS).map(([name, statement]) => [name, [statement]]);
  const violations: Record<string, string[]> = {
    ...(await violationsOfCatalog(reader)),
    ...Object.fromEntries(given),
  };
  const unrefused: Record<string, unknown> = {};
  for (const [name, statements] of Object.entries(violations)) {
    const said: unknown[] = [];
    for (const statement of statements)
      if (said.at(-1) !== name) said.push(await constraintOf(reader, statement));
    if (said.at(-1) !== name) unrefused[name] = said;
  }
  expect(unrefused).toEqual({});

  const { rows } = await reader.query<{ name: string }>(`
    SELECT conname AS name FROM pg_constraint
    WHERE connamespace = 'usage'::regnamespace AND contype NOT IN ('n', 't') AND conrelid::regclass::text NOT LIKE 'usage.kysely%'
      AND conrelid NOT IN (SELECT partrelid FROM pg_partitioned_table)
    UNION
    SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
    WHERE i.relnamespace = 'usage'::regnamespace AND x.indisunique AND i.relkind = 'i' AND i.relname NOT LIKE 'kysely%'`);
  const untested = rows.map(({ name }) => name).filter((name) => !(name in violations));
  expect(untested, "constraints that no test violates").toEqual([]);
});

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
