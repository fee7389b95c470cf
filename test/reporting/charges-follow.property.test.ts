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
 * (usage.wrong_charges). What is computed is compared with an independent recomputation in charge.test.ts.
 */

const [WORKSPACE, OTHER] = WORKSPACES;
const place = fc.integer({ min: 20, max: 40 });
const used = fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 6 });
const workspaceId = fc.constantFrom(...WORKSPACES);
/** A load as final, or as provisional. */
const settleAfterMs = fc.constantFrom(0, 10 ** 12);

const CLEARED = `BEGIN; SET LOCAL usage.keeps_digests = 'on'; DELETE FROM usage.dated_record; DELETE FROM usage.hourly_record;
  DELETE FROM usage.monthly_total; DELETE FROM usage.coverage; COMMIT`;
const ONE_CONFIGURED = `UPDATE usage.source SET workspace_ids = CASE WHEN cardinality(workspace_ids) = 1 THEN '{}' ELSE '{${WORKSPACE}}'::text[] END`;

/** Prices of the other measures, beside those of traces. */
const measured: GivenPrice[] = [
  { sku: "long", measure: "longlived", unitPrice: "1" },
  { sku: "long", measure: "longlived", unitPrice: "2", fromQuantity: 50 },
  { sku: "runs", measure: "agent_runs", unitPrice: "3", countedOver: "workspace" },
  { sku: "runs", measure: "agent_runs", unitPrice: "2", countedOver: "workspace", fromQuantity: 60 },
];

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("load" as const),
      ...{ workspaceId, at: place, used, settleAfterMs },
      meter: fc.constantFrom(
        "traces" as const,
        "traces" as const,
        "longlived" as const,
        "deployments" as const,
      ),
      groupBy: fc.constantFrom("workspace" as const, "workspace" as const, "user" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("hours" as const), workspaceId, at: place, used, settleAfterMs }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("fail" as const),
      ...{ workspaceId, at: place, days: fc.integer({ min: 1, max: 5 }) },
      state: fc.constantFrom("failed" as const, "unverified" as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("prices" as const), prices: anyPrices }) },
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
        "DELETE FROM usage.closed_charge; DELETE FROM usage.closed_workspace; DELETE FROM usage.month_close",
        "UPDATE usage.closed_workspace SET is_left_out = NOT is_left_out",
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
        `INSERT INTO usage.source_meter (source_id, meter, is_available, evidence, starts_on, ask_again_at)
         SELECT source_id, 'deployments', true, 'test', '2026-03-25', now() FROM usage.source
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
      const { workspaceId, at, used, groupBy, settleAfterMs } = one;
      const window = windowOf("day", dayOf(at), dayOf(at + used.length));
      const given = { sourceId, workspaceId, groupBy, window, settleAfterMs };
      const id = groupBy === "workspace" ? workspaceId : OTHER;
      if (one.meter === "deployments") {
        const rows = used.map((count, i) => [dayOf(at + i), id, [count, count, count]] as const);
        await loadDeploymentRows(store, { ...given, rows });
      } else {
        const rows = used.map((count, i) => [dayOf(at + i), id, count] as const);
        await loadRows(store, { ...given, meter: one.meter, rows: rows.filter(([, , count]) => count > 0) });
      }
      return;
    }
    case "hours": {
      const { workspaceId, at, used, settleAfterMs } = one;
      const window = windowOf("hour", dayOf(at), dayOf(at + 1));
      const rows = used.map((count, hour) => [`${dayOf(at)}T0${hour}:00Z`, workspaceId, count] as const);
      const given = { sourceId, workspaceId, groupBy: "workspace" as const, window, settleAfterMs };
      await loadRows(store, { ...given, rows: rows.filter(([, , count]) => count > 0) });
      return;
    }
    case "fail": {
      const { workspaceId, at, days, state } = one;
      const scope = { sourceId, groupBy: "workspace" as const, stride: "day" as const };
      await failScopes(store, {
        scopeIds: await scopesOf(store.db, { ...scope, workspaceIds: [workspaceId] }),
        period: windowOf("day", dayOf(at), dayOf(at + days)),
        stamp: await drawStamp(store.db),
        ...{ state, code: "server_error", message: "test" },
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

const LOADED = {
  ...{ do: "load" as const, meter: "traces" as const },
  ...{ at: 0, used: [60, 70, 80], settleAfterMs: 0 },
};
const SEED = seed();

test(`stored charges are those that usage, prices and closes say, after each step of any history [seed ${SEED}]`, async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  // Something to change from the first step on.
  for (const workspaceId of WORKSPACES) {
    const window = windowOf("day", dayOf(0), dayOf(DAYS));
    const rows = [22, 30, 31, 33].map((at) => [dayOf(at), workspaceId, 40] as const);
    await loadRows(bench.store, { ...bench, workspaceId, groupBy: "workspace", window, rows });
  }
  await enterPrices(bench.store, [{ unitPrice: "1" }, { unitPrice: "2", fromQuantity: 100 }, ...measured]);
  let seen = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 20 }), async (steps) => {
      for (const one of steps) {
        await take(bench, client, one);
        expect(await checkCharges(bench.store.db, bench.sourceId), JSON.stringify(one)).toEqual({
          wrong: 0,
          first: undefined,
        });
        const { rows } = await client.query("SELECT count(*) AS n FROM usage.charge");
        seen += Number(rows[0].n);
      }
    }),
    {
      ...{ seed: SEED, numRuns: times(6), endOnFailure: true },
      // Whatever is loaded of a workspace that is asked about no more makes its days expected: then others' tiers are not certain.
      examples: [
        [
          [
            { do: "sql", sql: CLEARED },
            { do: "sql", sql: ONE_CONFIGURED },
            { ...LOADED, workspaceId: WORKSPACE, groupBy: "workspace" },
            { ...LOADED, workspaceId: OTHER, groupBy: "user" },
            { do: "sql", sql: ONE_CONFIGURED },
          ],
        ],
      ],
    },
  );
  expect(seen).toBeGreaterThan(100);
}, 300_000);
