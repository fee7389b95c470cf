import pg from "pg";
import { expect, test } from "vitest";
import { METER } from "../../src/core/domain/usage/meter.ts";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { failScopes } from "../../src/core/store/catalog/failures.ts";
import { scopesOf } from "../../src/core/store/catalog/scopes.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { ALL_DUE } from "../support/by-hand.ts";
import { addSource, connect } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, type ResponseRow, setupMigrated, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

/** What the platform could send itself, and what readers would take for no id. */
const LOOK_ALIKES = ["(none)", "\\(none)", "\\\\(none)"];
const WORKSPACES = ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"] as const;

/**
 * Everything that could make two rows of one: renames, empty ids and ids that look like them, two sources alike, gaps,
 * failures, hours for days.
 */
async function fill(store: Store, slug: string): Promise<void> {
  const sourceId = await addSource(store, {
    slug,
    workspaceIds: WORKSPACES,
    dataStart: "2026-02-25",
    strides: ["day", "hour", "week"],
  });
  for (const groupBy of GROUPINGS) {
    for (const workspaceId of WORKSPACES) {
      const named = groupBy === "api_key" ? [undefined, undefined] : ["old name", "new name"];
      const ids = groupBy === "workspace" ? [workspaceId] : ["", ...LOOK_ALIKES, "one", "two"];
      const rowsOf = (buckets: readonly string[], traces: number): ResponseRow[] =>
        buckets.flatMap((bucket, i) =>
          ids.map((id): ResponseRow => {
            const name = id === "" ? undefined : named[i % 2];
            return name === undefined ? [bucket, id, traces] : [bucket, id, traces, name];
          }),
        );
      const load = (window: ReturnType<typeof windowOf>, buckets: readonly string[], traces = 3) =>
        loadRows(store, { sourceId, groupBy, workspaceId, window, rows: rowsOf(buckets, traces) });
      await load(windowOf("day", "2026-02-25", "2026-02-28"), ["2026-02-25", "2026-02-26"]);
      await load(windowOf("day", "2026-03-01", "2026-03-04"), ["2026-03-01", "2026-03-02"]);
      await load(windowOf("day", "2026-03-01", "2026-03-02"), ["2026-03-01"], 9);
      await load(windowOf("week", "2026-02-26", "2026-04-02"), ["2026-02-26"]);
      await load(windowOf("hour", "2026-03-04T00:00Z", "2026-03-04T20:00Z"), ["2026-03-04T03:00Z"]);
      await load(windowOf("hour", "2026-03-04T20:00Z", "2026-03-05T12:00Z"), ["2026-03-04T21:00Z"], 0);
      const april = windowOf("day", "2026-04-01", "2026-05-01");
      if (groupBy === "project") {
        await load(april, ["2026-04-02", "2026-04-03"]);
        const rows = rowsOf(["2026-04-03"], 1);
        await loadRows(store, { sourceId, meter: "longlived", groupBy, workspaceId, window: april, rows });
      }
      for (const meter of ["longlived", "shortlived"] as const) {
        const window = windowOf("day", "2026-02-25", "2026-03-04");
        const rows = rowsOf(["2026-02-25", "2026-03-01"], meter === "longlived" ? 5 : 1);
        await loadRows(store, { sourceId, meter, groupBy, workspaceId, window, rows });
      }
      for (const meter of ["deployments", "sandboxes", "evaluators"] as const) {
        if (!METER[meter].groupings.includes(groupBy)) continue;
        await loadDeploymentRows(store, {
          meter,
          sourceId,
          groupBy,
          workspaceId,
          window: windowOf("day", "2026-02-25", "2026-03-02"),
          rows: ids.map((id) => ["2026-02-26", id, [1, 2, 3]] as const),
        });
      }
      await failScopes(store, {
        scopeIds: await scopesOf(store.db, { sourceId, groupBy, stride: "day", workspaceIds: [workspaceId] }),
        period: windowOf("day", "2026-03-02", "2026-03-08"),
        fetchToken: await drawFetchToken(store.db),
        state: "failed",
        code: "test",
        message: "test",
      });
    }
  }
}

const OTHERS = `
  INSERT INTO usage.resource_tag (workspace_id, dimension, external_id, tag_key, tag_value, valid_from, valid_to)
    SELECT entity_id, dimension, id, key, 'v', since, until
    FROM usage.workspace, unnest('{project,deployment,sandbox}'::text[]) dimension, unnest('{one,"(none)"}'::text[]) id,
         unnest('{a,b}'::text[]) key, unnest('{2026-01-01,2026-02-01}'::date[], '{2026-02-01,NULL}'::date[]) t (since, until);
  INSERT INTO usage.owner_file VALUES (true, '', 'project', now());
  INSERT INTO usage.owner_rule VALUES (1, 1, NULL, NULL, 'project', 'one', NULL, NULL, NULL, '[2026-03-01,)'), (2, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '(,)');
  INSERT INTO usage.owner_share VALUES (1, 'x', NULL, 0.5), (1, 'x', 'c', 0.25), (1, 'y', 'c', 0.25), (2, 'z', NULL, 1);
  INSERT INTO usage.budget VALUES (1, 3, NULL, NULL, NULL, NULL, NULL, 5, '{80}', 'month'), (2, 4, 'default', 'x', NULL, NULL, 'USD', 5, '{80}', 'billing_period');
  INSERT INTO usage.late_change
    SELECT source_id, '2026-03-02', tier, 'project', 'day', final, age, 1, 1
    FROM usage.source, unnest('{true,false}'::boolean[]) final, unnest('{24,48}'::integer[]) age,
         unnest('{all,longlived}'::text[]) tier;
  INSERT INTO usage.difference (scope_id, compared_with, kind, period_start, period_end, external_id, state, fetch_number)
    SELECT scope_id, v.kind, v.kind, '2026-03-01Z', e, external_id, 'platform_disagrees', 1
    FROM usage.trace_scope, unnest('{"",(none),one}'::text[]) external_id, (VALUES ('stride_total', '2026-03-08Z'::timestamptz), ('stride_total', '2026-03-02Z'), ('grouping_total', '2026-03-02Z')) v (kind, e)
    WHERE stride = 'day' AND (external_id = '' OR v.kind = 'stride_total');
  INSERT INTO usage.difference (scope_id, compared_with, external_id, period_start, period_end, kind, fetch_number)
    SELECT scope_id, 'export', external_id, '2026-03-01Z', timestamptz '2026-03-01Z' + CASE stride WHEN 'hour' THEN interval '1 hour' ELSE interval '24 hours' END, 'traces_differ', 1
    FROM usage.trace_scope, unnest('{"",(none),one}'::text[]) external_id WHERE stride IN ('hour', 'day');
  INSERT INTO usage.provider_total
    SELECT source_id, m, metric, workspace, 'Traces', 'traces', 5, 'unknown_value', NULL, 1, now()
    FROM usage.source, unnest('{2026-03-01,2026-04-01}'::date[]) m, unnest('{a,b}'::text[]) metric, unnest('{"",w}'::text[]) workspace;
  INSERT INTO usage.usage_limit
    SELECT source_id, workspace, type, 5, false, now()
    FROM usage.source, unnest('{"",w}'::text[]) workspace, unnest('{monthly_traces,other}'::text[]) type;
  INSERT INTO usage.billing_period (source_id, ends_at, read_at)
    SELECT source_id, e, now() FROM usage.source, unnest('{2026-03-15Z,2026-04-15Z}'::timestamptz[]) e;
  INSERT INTO usage.statement_line SELECT source_id, day, 'members', line, NULL, NULL, '2026-03-01', 5, NULL, now()
    FROM usage.source, unnest('{2026-03-05,2026-03-06}'::date[]) day, unnest('{a,b}'::text[]) line;
  INSERT INTO usage.invoice (source_id, issuer, number, status, currency, total, file_name, file_form, file, file_digest, imported_by)
    SELECT source_id, issuer, number, 'issued', 'USD', 5, 'f', 'csv', '', '', 'ada'
    FROM usage.source, unnest('{a,b}'::text[]) issuer, unnest('{1,2}'::text[]) number;
  INSERT INTO usage.invoice_line
    SELECT invoice_id, n, 'Seats', false, NULL, 'seat', NULL, NULL, NULL, 5, NULL, NULL, NULL, '', ''
    FROM usage.invoice, generate_series(1, 2) n;
  INSERT INTO usage.invoice_match (invoice_id, inputs, inputs_digest, total, bill, remainder)
    SELECT invoice_id, '{}', digest, 5, 5, 0 FROM usage.invoice, unnest('{a,b}'::bytea[]) digest;
  INSERT INTO usage.invoice_match_line (match_id, place, line_number, state, why, divide)
    SELECT match_id, n, n, 'not_comparable', 'seat', 'a=50;b=50' FROM usage.invoice_match, generate_series(1, 2) n;
  INSERT INTO usage.invoice_cause (match_id, place, cause, amount, is_tolerated) SELECT match_id, n, 'seat', 5, false FROM usage.invoice_match, generate_series(1, 2) n;
  INSERT INTO usage.invoice_settlement (invoice_id, match_id, settled_by)
    SELECT invoice_id, match_id, 'ada' FROM usage.invoice_match;
  INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
    SELECT source_id, '2026-03-01', e, 1, 0 FROM usage.source, unnest('{2026-04-15,2026-05-15}'::date[]) e;
  INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements, costs_closed_at)
    SELECT source_id, m, m + interval '1 month', 1, 0, now() FROM usage.source, unnest('{2026-03-01,2026-04-01}'::date[]) m;
  INSERT INTO usage.closed_workspace SELECT close_id, entity_id, false
    FROM usage.close JOIN usage.entity USING (source_id) JOIN usage.workspace USING (entity_id);
  INSERT INTO usage.closed_charge
    SELECT close_id, month_start + (tier + 1) / 2, workspace_id, sku, 'traces', 9, tier, 3 * tier - 3, 0.5 + 0.1 * (tier % 2),
           CASE WHEN tier < 3 THEN 'EUR' ELSE 'USD' END, 5, 2.5
    FROM usage.close JOIN usage.closed_workspace USING (close_id), unnest('{base,extended}'::text[]) sku, generate_series(1, 4) tier
    WHERE month_start IS NOT NULL;
  INSERT INTO usage.closed_correction SELECT close_id, '2026-03-02', workspace_id, sku, 'traces', 9, 1, 0, price, currency, traces, traces * price
    FROM usage.close JOIN usage.closed_workspace USING (close_id), unnest('{base,extended}'::text[]) sku,
         unnest('{0.5,0.6}'::numeric[], '{-3,3}'::bigint[]) p (price, traces), unnest('{EUR,USD}'::text[]) currency
    WHERE month_start = '2026-04-01';
  INSERT INTO usage.closed_total SELECT close_id, series_id, 5
    FROM usage.close JOIN usage.trace_scope USING (source_id) JOIN usage.series USING (scope_id) WHERE stride = 'day';
  INSERT INTO usage.backfill (source_id, stride, period_start, period_end, groupings, workspace_ids, reprocess)
    SELECT source_id, 'day', '2026-01-05Z', '2026-01-06Z', '{project}', '{a}', 'missing' FROM usage.source, generate_series(1, 2);
  INSERT INTO usage.sku (name, measure)
    VALUES ('base', 'traces'), ('extended', 'traces'), ('runs', 'agent_runs'), ('units', 'lcu'), ('upgrade', 'longlived');
  INSERT INTO usage.price (sku_id, unit_price, currency, valid_from, valid_to)
    SELECT sku_id, 0.5, 'USD', '2026-01-01', CASE name WHEN 'extended' THEN '2026-03-01'::date END FROM usage.sku;
  INSERT INTO usage.price_tier SELECT price_id, 2, 0.4 FROM usage.price;
  ${ALL_DUE}`;

test("the key that each view's comment names is unique", async () => {
  const { store, url } = await setupMigrated();
  await fill(store, "default");
  await fill(store, "another");
  const client = await connect(url);
  await client.query(OTHERS);

  const { rows: views } = await client.query<{ name: string; key: string | null }>(`
    SELECT relname AS name, substring(obj_description(oid) FROM '\\(key: ([^)]+)\\)') AS key
    FROM pg_class WHERE relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace) AND relkind = 'v' ORDER BY 1`);
  expect(
    views.filter(({ key }) => key === null).map(({ name }) => name),
    "views whose comment names no key: (key: one, other)",
  ).toEqual([]);
  for (const { name, key } of views) {
    const columns = (key ?? "").split(", ").map((column) => pg.escapeIdentifier(column));
    const { rows } = await client.query<{ all: number; keys: number }>(
      `SELECT count(*)::integer AS all, count(DISTINCT (${columns.join(", ")}))::integer AS keys FROM ${inSchema(name)}`,
    );
    expect(rows[0]?.all, name).toBeGreaterThan(0);
    expect(rows[0]?.keys, `${name} (${key})`).toBe(rows[0]?.all);
  }
});
