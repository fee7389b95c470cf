import { expect, test } from "vitest";
import { failScopes } from "../../../src/core/store/catalog/failures.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { createWorkspaces } from "../../../src/core/store/catalog/write-workspaces.ts";
import { createBackfill } from "../../../src/core/store/work/backfills.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { createTasks } from "../../../src/core/store/work/tasks.ts";
import { forgetSource, forgetWorkspace } from "../../../src/features/catalog/forget.store.ts";
import { loadRows, untilLockWaits, windowOf } from "../../support/store.ts";
import { createSource, type StoreBundle, setupStore } from "./setup.ts";

/** Forgetting leaves nothing behind, changes nothing else, and neither overtakes nor is overtaken by a load. */

const [A, B] = ["aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"] as const;
const START = Date.parse("2026-03-01");
const DAYS = windowOf("day", "2026-03-01", "2026-03-04");
const BY = { name: "ada", role: "operator", via: "command" } as const;
const HOW = { withRecords: false, dryRun: false, by: BY };

async function rowCounts({ reader }: StoreBundle): Promise<Record<string, number>> {
  const { rows: tables } = await reader.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = 'usage'::regnamespace AND relkind = 'r' AND relname <> 'operator_action' ORDER BY 1",
  );
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const { rows } = await reader.query(`SELECT count(*)::integer AS n FROM usage.${name}`);
    counts[name] = rows[0].n;
  }
  return counts;
}

async function setup() {
  const bundle = await setupStore();
  const sourceId = await createSource(bundle, { workspaceIds: [A], dataStart: START });
  await prove(bundle, sourceId, [A]);
  await load(bundle, sourceId, A);
  return { ...bundle, sourceId };
}

async function prove({ reader }: StoreBundle, sourceId: number, ids: readonly string[]) {
  await reader.query(
    `UPDATE usage.workspace w SET readable_at = now() FROM usage.entity e
     WHERE e.entity_id = w.entity_id AND e.source_id = $1 AND e.external_id = ANY ($2)`,
    [sourceId, ids],
  );
}

async function load({ store }: StoreBundle, sourceId: number, workspaceId: string) {
  const common = { sourceId, workspaceId, window: DAYS };
  await loadRows(store, { ...common, groupBy: "workspace", rows: [["2026-03-01", workspaceId, 5, "name"]] });
  const projects = ["shared", `p-${workspaceId}`];
  await loadRows(store, {
    ...common,
    groupBy: "project",
    rows: projects.map((id) => ["2026-03-01", id, 5, `name of ${id}`]),
  });
}

/** Everything that may depend on workspace B: the same as of A, restatements, failures, fetch tasks, a price, a left-out close. */
async function createSecond(bundle: StoreBundle, sourceId: number) {
  const { store, reader } = bundle;
  await createWorkspaces(store.db, { sourceId, workspaceIds: [B] });
  await prove(bundle, sourceId, [B]);
  await load(bundle, sourceId, B);
  const [scopeA = 0, scopeB = 0] = await scopesOf(store.db, {
    sourceId,
    groupBy: "workspace",
    stride: "day",
    workspaceIds: [A, B],
  });
  await loadRows(store, {
    sourceId,
    groupBy: "workspace",
    workspaceId: B,
    window: DAYS,
    rows: [["2026-03-01", B, 6]],
  });
  const fetchToken = await drawFetchToken(store.db);
  const period = windowOf("day", "2026-03-10", "2026-03-12");
  await failScopes(store, {
    scopeIds: [scopeB],
    period,
    fetchToken,
    state: "failed",
    code: "x",
    message: "x",
  });
  const both = [
    { workspaceId: A, scopeId: scopeA },
    { workspaceId: B, scopeId: scopeB },
  ];
  const tasks = [both, both.slice(1)].map((members) => ({
    meter: "traces" as const,
    groupBy: "workspace" as const,
    window: period,
    members,
  }));
  await createTasks(store.db, { sourceId, tasks });
  const range = { start: period.start, end: period.end };
  const backfill = await createBackfill(store, {
    sourceId,
    meter: "traces",
    range,
    tasks,
    stride: "day",
    groupings: ["workspace"],
    workspaceIds: [A, B],
    reprocess: "missing",
    by: { name: "ada", role: "operator", via: "command" },
  });
  await reader.query(
    `WITH sku AS (INSERT INTO usage.sku (name) VALUES ('traces') RETURNING sku_id)
     INSERT INTO usage.price (sku_id, source_id, workspace_id, unit_price, currency, valid_from)
     SELECT sku_id, $1, entity_id, 1, 'USD', '2026-01-01' FROM sku, usage.entity WHERE external_id = $2 AND dimension = 'workspace'`,
    [sourceId, B],
  );
  await reader.query(`
    INSERT INTO usage.became_final VALUES (${scopeB}, '2026-04-01', '2026-04-02', now());
    INSERT INTO usage.withdrawal VALUES (${scopeB}, '2026-04-01', '2026-04-02', false, now(), now());
    INSERT INTO usage.reconciled VALUES (${scopeB}, '2026-04-01', '2026-04-02', 1, now());
    INSERT INTO usage.difference (scope_id, compared_with, kind, period_start, period_end, external_id, state, fetch_number)
      VALUES (${scopeB}, 'export', 'traces_differ', '2026-03-01', '2026-03-02', 'x', 'open', 1),
             (${scopeB}, 'grouping_total', 'grouping_total', '2026-03-01', '2026-03-02', '', 'unattributed', 1)`);
  return { backfill, scopeB };
}

test("a workspace goes with all that depends on it and nothing else", async () => {
  const bundle = await setup();
  const { store, sourceId, reader } = bundle;
  const before = await rowCounts(bundle);
  const { backfill } = await createSecond(bundle, sourceId);
  const full = await rowCounts(bundle);
  const forget = (how: object) => forgetWorkspace(store, { sourceId, workspaceId: B, ...HOW, ...how });

  await expect(forget({})).rejects.toMatchObject({
    code: "records_kept",
    message: expect.stringMatching(/has 3 records, 1 restatements, 1 prices/),
  });
  const held = {
    records: 3,
    restatements: 1,
    failures: 1,
    differences: 2,
    fetchTasks: 4,
    prices: 1,
    closedMonths: [],
    leftOutMonths: [],
  };
  expect(await forget({ dryRun: true })).toMatchObject({ forgotten: false, held });
  expect(await rowCounts(bundle)).toEqual(full);

  expect(await forget({ withRecords: true })).toMatchObject({ forgotten: true, held });
  const { rows } = await reader.query("SELECT workspace_ids, scope_ids FROM usage.fetch_task");
  expect(rows).toEqual([{ workspace_ids: [A], scope_ids: [expect.any(Number)] }]);
  const requested = await reader.query("SELECT backfill_id, workspace_ids FROM usage.backfill");
  expect(requested.rows).toEqual([{ backfill_id: backfill, workspace_ids: [A] }]);
  const { scope: _, recent_naming: _named, ...counts } = await rowCounts(bundle);
  const { scope: __, recent_naming: __named, ...expected } = before;
  expect(counts).toEqual({
    ...expected,
    sku: (before.sku ?? 0) + 1,
    fetch_task: 1,
    backfill: 1,
    run: 1,
    late_change: 1,
  });
});

test("a workspace of a closed month stays; one that was only left out, and never held a record, goes", async () => {
  const bundle = await setup();
  const { store, sourceId, reader } = bundle;
  await createWorkspaces(store.db, { sourceId, workspaceIds: [B] });
  await reader.query(
    `WITH closed AS (
       INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements) VALUES ($1, '2026-03-01', '2026-04-01', 0, 0) RETURNING close_id
     )
     INSERT INTO usage.closed_workspace
     SELECT close_id, entity_id, external_id = $2 FROM closed, usage.workspace JOIN usage.entity USING (entity_id)`,
    [sourceId, B],
  );
  const forget = (workspaceId: string) =>
    forgetWorkspace(store, { sourceId, workspaceId, withRecords: true, dryRun: false, by: BY });
  await expect(forget(A)).rejects.toMatchObject({
    code: "month_closed",
    message: expect.stringContaining("2026-03"),
  });
  await reader.query(
    `INSERT INTO usage.closed_correction
     SELECT close_id, '2026-02-01', entity_id, 'sku', 'traces', 1, 0, 0, 0.5, 'USD', 2, 1
     FROM usage.close, usage.entity WHERE external_id = $1`,
    [B],
  );
  await expect(forget(B)).rejects.toMatchObject({ code: "month_closed" });
  await reader.query("DELETE FROM usage.closed_correction");
  expect(await forget(B)).toMatchObject({ forgotten: true, held: { leftOutMonths: ["2026-03"] } });
  await expect(
    forgetSource(store, { sourceId, slug: "default", withRecords: true, dryRun: false, by: BY }),
  ).rejects.toMatchObject({ code: "month_closed" });
});

test("a load that was on its way stores nothing for a workspace that was forgotten meanwhile", async () => {
  const bundle = await setup();
  const { store, sourceId, reader } = bundle;
  const scopeIds = await scopesOf(store.db, {
    sourceId,
    groupBy: "workspace",
    stride: "day",
    workspaceIds: [A],
  });
  const fetchToken = await drawFetchToken(store.db);
  await reader.query("BEGIN");
  await reader.query("SELECT FROM usage.trace_scope WHERE scope_id = ANY ($1) FOR UPDATE", [scopeIds]);
  const forgetting = forgetWorkspace(store, {
    sourceId,
    workspaceId: A,
    withRecords: true,
    dryRun: false,
    by: BY,
  });
  await untilLockWaits(bundle.store, 1);
  const loading = loadRows(store, {
    sourceId,
    groupBy: "workspace",
    workspaceId: A,
    fetchToken,
    window: DAYS,
    rows: [["2026-03-02", A, 7]],
  });
  await untilLockWaits(bundle.store, 2);
  await reader.query("COMMIT");
  expect(await forgetting).toMatchObject({ forgotten: true });
  expect(await loading).toMatchObject({ outcome: "discarded" });
  await failScopes(store, { scopeIds, period: DAYS, fetchToken, state: "failed", code: "x", message: "x" });
  const counts = await rowCounts(bundle);
  expect([counts.dated_record, counts.monthly_total, counts.coverage, counts.failure]).toEqual([0, 0, 0, 0]);
});

test("a source goes with all that depends on it, and not while a process loads it", async () => {
  const bundle = await setupStore();
  const first = await createSource(bundle, { workspaceIds: [A], dataStart: START });
  await prove(bundle, first, [A]);
  await load(bundle, first, A);
  const before = await rowCounts(bundle);
  const { store, reader } = bundle;
  const { rows } = await reader.query<{ source_id: number }>(
    `INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
     VALUES ('gone', 'http://x', '2026-03-01', 1, '') RETURNING source_id`,
  );
  const sourceId = rows[0]?.source_id ?? 0;
  await createWorkspaces(store.db, { sourceId, workspaceIds: [A] });
  await prove(bundle, sourceId, [A]);
  await load(bundle, sourceId, A);
  await createSecond(bundle, sourceId);
  await reader.query("INSERT INTO usage.route_state (source_id, route) VALUES ($1, 'default')", [sourceId]);
  await reader.query(
    "INSERT INTO usage.notification VALUES ($1, 'default', 'stale', '', 1, 1, now(), now())",
    [sourceId],
  );
  await reader.query("INSERT INTO usage.source_fact VALUES ($1, 'no_hour', 'x')", [sourceId]);
  await reader.query(
    "INSERT INTO usage.late_change VALUES ($1, '2026-03-01', 'all', 'workspace', 'day', true, 1, 1, 1)",
    [sourceId],
  );
  await reader.query("INSERT INTO usage.control_check VALUES ($1, now(), 1)", [sourceId]);
  await reader.query(
    `INSERT INTO usage.fetch (source_id, purpose, group_by, stride, period_start, period_end, workspaces)
     VALUES ($1, 'load', 'workspace', 'day', '2026-03-01', '2026-03-02', 1)`,
    [sourceId],
  );
  for (const row of [
    "bill_part VALUES ($1, 'names', NULL, now())",
    "logged_change (source_id, external_id, operation, changed_at, is_certain) VALUES ($1, 'e', 'update_usage_limit', now(), true)",
    "billing_period VALUES ($1, '2026-04-01Z', NULL, NULL, NULL, now())",
    "configuration_change (source_id, setting, old_value, new_value) VALUES ($1, 'base_url', 'http://a', 'http://b')",
    "source_meter (source_id, meter, state, evidence, request_again_at) VALUES ($1, 'longlived', 'counted', 'x', now())",
    "provider_total VALUES ($1, '2026-03-01', 'm', 'w', 'Traces', 'traces', 5, 'equal', 5, 1, now())",
    "unloaded_workspace VALUES ($1, '2026-03-01', 'w', NULL, 5, now())",
    "added_line (source_id, month_start, line_text, amount, currency, reason) VALUES ($1, '2026-03-01', 'Seats', 5, 'USD', 'r')",
    "statement_line VALUES ($1, '2026-03-05', 'members', '', NULL, NULL, '2026-03-01', 5, NULL, now())",
    "usage_limit VALUES ($1, 'w', 'monthly_traces', 5, false, now())",
    "invoice (source_id, issuer, number, status, currency, total, file_name, file_form, file, file_digest, imported_by) VALUES ($1, 'L', '1', 'issued', 'USD', 5, 'f', 'pdf', '', '', 'ada')",
  ])
    await reader.query(`INSERT INTO usage.${row}`, [sourceId]);
  const { rows: referring } = await reader.query<{ name: string }>(
    `SELECT DISTINCT conrelid::regclass::text AS name FROM pg_constraint
     WHERE contype = 'f' AND confrelid = 'usage.source'::regclass ORDER BY 1`,
  );
  const empty = [];
  for (const { name } of referring) {
    const { rows: found } = await reader.query(`SELECT FROM ${name} WHERE source_id = $1 LIMIT 1`, [
      sourceId,
    ]);
    if (found.length === 0) empty.push(name);
  }
  expect(empty).toEqual(["usage.close"]);
  const forget = (how: object) => forgetSource(store, { sourceId, slug: "gone", ...HOW, ...how });
  await expect(forget({ withRecords: true })).rejects.toMatchObject({ code: "source_in_use" });
  await reader.query("UPDATE usage.fetch SET outcome = 'loaded' WHERE source_id = $1", [sourceId]);
  await expect(forget({})).rejects.toMatchObject({ code: "records_kept" });
  expect(await forget({ withRecords: true })).toMatchObject({ forgotten: true, held: { records: 6 } });
  expect(await rowCounts(bundle)).toEqual({ ...before, sku: (before.sku ?? 0) + 1 });
});
