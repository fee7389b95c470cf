import fc from "fast-check";
import { expect, test } from "vitest";
import { clearUsage } from "../support/any-charges.ts";
import { DAYS, dayOf, decimal, enterPrices, unscaled } from "../support/charges.ts";
import { seed, times } from "../support/drawn.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, windowOf } from "../support/store.ts";

/** Units with six digits after the point, at prices with four, and with volume tiers that begin within a day. */

const SANDBOXES = ["0a", "0b", "0c"].map((last) => `00000000-0000-4000-8000-0000000000${last}`);
/** Millionths of a unit. */
const amount = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3_000_000 }), fc.constant(10 ** 12 + 1));
const use = fc.record({
  workspace: fc.constantFrom(...WORKSPACES),
  at: fc.integer({ min: 0, max: DAYS - 1 }),
  sandbox: fc.constantFrom(...SANDBOXES),
  lcu: amount,
  lsu: amount,
});
type Use = { workspace: string; at: number; sandbox: string; lcu: number; lsu: number };
const uses = fc.uniqueArray(use, {
  selector: ({ workspace, at, sandbox }) => `${workspace} ${at} ${sandbox}`,
  maxLength: 12,
});
/** In ten-thousandths; from so many whole units on another one applies. */
const price = fc.record({
  first: fc.integer({ min: 0, max: 99_999 }),
  second: fc.integer({ min: 0, max: 99_999 }),
  from: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
});
type Price = { first: number; second: number; from?: number | undefined };

/** Ten-billionths: what so many millionths of a month cost, the first ones first. */
function costUpTo(millionths: bigint, { first, second, from }: Price): bigint {
  const edge = from === undefined ? millionths : BigInt(from) * 1_000_000n;
  const cheap = millionths < edge ? millionths : edge;
  return cheap * BigInt(first) + (millionths - cheap) * BigInt(second);
}

/** `month workspace sku cost`, each workspace's tiers by itself. */
function expected(given: readonly Use[], prices: Readonly<Record<"lcu" | "lsu", Price>>): string[] {
  const sums = new Map<string, bigint>();
  for (const { workspace, at, ...units } of given) {
    for (const measure of ["lcu", "lsu"] as const) {
      const key = `${dayOf(at).slice(0, 7)} ${workspace} ${measure}`;
      sums.set(key, (sums.get(key) ?? 0n) + BigInt(units[measure]));
    }
  }
  return [...sums]
    .filter(([, sum]) => sum > 0n)
    .map(([key, sum]) => `${key} ${decimal(costUpTo(sum, prices[key.endsWith("lcu") ? "lcu" : "lsu"]))}`)
    .sort();
}

const SEED = seed();

test(`units cost what an independent recomputation says, to the last digit, in every view that has them (seed ${SEED})`, async () => {
  const { store, sourceId, url } = await setupSource();
  const client = await connectPlain(url);
  const lines = async (text: string) =>
    (await client.query<{ line: string }>(text)).rows.map(({ line }) => line).sort();
  const monthly = (view: string, of: { day: string; sku: string; cost: string; workspace: string }) =>
    lines(`SELECT concat_ws(' ', to_char(${of.day}, 'YYYY-MM'), ${of.workspace}, ${of.sku}, sum(${of.cost})::numeric(38, 10)) AS line
           FROM ${view} GROUP BY to_char(${of.day}, 'YYYY-MM'), ${of.workspace}, ${of.sku}`);
  const own = { day: "usage_date", workspace: "workspace_id", sku: "sku", cost: "estimated_cost" };
  await fc.assert(
    fc.asyncProperty(uses, fc.record({ lcu: price, lsu: price }), async (given, prices) => {
      await clearUsage(client);
      for (const workspaceId of WORKSPACES) {
        const of = given.filter(({ workspace }) => workspace === workspaceId);
        const answer = {
          meter: "sandboxes",
          sourceId,
          workspaceId,
          window: windowOf("day", dayOf(0), dayOf(DAYS)),
        } as const;
        const days = Map.groupBy(of, ({ at }) => at);
        await loadDeploymentRows(store, {
          ...{ ...answer, groupBy: "workspace" as const },
          rows: [...days].map(
            ([at, all]) =>
              [
                dayOf(at),
                workspaceId,
                [all.reduce((sum, one) => sum + one.lcu, 0), all.reduce((sum, one) => sum + one.lsu, 0), 0],
              ] as const,
          ),
        });
        await loadDeploymentRows(store, {
          ...{ ...answer, groupBy: "project" as const },
          rows: of.map(({ at, sandbox, lcu, lsu }) => [dayOf(at), sandbox, [lcu, lsu, 0]] as const),
        });
      }
      await enterPrices(
        store,
        (["lcu", "lsu"] as const).flatMap((measure) => {
          const { first, second, from } = prices[measure];
          const fixed = { measure, sku: measure, currency: "USD", countedOver: "workspace" as const };
          const base = { ...fixed, unitPrice: String(first / 10_000), fromQuantity: 0 };
          const above = { ...fixed, unitPrice: String(second / 10_000), fromQuantity: from ?? 0 };
          return from === undefined ? [base] : [base, above];
        }),
      );
      const costs = expected(given, prices);
      expect(await monthly("reporting.fct_cost_workspace_daily", own), "by workspace").toEqual(costs);
      expect(await monthly("reporting_detail.fct_cost_sandbox_daily", own), "by sandbox").toEqual(costs);
      expect(await monthly("reporting_detail.fct_cost_project_daily", own), "by project").toEqual(costs);
      const focus = {
        day: '"x_UsageDate"',
        workspace: '"SubAccountId"',
        sku: '"SkuId"',
        cost: '"BilledCost"',
      };
      expect(await monthly("reporting_detail.focus_1_4_cost_and_usage", focus), "FOCUS").toEqual(costs);
      const bill = await lines(
        "SELECT coalesce(sum(estimated_cost), 0)::numeric(38, 10)::text AS line FROM reporting.usage_bill_monthly WHERE service = 'sandboxes'",
      );
      const whole = costs.reduce((sum, line) => sum + unscaled(line.split(" ")[3] ?? "0"), 0n);
      expect(bill).toEqual([decimal(whole)]);
    }),
    { seed: SEED, numRuns: times(6), endOnFailure: true },
  );
});
