import fc from "fast-check";
import { sql } from "kysely";
import type pg from "pg";
import { expect, test } from "vitest";
import { UsageError } from "../../src/core/base/errors.ts";
import type { Meter } from "../../src/core/domain/usage/meter.ts";
import { applyListing, registerWorkspaces } from "../../src/core/store/access/workspaces.ts";
import { failScopes } from "../../src/core/store/catalog/failures.ts";
import { ensureScopes, scopesOf } from "../../src/core/store/catalog/scopes.ts";
import { forgetCapability, learnCapability } from "../../src/core/store/catalog/server-capabilities.ts";
import { expectMeters, learnMeter, type MeterState } from "../../src/core/store/catalog/source-meters.ts";
import { registerSource } from "../../src/core/store/catalog/sources.ts";
import { createWorkspaces } from "../../src/core/store/catalog/write-workspaces.ts";
import { checkCharges } from "../../src/core/store/months/charges.ts";
import { dropOldHours } from "../../src/core/store/retention/prune.ts";
import { drawFetchToken } from "../../src/core/store/work/fetch-ledger.ts";
import { forgetWorkspace } from "../../src/features/catalog/forget.store.ts";
import { moveDataStart } from "../../src/features/catalog/move-data-start.store.ts";
import { keepCosts } from "../../src/features/costs/keep-costs.store.ts";
import { anyPrices } from "../support/any-charges.ts";
import { ALL_DUE } from "../support/by-hand.ts";
import { CLOSE_MARCH, createPrices, DAYS, dayOf, type GivenPrice } from "../support/charges.ts";
import { seed, times } from "../support/drawn.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const place = fc.integer({ min: 20, max: 40 });
const used = fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 6 });
const workspaceId = fc.constantFrom(...WORKSPACES);
const groupBy = fc.constantFrom("workspace" as const, "user" as const);
const settleAfterMs = fc.constantFrom(0, 10 ** 12);

const CLEARED = `BEGIN; SET LOCAL usage.keeps_digests = 'on'; DELETE FROM usage.dated_record; DELETE FROM usage.hourly_record;
  DELETE FROM usage.monthly_total; DELETE FROM usage.coverage; COMMIT`;
const REOPENED = `DELETE FROM usage.closed_charge; DELETE FROM usage.closed_workspace; DELETE FROM usage.close; ${ALL_DUE}`;
const THIRD = "00000000-0000-4000-8000-000000000003";
const BY = { name: "ada", role: "operator", via: "command" } as const;

const registered = ({ store }: Bench, settings: { dataStart?: string; wantedMeters?: Meter[] } = {}) =>
  registerSource(store, {
    slug: "default",
    baseUrl: "https://billing.platform.test/api",
    dataStart: "2026-03-28",
    hourlyHours: 24,
    configurationDigest: "one",
    ...settings,
  });

async function listed(
  { store, sourceId }: Bench,
  { ids, at, deleted }: { ids: readonly string[]; at?: string; deleted?: string },
) {
  const { fetchNumber, fetchedAt } = await drawFetchToken(store.db);
  await applyListing(store, {
    sourceId,
    fetchToken: { fetchNumber, fetchedAt: at === undefined ? fetchedAt : Date.parse(at) },
    workspaces: ids.map((workspaceId) => ({ workspaceId, name: null, isDeleted: workspaceId === deleted })),
  });
}

const learned = ({ store, sourceId }: Bench, state: MeterState, startsOn?: string) =>
  learnMeter(store.db, {
    sourceId,
    meter: "deployments",
    state,
    evidence: "test",
    ...(startsOn === undefined ? {} : { startsOn }),
  });

/** What the product's modules change, other than loads and prices. A rule may refuse it. */
const CHANGES = {
  listed: (bench: Bench) => listed(bench, { ids: WORKSPACES }),
  unlisted: async (bench: Bench) => {
    await bench.client.query(
      "UPDATE usage.workspace SET readable_at = '2026-01-01Z', readable_since = '2026-01-01Z'",
    );
    await listed(bench, { ids: [WORKSPACE], at: "2026-03-25T00:00Z" });
  },
  deleted: (bench: Bench) => listed(bench, { ids: WORKSPACES, deleted: OTHER }),
  oneConfigured: ({ store, sourceId }: Bench) =>
    registerWorkspaces(store.db, { sourceId, workspaceIds: [WORKSPACE] }),
  allConfigured: ({ store, sourceId }: Bench) => registerWorkspaces(store.db, { sourceId, workspaceIds: [] }),
  startsLater: ({ store, sourceId }: Bench) => moveDataStart(store, { sourceId, to: "2026-03-28", by: BY }),
  startsEarlier: (bench: Bench) => registered(bench, { dataStart: "2026-03-01" }),
  wantsTraces: (bench: Bench) => registered(bench, { wantedMeters: ["traces"] }),
  wantsAll: (bench: Bench) =>
    registered(bench, { wantedMeters: ["traces", "longlived", "shortlived", "deployments"] }),
  noDays: ({ store, sourceId }: Bench) =>
    learnCapability(store.db, { sourceId, capability: "no_day", evidence: "test" }),
  daysAgain: ({ store, sourceId }: Bench) => forgetCapability(store.db, { sourceId, capability: "no_day" }),
  expected: ({ store, sourceId }: Bench) =>
    expectMeters(store.db, { sourceId, meters: ["deployments", "longlived"] }),
  counted: (bench: Bench) => learned(bench, "counted", "2026-04-02"),
  countedBefore: (bench: Bench) => learned(bench, "counted", "2026-03-20"),
  notCounted: (bench: Bench) => learned(bench, "not_counted"),
  created: ({ store, sourceId }: Bench) => createWorkspaces(store.db, { sourceId, workspaceIds: [THIRD] }),
  scoped: async ({ store, sourceId }: Bench) => {
    for (const meter of ["traces", "longlived", "deployments"] as const)
      await ensureScopes(store.db, {
        sourceId,
        meter,
        groupings: ["workspace", "user"],
        strides: ["day", "hour"],
      });
  },
  forgotten: async ({ store, sourceId }: Bench) => {
    await createWorkspaces(store.db, { sourceId, workspaceIds: [THIRD] });
    await forgetWorkspace(store, { sourceId, workspaceId: THIRD, withRecords: true, dryRun: false, by: BY });
  },
  costsClosed: ({ store }: Bench) =>
    store.transaction(async ({ db }) => {
      const { rows } = await sql<{ id: number }>`
        with m as (
          insert into usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
          select source_id, '2026-03-01', '2026-04-01', 1, 0 from usage.source
          where not exists (select from usage.close where month_start = '2026-03-01')
          returning close_id
        ), w as (
          insert into usage.closed_workspace select close_id, entity_id, external_id = ${OTHER}
          from m, usage.workspace join usage.entity using (entity_id)
        )
        select close_id as id from m
      `.execute(db);
      for (const { id } of rows) await keepCosts(db, id);
    }),
  pruned: ({ store, sourceId }: Bench) => dropOldHours(store, { sourceId, keepHours: 24 }),
} as const;

const measured: GivenPrice[] = [
  { sku: "long", measure: "longlived", unitPrice: "1" },
  { sku: "long", measure: "longlived", unitPrice: "2", fromQuantity: 50 },
  { sku: "runs", measure: "agent_runs", unitPrice: "3", countedOver: "workspace" },
  { sku: "runs", measure: "agent_runs", unitPrice: "2", countedOver: "workspace", fromQuantity: 60 },
];

/** Instead of those of traces, which would charge them twice. */
const byTier: GivenPrice[] = [{ sku: "short", measure: "shortlived", unitPrice: "1" }];

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("load" as const),
      workspaceId,
      at: place,
      used,
      settleAfterMs,
      meter: fc.constantFrom(
        "traces" as const,
        "traces" as const,
        "longlived" as const,
        "deployments" as const,
      ),
      groupings: fc.constantFrom(["workspace", "user"] as const, ["workspace"] as const, ["user"] as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("hours" as const),
      workspaceId,
      at: place,
      used,
      settleAfterMs,
      groupBy,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("fail" as const),
      workspaceId,
      at: place,
      days: fc.integer({ min: 1, max: 5 }),
      state: fc.constantFrom("failed" as const, "unverified" as const),
      meter: fc.constantFrom("traces" as const, "longlived" as const),
      groupBy,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("prices" as const),
      prices: fc.oneof(anyPrices, fc.constant(byTier)),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("change" as const),
      change: fc.constantFrom(...(Object.keys(CHANGES) as (keyof typeof CHANGES)[])),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("sql" as const),
      sql: fc.constantFrom(
        `UPDATE usage.dated_record SET traces = traces + 1; ${ALL_DUE}`,
        `DELETE FROM usage.hourly_record WHERE traces % 2 = 0; ${ALL_DUE}`,
        "DELETE FROM usage.failure",
        CLEARED,
        "UPDATE usage.coverage SET final = NOT final",
        CLOSE_MARCH,
        REOPENED,
        `UPDATE usage.closed_workspace SET is_left_out = NOT is_left_out;
         DELETE FROM usage.closed_charge c USING usage.closed_workspace w
         WHERE w.close_id = c.close_id AND w.workspace_id = c.workspace_id AND w.is_left_out; ${ALL_DUE}`,
        `INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
         SELECT source_id, '2026-04-01', '2026-05-01', 1, 0 FROM usage.source ON CONFLICT DO NOTHING; ${ALL_DUE}`,
        `UPDATE usage.close SET costs_closed_at = CASE WHEN costs_closed_at IS NULL THEN now() END; ${ALL_DUE}`,
      ),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Bench = Awaited<ReturnType<typeof setupSource>> & { readonly client: pg.Client };

async function take(bench: Bench, one: Step): Promise<void> {
  const { store, sourceId, client } = bench;
  switch (one.do) {
    case "load": {
      const { workspaceId, at, used, settleAfterMs } = one;
      const window = windowOf("day", dayOf(at), dayOf(at + used.length));
      for (const groupBy of one.groupings) {
        const given = { sourceId, workspaceId, groupBy, window, settleAfterMs };
        const idOf = (i: number) => (groupBy === "workspace" ? workspaceId : i % 3 === 2 ? "" : OTHER);
        if (one.meter === "deployments") {
          const rows = used.map((count, i) => [dayOf(at + i), idOf(i), [count, count, count]] as const);
          await loadDeploymentRows(store, { ...given, rows });
        } else {
          const rows = used.map((count, i) => [dayOf(at + i), idOf(i), count] as const);
          await loadRows(store, {
            ...given,
            meter: one.meter,
            rows: rows.filter(([, , count]) => count > 0),
          });
        }
      }
      return;
    }
    case "hours": {
      const { workspaceId, at, used, groupBy, settleAfterMs } = one;
      const window = windowOf("hour", dayOf(at), dayOf(at + 1));
      const rows = used.map((count, hour) => [`${dayOf(at)}T0${hour}:00Z`, workspaceId, count] as const);
      const given = { sourceId, workspaceId, groupBy, window, settleAfterMs };
      await loadRows(store, { ...given, rows: rows.filter(([, , count]) => count > 0) });
      return;
    }
    case "fail": {
      const { workspaceId, at, days, state, meter, groupBy } = one;
      const scope = { sourceId, meter, groupBy, stride: "day" as const };
      await failScopes(store, {
        scopeIds: await scopesOf(store.db, { ...scope, workspaceIds: [workspaceId] }),
        period: windowOf("day", dayOf(at), dayOf(at + days)),
        fetchToken: await drawFetchToken(store.db),
        state,
        code: "server_error",
        message: "test",
      });
      return;
    }
    case "prices":
      await createPrices(store, [...one.prices, ...measured]);
      return;
    case "change":
      await (CHANGES[one.change](bench) as Promise<unknown>).catch((error: unknown) => {
        if (!(error instanceof UsageError)) throw error;
      });
      return;
    case "sql":
      // A close that is there already, and what else a constraint refuses, changes nothing.
      await client.query(one.sql).catch((error: { code?: string }) => {
        if (!error.code?.startsWith("23")) throw error;
      });
  }
}

const NOT_DIVIDED = `
  WITH used AS (
    SELECT usage_date, workspace_id, user_id, 'traces' AS measure, traces AS quantity, coverage_status FROM reporting.fct_usage_user_daily
    UNION ALL
    -- That view has them only where all traces of the user are loaded as well.
    SELECT r.bucket_start, w.external_id, u.external_id, 'longlived', r.traces,
           CASE WHEN d.loaded @> r.bucket_start THEN usage.status_at(r.bucket_start, d.final, '{}', d.failed, '{}', d.unverified)
                ELSE 'missing' END
    FROM usage.scope c JOIN usage.day_state d USING (scope_id) JOIN usage.series s USING (scope_id)
    JOIN usage.dated_record r USING (series_id)
    JOIN usage.entity w ON w.entity_id = c.workspace_id JOIN usage.entity u ON u.entity_id = s.entity_id
    WHERE c.group_by = 'user' AND c.stride = 'day' AND c.trace_tier = 'longlived' AND u.external_id <> ''
    UNION ALL
    SELECT usage_date, workspace_id, user_id, 'shortlived', shortlived_traces, tiers_status FROM reporting.fct_usage_user_daily
    UNION ALL
    SELECT usage_date, workspace_id, dimension_id, measure, quantity, coverage_status FROM reporting_detail.fct_other_usage_daily
    WHERE group_by = 'user' AND measure = 'agent_runs'
  ), whole AS (
    SELECT usage_date, workspace_id, sku, measure, bool_and(is_final) AS is_final, min(coverage_status) AS coverage_status,
           sum(estimated_cost) AS cost
    FROM reporting.fct_cost_workspace_daily GROUP BY 1, 2, 3, 4
  ), expected AS (
    SELECT usage_date, workspace_id, user_id, sku, u.quantity, w.is_final AND f.is_final,
           CASE WHEN f.is_final THEN w.coverage_status ELSE u.coverage_status END
    FROM used u
    JOIN whole w USING (usage_date, workspace_id, measure)
    CROSS JOIN LATERAL (SELECT u.coverage_status IN ('ok', 'empty') AS is_final) f
    WHERE u.quantity > 0 AND u.user_id <> '(none)'
  ), divided AS (
    SELECT usage_date, workspace_id, dimension_id, sku, quantity, is_final, coverage_status
    FROM reporting_detail.fct_cost_by_id_daily
    WHERE group_by = 'user' AND dimension_id NOT IN ('(none)', '(adjustment)')
  ), summed AS (
    SELECT usage_date, workspace_id, sku, sum(estimated_cost) AS cost FROM reporting_detail.fct_cost_by_id_daily
    WHERE group_by = 'user' GROUP BY 1, 2, 3
  )
  SELECT 'missing' AS what, to_jsonb(x)::text AS it FROM (SELECT * FROM expected EXCEPT ALL SELECT * FROM divided) x
  UNION ALL SELECT 'too much', to_jsonb(x)::text FROM (SELECT * FROM divided EXCEPT ALL SELECT * FROM expected) x
  UNION ALL
  SELECT 'sum', to_jsonb(x)::text
  FROM (
    (SELECT usage_date, workspace_id, sku, cost FROM whole EXCEPT SELECT * FROM summed)
    UNION ALL (SELECT * FROM summed EXCEPT SELECT usage_date, workspace_id, sku, cost FROM whole)
  ) x`;

const NOT_ATTRIBUTED = `
  WITH by_user AS (
    SELECT usage_date, workspace_id, bool_or(traces IS NULL) AS lacks, sum(traces) FILTER (WHERE user_id <> '(none)') AS traces
    FROM reporting.fct_usage_user_daily GROUP BY 1, 2
  ), expected AS (
    SELECT usage_date, workspace_id, w.traces, a.traces AS attributed, CASE WHEN f.is_final THEN w.traces - a.traces END, f.is_final
    FROM reporting.fct_usage_workspace_daily w
    JOIN reporting_detail.usage_coverage_daily c USING (usage_date, workspace_id)
    LEFT JOIN by_user u USING (usage_date, workspace_id)
    CROSS JOIN LATERAL (SELECT CASE WHEN u.lacks IS NOT TRUE THEN coalesce(u.traces, 0) END AS traces) a
    CROSS JOIN LATERAL (SELECT w.is_final AND c.status IN ('ok', 'empty') AS is_final) f
    WHERE c.group_by = 'user' AND c.stride = 'day'
  ), shown AS (
    SELECT usage_date, workspace_id, workspace_traces, attributed_traces, unattributed_traces, is_final
    FROM reporting_detail.usage_unattributed_daily WHERE group_by = 'user'
  )
  SELECT to_jsonb(x)::text AS it
  FROM ((TABLE expected EXCEPT ALL TABLE shown) UNION ALL (TABLE shown EXCEPT ALL TABLE expected)) x`;

const NOT_TIERED = `
  WITH own AS (
    SELECT d.usage_date, e.external_id AS workspace_id, s.trace_tier
    FROM usage.scope s JOIN usage.entity e ON e.entity_id = s.workspace_id JOIN usage.coverage c USING (scope_id)
    CROSS JOIN LATERAL generate_series(c.period_start AT TIME ZONE 'UTC', c.period_end AT TIME ZONE 'UTC' - interval '1 day', '1 day') t (day)
    CROSS JOIN LATERAL (SELECT day::date AS usage_date) d
    WHERE s.kind = 'traces' AND s.stride = 'day' AND s.group_by = 'workspace'
  ), known AS (
    SELECT usage_date, workspace_id, bool_or(trace_tier = 'longlived') AS known,
           count(DISTINCT trace_tier) FILTER (WHERE trace_tier IN ('all', 'longlived')) = 2 AS both_known
    FROM own GROUP BY 1, 2
  ), tier AS (
    SELECT usage_date, workspace_id, meter AS trace_tier, quantity::bigint AS traces, status FROM usage.measured_day
  ), daily AS MATERIALIZED (
    -- Joined as it is, the view is computed for each day anew.
    SELECT usage_date, workspace_id, traces, coverage_status, longlived_traces, shortlived_traces, tiers_status
    FROM reporting.fct_usage_workspace_daily
  ), record AS (
    SELECT r.bucket_start AS usage_date, e.external_id AS workspace_id, sum(r.traces)::bigint AS traces
    FROM usage.dated_record r JOIN usage.series USING (series_id) JOIN usage.scope s USING (scope_id)
    JOIN usage.entity e ON e.entity_id = s.workspace_id
    WHERE s.trace_tier = 'longlived' AND s.stride = 'day' AND s.group_by = 'workspace' GROUP BY 1, 2
  ), both_tiers AS (
    SELECT usage_date, workspace_id, l.traces AS long, s.traces AS short, s.status, w.traces, k.known, k.both_known,
           w.longlived_traces, w.shortlived_traces, w.tiers_status,
           CASE WHEN k.known THEN coalesce(r.traces, 0) END AS recorded, least(
             array_position(a.statuses, replace(l.status, 'empty', 'ok')), array_position(a.statuses, replace(w.coverage_status, 'empty', 'ok'))
           ) AS worst, a.statuses
    FROM (SELECT * FROM tier WHERE trace_tier = 'longlived') l
    JOIN (SELECT * FROM tier WHERE trace_tier = 'shortlived') s USING (usage_date, workspace_id)
    JOIN daily w USING (usage_date, workspace_id)
    LEFT JOIN record r USING (usage_date, workspace_id)
    LEFT JOIN known o USING (usage_date, workspace_id)
    CROSS JOIN LATERAL (SELECT o.known IS TRUE AS known, o.both_known IS TRUE AS both_known) k
    CROSS JOIN (SELECT '{failed,unverified,provisional,ok}'::text[] AS statuses) a
  )
  SELECT to_jsonb(x)::text AS it FROM both_tiers x
  WHERE long IS DISTINCT FROM recorded
     OR longlived_traces IS DISTINCT FROM CASE WHEN both_known THEN long END OR shortlived_traces IS DISTINCT FROM short
     OR tiers_status IS DISTINCT FROM status
     OR short IS DISTINCT FROM CASE WHEN both_known AND traces >= long THEN traces - long END
     OR both_known AND status <> CASE WHEN long > traces THEN 'inconsistent' WHEN worst = 4 AND short = 0 THEN 'empty' ELSE statuses[worst] END`;

const NOT_BILLED = `
  WITH bill AS (
    SELECT month_start, measure, sku, unit_price, currency, line, is_closed, sum(quantity) AS quantity, sum(estimated_cost) AS cost
    FROM reporting.usage_bill_monthly WHERE line IN ('charge', 'correction') GROUP BY 1, 2, 3, 4, 5, 6, 7
  ), focus AS (
    SELECT "x_BillingMonth", "SkuId", "ListUnitPrice", "BillingCurrency", CASE WHEN "ChargeClass" IS NULL THEN 'charge' ELSE 'correction' END,
           sum("PricingQuantity"), sum("BilledCost")
    FROM reporting_detail.focus_1_4_cost_and_usage GROUP BY 1, 2, 3, 4, 5
  ), billed AS (
    SELECT month_start, sku, unit_price, currency, line, quantity, cost FROM bill
  ), cost AS (
    SELECT * FROM reporting.fct_cost_workspace_daily c
    -- What a close left out is in the bill of a later month. Closed charges of a month without closed costs are no state of the program.
    WHERE c.is_closed = EXISTS (
      SELECT FROM usage.close m WHERE m.costs_closed_at IS NOT NULL AND m.month_start = date_trunc('month', c.usage_date)
    )
  ), daily AS (
    SELECT date_trunc('month', usage_date)::date, measure, sku, unit_price, currency, is_closed, sum(quantity), sum(estimated_cost)
    FROM cost GROUP BY 1, 2, 3, 4, 5, 6
  ), day_cost AS (
    SELECT usage_date, workspace_id, sku, unit_price, currency, quantity, estimated_cost, is_final, coverage_status FROM cost
  ), day_focus AS (
    SELECT "x_UsageDate", "SubAccountId", "SkuId", "ListUnitPrice", "BillingCurrency", "ConsumedQuantity", "EffectiveCost", "x_IsFinal", "x_CoverageStatus"
    FROM reporting_detail.focus_1_4_cost_and_usage WHERE "ChargeClass" IS NULL
  ), charged AS (
    SELECT month_start, measure, sku, unit_price, currency, is_closed, quantity, cost FROM bill WHERE line = 'charge'
  ), lacking AS (
    SELECT DISTINCT date_trunc('month', usage_date)::date AS month FROM reporting.fct_usage_workspace_daily
    WHERE traces IS NULL AND usage_date < (now() AT TIME ZONE 'UTC')::date
  ), said AS (
    SELECT month_start FROM reporting.usage_bill_monthly WHERE line = 'not_loaded' AND measure = 'traces' AND days_expected IS NOT NULL
  )
  SELECT 'focus' AS what, to_jsonb(x)::text AS it
  FROM ((TABLE focus EXCEPT ALL TABLE billed) UNION ALL (TABLE billed EXCEPT ALL TABLE focus)) x
  UNION ALL
  SELECT 'daily', to_jsonb(x)::text FROM ((TABLE daily EXCEPT ALL TABLE charged) UNION ALL (TABLE charged EXCEPT ALL TABLE daily)) x
  UNION ALL
  SELECT 'day', to_jsonb(x)::text
  FROM ((TABLE day_cost EXCEPT ALL TABLE day_focus) UNION ALL (TABLE day_focus EXCEPT ALL TABLE day_cost)) x
  UNION ALL
  SELECT 'lacking', to_jsonb(x)::text FROM ((TABLE lacking EXCEPT TABLE said) UNION ALL (TABLE said EXCEPT TABLE lacking)) x`;

const LOADED = { do: "load" as const, meter: "traces" as const, at: 0, used: [60, 70, 80], settleAfterMs: 0 };
const HOURS = { do: "hours" as const, at: 10, used: [5, 6], settleAfterMs: 0 };
const FAILED = { do: "fail" as const, at: 22, days: 5, state: "failed" as const };
const EXAMPLES: [Step[]][] = [
  [
    [
      { do: "prices", prices: [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 100 }] },
      { do: "sql", sql: CLOSE_MARCH },
      { ...LOADED, workspaceId: WORKSPACE, groupings: ["workspace", "user"] },
      { do: "sql", sql: REOPENED },
    ],
  ],
  // One tier is final while the other may change, or has failed; and more long-lived traces than traces.
  [
    [
      { do: "sql", sql: CLEARED },
      {
        ...LOADED,
        workspaceId: WORKSPACE,
        meter: "longlived",
        at: 22,
        used: [10, 20],
        groupings: ["workspace"],
      },
      {
        ...LOADED,
        workspaceId: WORKSPACE,
        at: 22,
        used: [15, 15],
        settleAfterMs: 10 ** 12,
        groupings: ["workspace"],
      },
      { ...FAILED, workspaceId: WORKSPACE, meter: "traces", groupBy: "workspace" },
    ],
  ],
  [
    [
      { do: "prices", prices: byTier },
      { ...FAILED, workspaceId: WORKSPACE, meter: "longlived", groupBy: "user" },
      { do: "sql", sql: CLEARED },
      { do: "prices", prices: [{ unitPrice: "1" }] },
      { ...HOURS, workspaceId: WORKSPACE, groupBy: "workspace" },
      { do: "prices", prices: byTier },
      { ...LOADED, workspaceId: WORKSPACE, groupings: ["workspace", "user"] },
      { ...LOADED, workspaceId: WORKSPACE, meter: "longlived", used: [1, 2, 3], groupings: ["workspace"] },
    ],
  ],
  [
    [
      { do: "sql", sql: CLEARED },
      { do: "prices", prices: [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 100 }] },
      { do: "change", change: "oneConfigured" },
      { ...LOADED, workspaceId: WORKSPACE, groupings: ["workspace"] },
      { ...LOADED, workspaceId: OTHER, groupings: ["user"] },
      { do: "change", change: "allConfigured" },
    ],
  ],
];
const SEED = seed();

test("each module that changes what charges follow from has them computed", async () => {
  const source = await setupSource();
  const client = await connectPlain(source.url);
  const bench = { ...source, client };
  const load = async (meter: Meter, workspaceId: string, first: number, after: number) => {
    const used = Array.from({ length: after - first }, (_, at) => at % 3);
    await take(bench, { ...LOADED, workspaceId, meter, at: first, used, groupings: ["workspace"] } as Step);
  };
  const idle: string[] = [];
  const change = async (...changes: (keyof typeof CHANGES)[]) => {
    for (const one of changes) {
      const read = async () =>
        (await client.query("SELECT c::text FROM usage.charge c ORDER BY 1")).rows.map((row) => row.c).join();
      const before = await read();
      await take(bench, { do: "change", change: one });
      expect(await checkCharges(bench.store.db, bench.sourceId), one).toMatchObject({ wrong: 0 });
      if (before === (await read())) idle.push(one);
    }
  };
  await createPrices(bench.store, [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 30 }, ...measured]);
  await load("traces", WORKSPACE, 0, DAYS);
  await load("traces", OTHER, 0, 5);
  await load("traces", OTHER, 6, 31);
  await load("longlived", WORKSPACE, 0, DAYS);
  await load("deployments", WORKSPACE, 22, DAYS);
  await change("counted", "countedBefore", "oneConfigured", "allConfigured", "noDays", "daysAgain");
  await change("unlisted", "listed");
  await load("traces", OTHER, 0, DAYS);
  await load("longlived", OTHER, 0, DAYS);
  await change("created", "expected", "wantsTraces", "scoped", "forgotten");
  await change("costsClosed");
  await client.query(REOPENED);
  await client.query(CLEARED);
  for (const workspaceId of WORKSPACES) await load("traces", workspaceId, 27, 31);
  await change("startsLater", "startsEarlier");
  expect(idle, "changes without an effect").toEqual([]);
});

test(`stored charges are those that usage, prices and closes say, after each step of any history [seed ${SEED}]`, async () => {
  const source = await setupSource();
  const client = await connectPlain(source.url);
  const bench = { ...source, client };
  for (const workspaceId of WORKSPACES) {
    const window = windowOf("day", dayOf(0), dayOf(DAYS));
    for (const groupBy of ["workspace", "user"] as const) {
      for (const meter of ["traces", "longlived"] as const) {
        const used = meter === "traces" ? 40 : 10;
        const rows = [22, 30, 31, 33].map((at) => [dayOf(at), workspaceId, used] as const);
        await loadRows(bench.store, { ...bench, workspaceId, meter, groupBy, window, rows });
      }
    }
  }
  await createPrices(bench.store, [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 100 }, ...measured]);
  let [seen, ids] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 20 }), async (steps) => {
      for (const one of steps) {
        await take(bench, one);
        expect(await checkCharges(bench.store.db, bench.sourceId), JSON.stringify(one)).toEqual({
          wrong: 0,
          first: undefined,
        });
        // Named, so that they are planned once: that takes longer than running them.
        for (const [name, text] of Object.entries({ NOT_DIVIDED, NOT_ATTRIBUTED, NOT_TIERED, NOT_BILLED })) {
          expect((await client.query({ name, text })).rows, `${name}: ${JSON.stringify(one)}`).toEqual([]);
        }
        const { rows } = await client.query(
          "SELECT count(*) AS n, count(dimension_id) AS ids FROM reporting_detail.fct_cost_by_id_daily WHERE group_by = 'user'",
        );
        seen += Number(rows[0].n);
        ids += Number(rows[0].ids);
      }
    }),
    { seed: SEED, numRuns: EXAMPLES.length + times(3), endOnFailure: true, examples: EXAMPLES },
  );
  expect(Math.min(seen, ids)).toBeGreaterThan(10);
});
