import fc from "fast-check";
import type pg from "pg";
import { expect, test } from "vitest";
import { checkCharges } from "../../src/store/bill/charges.ts";
import { scopesOf } from "../../src/store/catalog/scopes.ts";
import { failScopes } from "../../src/store/load/failures.ts";
import { drawStamp } from "../../src/store/load/fetch-ledger.ts";
import { anyPrices } from "../support/any-charges.ts";
import { CLOSE_MARCH, DAYS, dayOf, enterPrices, type GivenPrice } from "../support/charges.ts";
import { seed, times } from "../support/drawn.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../support/store.ts";

/**
 * Stored charges after each step of drawn histories, whoever changes what they follow from, against charges that are computed anew
 * (usage.wrong_charges); and their division by user against usage by user. What is computed is compared with an independent
 * recomputation in charge.test.ts.
 */

const [WORKSPACE, OTHER] = WORKSPACES;
const place = fc.integer({ min: 20, max: 40 });
const used = fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 6 });
const workspaceId = fc.constantFrom(...WORKSPACES);
const groupBy = fc.constantFrom("workspace" as const, "user" as const);
/** A load as final, or as provisional. */
const settleAfterMs = fc.constantFrom(0, 10 ** 12);

const CLEARED = `BEGIN; SET LOCAL usage.keeps_digests = 'on'; DELETE FROM usage.dated_record; DELETE FROM usage.hourly_record;
  DELETE FROM usage.monthly_total; DELETE FROM usage.coverage; COMMIT`;
const REOPENED =
  "DELETE FROM usage.closed_charge; DELETE FROM usage.closed_workspace; DELETE FROM usage.month_close";
const ONE_CONFIGURED = `UPDATE usage.source SET workspace_ids = CASE WHEN cardinality(workspace_ids) = 1 THEN '{}' ELSE '{${WORKSPACE}}'::text[] END`;

/** Prices of the other measures, beside those of traces. */
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
      do: fc.constant("sql" as const),
      sql: fc.constantFrom(
        "UPDATE usage.dated_record SET traces = traces + 1",
        "DELETE FROM usage.hourly_record WHERE traces % 2 = 0",
        "DELETE FROM usage.failure",
        // As the program does it: coverage alone says what changed.
        CLEARED,
        "UPDATE usage.coverage SET final = NOT final",
        CLOSE_MARCH,
        REOPENED,
        // What a close leaves out has no costs of it.
        `UPDATE usage.closed_workspace SET is_left_out = NOT is_left_out;
         DELETE FROM usage.closed_charge c USING usage.closed_workspace w
         WHERE w.close_id = c.close_id AND w.workspace_id = c.workspace_id AND w.is_left_out`,
        `INSERT INTO usage.month_close (source_id, month_start, settle_after_seconds, accepted_disagreements)
         SELECT source_id, '2026-04-01', 1, 0 FROM usage.source ON CONFLICT DO NOTHING`,
        "UPDATE usage.month_close SET costs_closed_at = CASE WHEN costs_closed_at IS NULL THEN now() END",
        `UPDATE usage.workspace SET unlisted_since = CASE WHEN unlisted_since IS NULL THEN '2026-03-25'::timestamptz END
         WHERE entity_id = (SELECT max(entity_id) FROM usage.workspace)`,
        "UPDATE usage.workspace SET is_deleted = NOT is_deleted",
        ONE_CONFIGURED,
        `UPDATE usage.source SET data_start = CASE data_start WHEN '2026-03-01' THEN '2026-03-28'::date ELSE '2026-03-01' END`,
        "INSERT INTO usage.source_fact SELECT source_id, 'no_day', 'test' FROM usage.source ON CONFLICT DO NOTHING",
        "DELETE FROM usage.source_fact",
        `INSERT INTO usage.source_meter (source_id, meter, state, evidence, starts_on, ask_again_at)
         SELECT source_id, 'deployments', 'counted', 'test', '2026-03-25', now() FROM usage.source
         ON CONFLICT (source_id, meter) DO UPDATE SET starts_on = CASE source_meter.starts_on WHEN '2026-03-25' THEN '2026-04-02'::date END`,
        "DELETE FROM usage.source_meter",
      ),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Bench = Awaited<ReturnType<typeof setupSource>>;

async function take({ store, sourceId }: Bench, client: pg.Client, one: Step): Promise<void> {
  switch (one.do) {
    case "load": {
      const { workspaceId, at, used, settleAfterMs } = one;
      const window = windowOf("day", dayOf(at), dayOf(at + used.length));
      for (const groupBy of one.groupings) {
        const given = { sourceId, workspaceId, groupBy, window, settleAfterMs };
        // On each third day the platform names no user.
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
        stamp: await drawStamp(store.db),
        state,
        code: "server_error",
        message: "test",
      });
      return;
    }
    case "prices":
      await enterPrices(store, [...one.prices, ...measured]);
      return;
    case "sql":
      // A close that is there already, and what else a constraint refuses, changes nothing.
      await client.query(one.sql).catch((error: { code?: string }) => {
        if (!error.code?.startsWith("23")) throw error;
      });
  }
}

/** Costs by user that usage by user and costs by workspace do not say, or the other way round; and days with another sum. */
const NOT_DIVIDED = `
  WITH used AS (
    SELECT usage_date, workspace_id, user_id, 'traces' AS measure, traces AS quantity, coverage_status FROM reporting.fct_usage_user_daily
    UNION ALL
    SELECT usage_date, workspace_id, user_id, trace_tier, traces, coverage_status FROM reporting_detail.fct_usage_user_by_tier_daily
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

/** Days on which what users have, and what nobody has, is not what usage by workspace and by user says. */
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

/** Traces by tier that are not those of the long-lived records of a day, or what they leave of the traces of a day of its own. */
const NOT_TIERED = `
  WITH own AS (
    SELECT d.usage_date, e.external_id AS workspace_id, s.trace_tier
    FROM usage.scope s JOIN usage.entity e ON e.entity_id = s.workspace_id JOIN usage.coverage c USING (scope_id)
    CROSS JOIN LATERAL generate_series(c.period_start AT TIME ZONE 'UTC', c.period_end AT TIME ZONE 'UTC' - interval '1 day', '1 day') t (day)
    CROSS JOIN LATERAL (SELECT day::date AS usage_date) d
    WHERE s.kind = 'traces' AND s.stride = 'day' AND s.group_by = 'workspace'
  ), tier AS (
    SELECT usage_date, workspace_id, trace_tier, traces, coverage_status AS status FROM reporting_detail.fct_usage_workspace_by_tier_daily
  ), record AS (
    SELECT r.bucket_start AS usage_date, e.external_id AS workspace_id, sum(r.traces)::bigint AS traces
    FROM usage.dated_record r JOIN usage.series USING (series_id) JOIN usage.scope s USING (scope_id)
    JOIN usage.entity e ON e.entity_id = s.workspace_id
    WHERE s.trace_tier = 'longlived' AND s.stride = 'day' AND s.group_by = 'workspace' GROUP BY 1, 2
  ), both_tiers AS (
    SELECT usage_date, workspace_id, l.traces AS long, s.traces AS short, s.status, w.traces, k.known, k.both_known,
           CASE WHEN k.known THEN coalesce(r.traces, 0) END AS recorded, least(
             array_position(a.statuses, replace(l.status, 'empty', 'ok')), array_position(a.statuses, replace(w.coverage_status, 'empty', 'ok'))
           ) AS worst, a.statuses
    FROM (SELECT * FROM tier WHERE trace_tier = 'longlived') l
    JOIN (SELECT * FROM tier WHERE trace_tier = 'shortlived') s USING (usage_date, workspace_id)
    JOIN reporting.fct_usage_workspace_daily w USING (usage_date, workspace_id)
    LEFT JOIN record r USING (usage_date, workspace_id)
    CROSS JOIN LATERAL (
      SELECT bool_or(trace_tier = 'longlived') IS TRUE AS known, count(DISTINCT trace_tier) FILTER (WHERE trace_tier IN ('all', 'longlived')) = 2 AS both_known
      FROM own o WHERE o.usage_date = l.usage_date AND o.workspace_id = l.workspace_id
    ) k
    CROSS JOIN (SELECT '{failed,unverified,provisional,ok}'::text[] AS statuses) a
  )
  SELECT to_jsonb(x)::text AS it FROM both_tiers x
  WHERE long IS DISTINCT FROM recorded
     OR short IS DISTINCT FROM CASE WHEN both_known AND traces >= long THEN traces - long END
     OR both_known AND status <> CASE WHEN long > traces THEN 'inconsistent' WHEN worst = 4 AND short = 0 THEN 'empty' ELSE statuses[worst] END`;

/** Lines of a bill that FOCUS and the costs by day do not say, or the other way round; and months that hide a day that is not loaded. */
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
      SELECT FROM usage.month_close m WHERE m.costs_closed_at IS NOT NULL AND m.month_start = date_trunc('month', c.usage_date)
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

const LOADED = {
  do: "load" as const,
  meter: "traces" as const,
  at: 0,
  used: [60, 70, 80],
  settleAfterMs: 0,
};
const HOURS = { do: "hours" as const, at: 10, used: [5, 6], settleAfterMs: 0 };
const FAILED = { do: "fail" as const, at: 22, days: 5, state: "failed" as const };
const SEED = seed();

test(`stored charges are those that usage, prices and closes say, after each step of any history [seed ${SEED}]`, async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  // Something to change from the first step on.
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
  await enterPrices(bench.store, [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 100 }, ...measured]);
  let [seen, ids] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 20 }), async (steps) => {
      for (const one of steps) {
        await take(bench, client, one);
        expect(await checkCharges(bench.store.db, bench.sourceId), JSON.stringify(one)).toEqual({
          wrong: 0,
          first: undefined,
        });
        for (const query of [NOT_DIVIDED, NOT_ATTRIBUTED, NOT_TIERED, NOT_BILLED]) {
          expect((await client.query(query)).rows, JSON.stringify(one)).toEqual([]);
        }
        const { rows } = await client.query(
          "SELECT count(*) AS n, count(dimension_id) AS ids FROM reporting_detail.fct_cost_by_id_daily WHERE group_by = 'user'",
        );
        seen += Number(rows[0].n);
        ids += Number(rows[0].ids);
      }
    }),
    {
      seed: SEED,
      numRuns: times(3) + 1,
      endOnFailure: true,
      examples: [
        // A month that is closed and corrected, and closed no more.
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
        // Hours make up a day. Short-lived traces by user are no better than the long-lived ones, and unknown without them.
        [
          [
            { do: "prices", prices: byTier },
            { ...FAILED, workspaceId: WORKSPACE, meter: "longlived", groupBy: "user" },
            { do: "sql", sql: CLEARED },
            { do: "prices", prices: [{ unitPrice: "1" }] },
            { ...HOURS, workspaceId: WORKSPACE, groupBy: "workspace" },
            { do: "prices", prices: byTier },
            { ...LOADED, workspaceId: WORKSPACE, groupings: ["workspace", "user"] },
            {
              ...LOADED,
              workspaceId: WORKSPACE,
              meter: "longlived",
              used: [1, 2, 3],
              groupings: ["workspace"],
            },
          ],
        ],
        // Whatever is loaded of a workspace that is asked about no more makes its days expected: then others' tiers are not certain.
        [
          [
            { do: "sql", sql: CLEARED },
            { do: "prices", prices: [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 100 }] },
            { do: "sql", sql: ONE_CONFIGURED },
            { ...LOADED, workspaceId: WORKSPACE, groupings: ["workspace"] },
            { ...LOADED, workspaceId: OTHER, groupings: ["user"] },
            { do: "sql", sql: ONE_CONFIGURED },
          ],
        ],
      ],
    },
  );
  expect(Math.min(seen, ids)).toBeGreaterThan(10);
});
