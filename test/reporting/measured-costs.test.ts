import fc from "fast-check";
import type pg from "pg";
import { beforeEach, expect, test } from "vitest";
import type { PricedMeasure } from "../../src/domain/bill/price.ts";
import type { Store } from "../../src/store/db/database.ts";
import { closeMonth } from "../../src/store/months/month-close.ts";
import { clearUsage } from "../support/any-charges.ts";
import {
  CLOSE_MARCH,
  DAYS,
  dayOf,
  decimal,
  enterPrices,
  expectedCharges,
  type GivenPrice,
  type Usage,
  unscaled,
} from "../support/charges.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../support/store.ts";
import { inSchema } from "../support/views.ts";

const [WORKSPACE] = WORKSPACES;
const MEASURES = ["nodes_executed", "agent_runs", "agent_uptime_seconds"] as const;

let store: Store;
let sourceId: number;
let client: pg.Client;

beforeEach(async () => {
  const bench = await setupSource();
  ({ store, sourceId } = bench);
  client = await connectPlain(bench.url);
});

/** Of one day and workspace. */
interface Used {
  readonly traces: number;
  readonly longlived: number;
  readonly measures: readonly [number, number, number];
}
type Months = Readonly<Record<string, Readonly<Record<number, Used>>>>;

/** March and April of each workspace, in every meter. */
async function enter(months: Months): Promise<void> {
  for (const workspaceId of WORKSPACES) {
    const days = Object.entries(months[workspaceId] ?? {}).map(([at, used]) => ({
      day: dayOf(Number(at)),
      used,
    }));
    const window = windowOf("day", dayOf(0), dayOf(DAYS));
    const answer = { sourceId, groupBy: "workspace" as const, workspaceId, window };
    const rows = (of: (used: Used) => number) =>
      days.map(({ day, used }) => [day, workspaceId, of(used)] as const).filter(([, , count]) => count > 0);
    await loadRows(store, { ...answer, rows: rows((used) => used.traces) });
    await loadRows(store, { ...answer, meter: "longlived", rows: rows((used) => used.longlived) });
    await loadDeploymentRows(store, {
      ...answer,
      rows: days.map(({ day, used }) => [day, workspaceId, used.measures]),
    });
  }
}

const [A, B] = ["0a", "0b"].map((last) => `00000000-0000-4000-8000-0000000000${last}`) as [string, string];
/** Per cent of traces and deployment usage, and of long-lived traces, that an id has. */
type Shares = Readonly<Record<string, { readonly all: number; readonly longlived: number }>>;

const part = (count: number, percent: number) => Math.floor((count / 100) * percent);

/** The same by another dimension, in every meter. The rest has no id. Days that are left out are not loaded. */
async function enterIds(
  months: Months,
  groupBy: "project" | "user",
  shares: Shares,
  leftOut: readonly number[] = [],
) {
  for (const workspaceId of WORKSPACES) {
    const days = Object.entries(months[workspaceId] ?? {}).map(([at, used]) => ({ at: Number(at), used }));
    let start = 0;
    for (const end of [...leftOut, DAYS]) {
      const window = windowOf("day", dayOf(start), dayOf(end));
      const answer = { sourceId, groupBy, workspaceId, window };
      const within = days.filter(({ at }) => at >= start && at < end);
      const ids = [...Object.entries(shares), ["", { all: 1, longlived: 1 }] as const];
      const rows = (of: (used: Used, share: { all: number; longlived: number }) => number) =>
        within.flatMap(({ at, used }) =>
          ids
            .map(([id, share]) => [dayOf(at), id, of(used, share)] as const)
            .filter(([, , count]) => count > 0),
        );
      if (start < end) {
        await loadRows(store, { ...answer, rows: rows((used, { all }) => part(used.traces, all)) });
        const longlived = rows((used, share) => part(used.longlived, share.longlived));
        await loadRows(store, { ...answer, meter: "longlived", rows: longlived });
        await loadDeploymentRows(store, {
          ...answer,
          rows: within.flatMap(({ at, used: { measures } }) =>
            ids.map(
              ([id, { all }]) =>
                [
                  dayOf(at),
                  id,
                  measures.map((one) => part(one, all)) as unknown as Used["measures"],
                ] as const,
            ),
          ),
        });
      }
      start = end + 1;
    }
  }
}

/** What was used of one measure. */
function usedOf(months: Months, measure: PricedMeasure): Usage {
  const count = ({ traces, longlived, measures }: Used): number => {
    if (measure === "traces") return traces;
    if (measure === "longlived") return longlived;
    if (measure === "shortlived") return traces - longlived;
    return measures[(MEASURES as readonly string[]).indexOf(measure)] ?? 0;
  };
  return Object.fromEntries(
    WORKSPACES.map((workspace) => [
      workspace,
      Object.fromEntries(Object.entries(months[workspace] ?? {}).map(([at, used]) => [at, count(used)])),
    ]),
  );
}

function expectedCosts(months: Months, prices: readonly GivenPrice[]): string[] {
  const measures = new Set(prices.map(({ measure = "traces" }) => measure));
  return [...measures]
    .flatMap((measure) =>
      expectedCharges(
        usedOf(months, measure),
        prices.filter((price) => (price.measure ?? "traces") === measure),
      ),
    )
    .sort();
}

async function lines(text: string): Promise<string[]> {
  const { rows } = await client.query<string[]>({ text, rowMode: "array" });
  return rows.map((row) => row.map((cell) => cell ?? "-").join(" "));
}

const costs = async () =>
  (
    await lines(`SELECT usage_date, workspace_id, sku, volume_tier, trim_scale(quantity), estimated_cost, currency
                 FROM reporting.fct_cost_workspace_daily`)
  ).sort();

const count = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2000 }), fc.constant(10 ** 11));
const used = fc
  .record({ shortlived: count, longlived: count, measures: fc.tuple(count, count, count) })
  .map(
    ({ shortlived, longlived, measures }): Used => ({ traces: shortlived + longlived, longlived, measures }),
  );
const months = fc
  .tuple(
    ...WORKSPACES.map(() =>
      fc.dictionary(fc.integer({ min: 0, max: DAYS - 1 }).map(String), used, { maxKeys: 8 }),
    ),
  )
  .map((each): Months => Object.fromEntries(WORKSPACES.map((workspace, at) => [workspace, each[at] ?? {}])));

/** A price for a measure, in one step or two. */
const priceOf = (measure: PricedMeasure, sku: string, currency: string) =>
  fc
    .record({
      prices: fc.tuple(...[1, 2].map(() => fc.bigInt(0n, 10n ** 18n - 1n).map(decimal))),
      from: fc.option(fc.integer({ min: 1, max: 3000 }), { nil: undefined }),
      countedOver: fc.constantFrom("source" as const, "workspace" as const),
    })
    .map(({ prices: [first = "0", second = "0"], from, countedOver }): GivenPrice[] => {
      const fixed = { measure, sku, currency, countedOver };
      const base = { ...fixed, unitPrice: first, fromQuantity: 0 };
      return from === undefined ? [base] : [base, { ...fixed, unitPrice: second, fromQuantity: from }];
    });
/** All traces with long-lived ones on top, or each tier by itself; and deployments beside them. */
const prices = fc
  .tuple(
    fc.oneof(priceOf("traces", "base", "USD"), priceOf("shortlived", "short", "USD")),
    priceOf("longlived", "extended", "USD"),
    priceOf("nodes_executed", "nodes", "EUR"),
    priceOf("agent_uptime_seconds", "uptime", "USD"),
  )
  .map((each) => each.flat());

const percent = fc.integer({ min: 0, max: 70 });
/** Together they may have more than their workspace, and an id more long-lived traces than traces. */
const shares = fc
  .tuple(percent, percent, percent, percent)
  .map(
    ([a, b, c, d]): Shares => ({ [A]: { all: a, longlived: Math.min(a, c) }, [B]: { all: b, longlived: d } }),
  );

/** Half away from zero, as Postgres rounds. */
function rounded(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}

const sumOf = (all: readonly string[]) => decimal(all.reduce((sum, cost) => sum + unscaled(cost), 0n));

test("each SKU charges what it counts: costs equal an independent recomputation to the last digit", async () => {
  const seed = Date.now() % 2 ** 31;
  await fc.assert(
    fc.asyncProperty(months, prices, prices, shares, async (given, priced, later, shares) => {
      await client.query(
        "DELETE FROM usage.closed_charge; DELETE FROM usage.closed_workspace; DELETE FROM usage.month_close",
      );
      await clearUsage(client);
      await enter(given);
      await enterPrices(store, priced);
      const expected = expectedCosts(given, priced);
      expect(await costs()).toEqual(expected);
      const totals = new Map<string, string>();
      for (const currency of ["EUR", "USD"]) {
        const each = expected.map((line) => line.split(" ")).filter((cells) => cells[6] === currency);
        totals.set(currency, sumOf(each.map((cells) => cells[5] ?? "0")));
      }
      const sums = async (text: string) =>
        await lines(`SELECT c, coalesce(sum(cost), 0)::numeric(38, 10)
                      FROM unnest('{EUR,USD}'::text[]) c LEFT JOIN (${text}) t ON t.currency = c GROUP BY 1 ORDER BY 1`);
      const whole = [...totals].map(([currency, sum]) => `${currency} ${sum}`);
      const focus = (view: string) =>
        `SELECT "BillingCurrency" AS currency, "BilledCost" AS cost FROM ${inSchema(view)}`;
      for (const dimension of ["workspace"]) {
        const view = `SELECT currency, estimated_cost AS cost FROM ${inSchema(`fct_cost_${dimension}_daily`)}`;
        expect(await sums(view), dimension).toEqual(whole);
      }
      expect(await sums(focus("focus_1_4_cost_and_usage"))).toEqual(whole);

      await enterIds(given, "user", shares, [0, 5, 31, 60]);
      await enterIds(given, "project", shares);
      const divided = async (about: string) => {
        const bySku = (dimension: string) =>
          lines(`SELECT usage_date, workspace_id, sku, currency, measure, trim_scale(sum(quantity)), sum(estimated_cost)
                 FROM ${inSchema(`fct_cost_${dimension}_daily`)} GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3`);
        const ofWorkspaces = await bySku("workspace");
        expect(await bySku("user"), `by user${about}`).toEqual(ofWorkspaces);
        expect(await bySku("project"), `by project${about}`).toEqual(ofWorkspaces);
        const ofDeployments = ofWorkspaces.filter((line) => /nodes_executed|agent/.test(line));
        expect(await bySku("deployment"), `by deployment${about}`).toEqual(ofDeployments);
      };
      await divided("");
      // Each id has the average price of its workspace, day and SKU, of what it used of the SKU's measure.
      const averages = Map.groupBy(
        expected.map((line) => line.split(" ")),
        ([day, workspace, sku]) => `${day} ${workspace} ${sku}`,
      );
      const ofIds = (days: readonly number[], isShown: (measure: PricedMeasure) => boolean) =>
        [...averages]
          .flatMap(([key, of]) => {
            const [day = "", workspace = "", sku] = key.split(" ");
            const measure = priced.find((one) => one.sku === sku)?.measure ?? "traces";
            const at = Object.keys(given[workspace] ?? {}).find(
              (one) => dayOf(Number(one)) === day,
            ) as string;
            const used = given[workspace]?.[Number(at)] as Used;
            if (days.includes(Number(at)) || !isShown(measure)) return [];
            const [cost, quantity] = [
              sumOf(of.map((cells) => cells[5] ?? "0")),
              of.reduce((all, cells) => all + BigInt(cells[4] ?? "0"), 0n),
            ];
            // One id after the other takes its part, so that rounding leaves nothing.
            let counted = 0n;
            const costOf = (upTo: bigint) => rounded(unscaled(cost) * upTo, quantity);
            return Object.entries(shares)
              .sort()
              .flatMap(([id, { all, longlived }]) => {
                const own: Used = {
                  traces: part(used.traces, all),
                  longlived: part(used.longlived, longlived),
                  measures: used.measures.map((one) => part(one, all)) as unknown as Used["measures"],
                };
                const count = BigInt(usedOf({ [WORKSPACE]: { 0: own } }, measure)[WORKSPACE]?.[0] ?? 0);
                // More long-lived traces than traces: how many are short-lived is not known.
                if (count <= 0n) return [];
                counted += count;
                return [`${key} ${id} ${count} ${decimal(costOf(counted) - costOf(counted - count))}`];
              });
          })
          .sort();
      const idsOf = (dimension: string, id: string) =>
        lines(`SELECT usage_date, workspace_id, sku, ${id} AS id, trim_scale(quantity), estimated_cost FROM ${inSchema(`fct_cost_${dimension}_daily`)}
               WHERE ${id} <> '(none)' ORDER BY concat_ws(' ', usage_date, workspace_id, sku, ${id}) COLLATE "C"`);
      const isDeployed = (measure: PricedMeasure) => (MEASURES as readonly string[]).includes(measure);
      expect(await idsOf("user", "user_id")).toEqual(ofIds([0, 5, 31, 60], () => true));
      expect(await idsOf("project", "project_id")).toEqual(ofIds([], (measure) => !isDeployed(measure)));
      expect(await idsOf("deployment", "deployment_id")).toEqual(ofIds([], isDeployed));

      // Closed with these prices; then others are imported.
      await client.query(CLOSE_MARCH);
      const isShort = (all: readonly GivenPrice[]) => all.some(({ measure }) => measure === "shortlived");
      if (isShort(priced) !== isShort(later)) return;
      await enterPrices(store, later);
      const march = (all: readonly string[]) => all.filter((line) => line < "2026-04");
      const april = expectedCosts(given, later).filter((line) => line >= "2026-04");
      expect(await costs()).toEqual([...march(expected), ...april]);
      await divided(", closed");
      // Charges of closed months and what changed since come to the estimate of now.
      const now = expectedCosts(given, later).map((line) => line.split(" "));
      const nowOf = (currency: string) =>
        sumOf(now.filter((cells) => cells[6] === currency).map((cells) => cells[5] ?? "0"));
      expect(await sums(focus("focus_1_4_cost_and_usage"))).toEqual(
        ["EUR", "USD"].map((one) => `${one} ${nowOf(one)}`),
      );
    }),
    { seed, numRuns: 2 },
  );
});

test("FOCUS has a SKU, a meter and a unit for each measure, and base traces are priced once", async () => {
  await enter({ [WORKSPACE]: { 2: { traces: 100, longlived: 30, measures: [7, 2, 3600] } } });
  await enterPrices(store, [
    { sku: "base", unitPrice: "0.5" },
    { sku: "extended", unitPrice: "4", measure: "longlived" },
    { sku: "runs", unitPrice: "0.01", measure: "agent_runs" },
    { sku: "uptime", unitPrice: "0.001", measure: "agent_uptime_seconds" },
  ]);
  expect(
    await lines(`SELECT "SkuId", "SkuMeter", trim_scale("ConsumedQuantity"), "ConsumedUnit", "PricingUnit", "BilledCost", "ServiceName"
                 FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY 1`),
  ).toEqual([
    "base Traces 100 Traces Traces 50.0000000000 Agent platform traces",
    "extended Long-lived Traces 30 Traces Traces 120.0000000000 Agent platform traces",
    "runs Agent Runs 2 Runs Runs 0.0200000000 Agent platform deployments",
    "uptime Agent Uptime 3600 Seconds Seconds 3.6000000000 Agent platform deployments",
  ]);
  expect(
    await lines(
      "SELECT sku, measure, traces, trim_scale(quantity) FROM reporting.fct_cost_workspace_daily ORDER BY 1",
    ),
  ).toEqual([
    "base traces 100 100",
    "extended longlived 30 30",
    "runs agent_runs - 2",
    "uptime agent_uptime_seconds - 3600",
  ]);
  // Each tier by itself: no trace is charged twice, and none is unpriced.
  await enterPrices(store, [
    { sku: "short", unitPrice: "0.5", measure: "shortlived" },
    { sku: "extended", unitPrice: "4.5", measure: "longlived" },
  ]);
  expect(
    await lines(
      `SELECT "SkuId", trim_scale("ConsumedQuantity"), "BilledCost" FROM reporting_detail.focus_1_4_cost_and_usage ORDER BY 1`,
    ),
  ).toEqual(["extended 30 135.0000000000", "short 70 35.0000000000"]);
  expect(await lines("SELECT * FROM reporting_detail.usage_unpriced_daily")).toEqual([]);
});

test("costs of tiers and deployments belong to who used them, by user, project and deployment", async () => {
  const months = { [WORKSPACE]: { 2: { traces: 100, longlived: 30, measures: [40, 10, 3600] } } } as const;
  await enter(months);
  await enterIds(months, "user", { [A]: { all: 50, longlived: 60 }, [B]: { all: 25, longlived: 0 } });
  await enterIds(months, "project", { [A]: { all: 50, longlived: 60 } }, [2]);
  await enterPrices(store, [
    { sku: "short", unitPrice: "0.5", measure: "shortlived" },
    { sku: "extended", unitPrice: "4.5", measure: "longlived" },
    { sku: "runs", unitPrice: "0.01", measure: "agent_runs" },
  ]);
  const shown = (dimension: string, id: string) =>
    lines(`SELECT sku, right(${id}, 6), trim_scale(quantity), trim_scale(estimated_cost), is_final, coverage_status
           FROM ${inSchema(`fct_cost_${dimension}_daily`)} ORDER BY 1, 2`);
  expect(await shown("user", "user_id")).toEqual([
    "extended (none) 12 54 t ok",
    "extended 00000a 18 81 t ok",
    "runs (none) 3 0.03 t ok",
    "runs 00000a 5 0.05 t ok",
    "runs 00000b 2 0.02 t ok",
    "short (none) 13 6.5 t ok",
    "short 00000a 32 16 t ok",
    "short 00000b 25 12.5 t ok",
  ]);
  // A day that is not loaded by project.
  expect(await shown("project", "project_id")).toEqual([
    "extended - 30 135 f missing",
    "runs (none) 10 0.1 t ok",
    "short - 70 35 f missing",
  ]);
  expect(await shown("deployment", "deployment_id")).toEqual(["runs - 10 0.1 f missing"]);
});

test("an import refuses prices that would charge a trace twice, and a SKU that counts two things", async () => {
  const message = (lines: readonly GivenPrice[]) =>
    enterPrices(store, lines).then(
      () => "imported",
      (error: Error) => error.message,
    );
  expect(
    await message([
      { sku: "base", unitPrice: "1" },
      { sku: "short", unitPrice: "1", measure: "shortlived" },
    ]),
  ).toContain("short-lived traces would be charged twice");
  // Not on the same days, and not for the same workspace.
  const short = { sku: "short", unitPrice: "1", measure: "shortlived" } as const;
  expect(
    await message([
      { sku: "base", unitPrice: "1", to: "2026-03-01" },
      { ...short, from: "2026-03-01" },
    ]),
  ).toBe("imported");
  expect(
    await message([
      { sku: "one", unitPrice: "1", to: "2026-03-01" },
      { sku: "one", unitPrice: "1", measure: "agent_runs", from: "2026-03-01" },
    ]),
  ).toContain("SKU one counts traces elsewhere");
});

test("a close keeps the final charges of tiers and deployments; others become changes of the month", async () => {
  const march = windowOf("day", "2026-03-01", "2026-04-01");
  const answer = { sourceId, groupBy: "workspace" as const, workspaceId: WORKSPACE, window: march };
  for (const groupBy of ["workspace", "project", "user", "api_key"] as const) {
    for (const workspaceId of WORKSPACES) {
      const id = groupBy === "workspace" ? workspaceId : "a";
      await loadRows(store, { ...answer, groupBy, workspaceId, rows: [["2026-03-02", id, 10]] });
    }
  }
  await client.query(`INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
    SELECT scope_id, '2026-03-01Z', '2026-04-01Z', 999, now() FROM usage.trace_scope WHERE stride = 'day'`);
  const [NEVER, ALWAYS] = [10 * 365 * 86_400_000, 0];
  await loadRows(store, { ...answer, meter: "longlived", rows: [["2026-03-02", WORKSPACE as string, 4]] });
  const deployments = [["2026-03-02", WORKSPACE as string, [5, 1, 60]]] as const;
  await loadDeploymentRows(store, { ...answer, rows: deployments, settleAfterMs: NEVER });
  await enterPrices(store, [
    { sku: "base", unitPrice: "1" },
    { sku: "extended", unitPrice: "2", measure: "longlived" },
    { sku: "runs", unitPrice: "3", measure: "agent_runs" },
  ]);
  const closed = await closeMonth(store, {
    ...{ sourceId, monthStart: "2026-03-01", settleAfterMs: 0 },
    by: { name: "ada", role: "operator", via: "command" },
  });
  expect(closed).toMatchObject({ state: "closed" });
  await loadDeploymentRows(store, { ...answer, rows: deployments, settleAfterMs: ALWAYS });
  expect(
    await lines(`SELECT sku, measure, trim_scale(closed_traces), closed_cost, adjustment_cost FROM reporting_detail.fct_month_close_cost
                 WHERE workspace_id = '${WORKSPACE}' ORDER BY 1`),
  ).toEqual([
    "base traces 10 10.0000000000 0.0000000000",
    "extended longlived 4 8.0000000000 0.0000000000",
    "runs agent_runs 0 0.0000000000 3.0000000000",
  ]);
  // An upgrade after the close costs more in the first open month, and no trace is added.
  await loadRows(store, { ...answer, meter: "longlived", rows: [["2026-03-02", WORKSPACE as string, 9]] });
  expect(
    await lines(`SELECT "SkuId", "x_BillingMonth", "ChargeClass", trim_scale("ConsumedQuantity"), "ConsumedUnit", "x_IsFinal"
                 FROM reporting_detail.focus_1_4_cost_and_usage WHERE "SubAccountId" = '${WORKSPACE}' ORDER BY 1, 2`),
  ).toEqual([
    "base 2026-03-01 - 10 Traces t",
    "extended 2026-03-01 - 4 Traces t",
    "extended 2026-04-01 Correction 5 Traces t",
    "runs 2026-04-01 Correction 1 Runs t",
  ]);
});
