import type pg from "pg";
import { expect, test } from "vitest";
import { setupStore } from "./setup.ts";

// What no code path may store, Postgres refuses by name. Every constraint and unique index of the migrations is here.

/** One whole row of everything: source 1, workspace entity 1, project entity 2, scope 1, series 1. */
const WHOLE = `
  INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    VALUES ('default', 'http://platform.test', '2026-01-05', 24, 'digest');
  INSERT INTO usage.source_fact (source_id, fact, evidence) VALUES (1, 'no_hour', 'test');
  INSERT INTO usage.entity (source_id, dimension, external_id) VALUES (1, 'workspace', 'w1'), (1, 'project', 'p1');
  INSERT INTO usage.entity_name (entity_id, name, first_bucket, last_bucket, fetch_number)
    VALUES (1, 'One', '2026-01-05Z', '2026-01-05Z', 1);
  INSERT INTO usage.workspace (entity_id) VALUES (1);
  INSERT INTO usage.scope (source_id, group_by, workspace_id, stride) VALUES (1, 'project', 1, 'day');
  INSERT INTO usage.series (scope_id, entity_id) VALUES (1, 2);
  INSERT INTO usage.hourly_record VALUES (1, '2026-01-05Z', 1);
  INSERT INTO usage.dated_record VALUES (1, '2026-01-05', 1);
  INSERT INTO usage.fetch (source_id, purpose, group_by, stride, period_start, period_end, workspaces)
    VALUES (1, 'load', 'project', 'day', '2026-01-05Z', '2026-01-06Z', 1);
  INSERT INTO usage.coverage VALUES (1, '2026-01-05Z', '2026-01-07Z', true, 1, now());
  INSERT INTO usage.failure VALUES (1, '2026-01-05Z', '2026-01-07Z', 'failed', 'code', 'message', 1, 1, now(), now());
  INSERT INTO usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number)
    VALUES (1, '2026-01-05Z', 1, 2, 1);
  INSERT INTO usage.reconciliation_difference (scope_id, external_id, bucket_start, kind, fetch_number)
    VALUES (1, 'p1', '2026-01-05Z', 'traces_differ', 1);
  INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspaces, reprocess)
    VALUES (1, 'day', '2026-01-05Z', '2026-01-06Z', '{project}', 1, 'missing');
  INSERT INTO usage.slice (source_id, group_by, stride, period_start, period_end, scope_ids, workspace_ids)
    VALUES (1, 'project', 'day', '2026-01-05Z', '2026-01-06Z', '{1}', '{w1}')`;

/** `column = value` in a copy of the whole row: one change that breaks one constraint. */
function copyOf(table: string, change: Record<string, string>): string {
  const columns = Object.keys(change);
  const values = Object.entries(change).map(([column, value]) => `${value} AS ${column}`);
  return `
    INSERT INTO usage.${table} OVERRIDING SYSTEM VALUE
    SELECT (jsonb_populate_record(NULL::usage.${table}, to_jsonb(r) || to_jsonb(c))).*
    FROM (SELECT * FROM usage.${table} ORDER BY 1 LIMIT 1) r, (SELECT ${values.join(", ")}) c (${columns.join(", ")})`;
}

const next = { period_start: "'2026-02-01Z'::timestamptz", period_end: "'2026-02-02Z'::timestamptz" };

const VIOLATIONS: Readonly<Record<string, string>> = {
  backfill_pkey: copyOf("backfill", { stride: "'hour'" }),
  backfill_source_id_fkey: copyOf("backfill", { backfill_id: "9", source_id: "9" }),
  backfill_period_order: copyOf("backfill", { backfill_id: "9", ...next, period_end: next.period_start }),
  backfill_reprocess_known: copyOf("backfill", { backfill_id: "9", reprocess: "'some'" }),
  backfill_state_known: copyOf("backfill", { backfill_id: "9", state: "'lost'" }),
  backfill_finished_when: copyOf("backfill", { backfill_id: "9", state: "'done'" }),
  slice_pkey: copyOf("slice", { stride: "'hour'" }),
  slice_source_id_fkey: copyOf("slice", { slice_id: "9", source_id: "9" }),
  slice_backfill_id_fkey: copyOf("slice", { slice_id: "9", backfill_id: "9" }),
  slice_period_order: copyOf("slice", { slice_id: "9", ...next, period_end: next.period_start }),
  slice_state_known: copyOf("slice", { slice_id: "9", state: "'lost'", ...next }),
  slice_lease_when_queued: copyOf("slice", { slice_id: "9", state: "'queued'", ...next }),
  slice_finished_when: copyOf("slice", { slice_id: "9", state: "'done'", ...next }),
  slice_routine_once: copyOf("slice", { slice_id: "9" }),
  source_pkey: copyOf("source", { slug: "'other'" }),
  source_slug_key: copyOf("source", { source_id: "2" }),
  source_slug_form: copyOf("source", { source_id: "2", slug: "'No Slug'" }),
  source_refusal_whole: copyOf("source", { source_id: "2", slug: "'other'", refused_at: "now()" }),
  source_fact_pkey: copyOf("source_fact", { evidence: "'again'" }),
  source_fact_known: copyOf("source_fact", { fact: "'no_minute'" }),
  source_fact_source_id_fkey: copyOf("source_fact", { source_id: "9" }),
  entity_pkey: copyOf("entity", { external_id: "'w9'" }),
  entity_identity: copyOf("entity", { entity_id: "9" }),
  entity_source_id_fkey: copyOf("entity", { entity_id: "9", source_id: "9" }),
  entity_dimension_known: copyOf("entity", { entity_id: "9", dimension: "'planet'" }),
  entity_external_id_length: copyOf("entity", { entity_id: "9", external_id: "repeat('é', 501)" }),
  entity_name_entity_id_fkey: copyOf("entity_name", { entity_id: "9" }),
  entity_name_identity: copyOf("entity_name", { fetch_number: "9" }),
  workspace_pkey: copyOf("workspace", { is_deleted: "true" }),
  workspace_entity_id_fkey: copyOf("workspace", { entity_id: "9" }),
  scope_pkey: copyOf("scope", { stride: "'hour'" }),
  scope_identity: copyOf("scope", { scope_id: "9" }),
  scope_source_id_fkey: copyOf("scope", { scope_id: "9", source_id: "9" }),
  scope_workspace_id_fkey: copyOf("scope", { scope_id: "9", workspace_id: "2" }),
  scope_kind_known: copyOf("scope", { scope_id: "9", kind: "'runs'" }),
  scope_trace_tier_known: copyOf("scope", { scope_id: "9", trace_tier: "'extended'" }),
  scope_group_by_known: copyOf("scope", { scope_id: "9", group_by: "'planet'" }),
  scope_stride_known: copyOf("scope", { scope_id: "9", stride: "'minute'" }),
  series_pkey: copyOf("series", { entity_id: "1" }),
  series_identity: copyOf("series", { series_id: "9" }),
  series_scope_id_fkey: copyOf("series", { series_id: "9", scope_id: "9" }),
  series_entity_id_fkey: copyOf("series", { series_id: "9", entity_id: "9" }),
  hourly_record_pkey: copyOf("hourly_record", { traces: "9" }),
  hourly_record_traces_range: copyOf("hourly_record", { series_id: "9", traces: "-1" }),
  dated_record_pkey: copyOf("dated_record", { traces: "9" }),
  dated_record_traces_range: copyOf("dated_record", { series_id: "9", traces: "-1" }),
  fetch_pkey: copyOf("fetch", { stride: "'hour'" }),
  fetch_source_id_fkey: copyOf("fetch", { fetch_number: "9", source_id: "9" }),
  fetch_purpose_known: copyOf("fetch", { fetch_number: "9", purpose: "'fun'" }),
  fetch_outcome_known: copyOf("fetch", { fetch_number: "9", outcome: "'lost'" }),
  coverage_pkey: copyOf("coverage", { settled: "false" }),
  coverage_scope_id_fkey: copyOf("coverage", { scope_id: "9" }),
  coverage_period_order: copyOf("coverage", { ...next, period_end: next.period_start }),
  coverage_no_overlap: copyOf("coverage", { period_start: "'2026-01-06Z'::timestamptz" }),
  failure_pkey: copyOf("failure", { attempts: "2" }),
  failure_scope_id_fkey: copyOf("failure", { scope_id: "9" }),
  failure_period_order: copyOf("failure", { ...next, period_end: next.period_start }),
  failure_state_known: copyOf("failure", { ...next, state: "'bored'" }),
  failure_attempts_counted: copyOf("failure", { ...next, attempts: "0" }),
  failure_no_overlap: copyOf("failure", { period_start: "'2026-01-06Z'::timestamptz" }),
  restatement_pkey: copyOf("restatement", { fetch_number: "9" }),
  restatement_series_id_fkey: copyOf("restatement", { restatement_id: "9", series_id: "9" }),
  restatement_once: copyOf("restatement", { restatement_id: "9" }),
  restatement_is_change: copyOf("restatement", { restatement_id: "9", fetch_number: "9", new_traces: "1" }),
  reconciliation_difference_pkey: copyOf("reconciliation_difference", { fetch_number: "9" }),
  reconciliation_difference_scope_id_fkey: copyOf("reconciliation_difference", { scope_id: "9" }),
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
};

test("every constraint refuses what it is for", async () => {
  const { reader } = await setupStore();
  await reader.query(WHOLE);
  const refused: Record<string, string | undefined> = {};
  for (const [name, statement] of Object.entries(VIOLATIONS)) {
    refused[name] = await constraintOf(reader, statement);
  }
  expect(refused).toEqual(Object.fromEntries(Object.keys(VIOLATIONS).map((name) => [name, name])));

  // Postgres 18 lists NOT NULL among the constraints; their names are its own.
  const { rows } = await reader.query<{ name: string }>(`
    SELECT conname AS name FROM pg_constraint
    WHERE connamespace = 'usage'::regnamespace AND contype <> 'n' AND conrelid::regclass::text NOT LIKE 'usage.kysely%'
    UNION
    SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
    WHERE i.relnamespace = 'usage'::regnamespace AND x.indisunique AND i.relname NOT LIKE 'kysely%'`);
  const untested = rows.map(({ name }) => name).filter((name) => !(name in VIOLATIONS));
  expect(untested, "constraints that no test violates").toEqual([]);
});

/** Name of the constraint that refuses a statement; what else became of it where none does. */
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
