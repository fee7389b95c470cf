import fc from "fast-check";
import type pg from "pg";
import { expect, test } from "vitest";
import type { GroupBy } from "../../src/core/domain/usage/record.ts";
import { anyPrices, anyUsage, clearUsage } from "../support/any-charges.ts";
import {
  CLOSE_MARCH,
  createDimension,
  createMonths,
  createPrices,
  decimal,
  expectedCharges,
  type IdUsage,
  type Usage,
  unscaled,
} from "../support/charges.ts";
import { seed } from "../support/drawn.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { costsBy } from "../support/views.ts";

const [, OTHER] = WORKSPACES;
const [A, B] = ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"];

const COSTS = (dimension: GroupBy) => `SELECT usage_date AS day, workspace_id AS workspace, sku, currency,
  sum(traces) AS traces, sum(estimated_cost) AS cost
  FROM ${costsBy(dimension)} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`;

type Row = Record<string, string | null>;

async function rowsOf(client: pg.Client, query: string): Promise<Row[]> {
  return (await client.query<Row>(query)).rows;
}

test("the costs of each dimension, with the unattributed row, are those by workspace to the last digit, also in a closed month", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  const share = fc.integer({ min: 0, max: 100 }).map((percent) => percent / 100);
  await fc.assert(
    fc.asyncProperty(
      anyUsage,
      anyUsage,
      anyPrices,
      anyPrices,
      share,
      share,
      async (given, since, priced, later, a, b) => {
        await client.query(
          "DELETE FROM usage.closed_charge; DELETE FROM usage.closed_workspace; DELETE FROM usage.close",
        );
        await clearUsage(client);
        await createMonths(bench, given);
        // A and B have their shares, the rest has no id or no record. Together they may exceed what the workspace has.
        const recordsOf = (usage: Usage): IdUsage =>
          Object.entries(usage).flatMap(([workspace, days]) =>
            Object.entries(days).flatMap(([at, traces]) => [
              [workspace, Number(at), A ?? "", Math.floor(traces * a)] as const,
              [workspace, Number(at), B ?? "", Math.floor(traces * b)] as const,
              [workspace, Number(at), "", 1] as const,
            ]),
          );
        const records = recordsOf(given);
        const now: Usage = Object.fromEntries(
          Object.entries(given).map(([workspace, days]) => [
            workspace,
            { ...days, ...new Map(Object.entries(since)).get(workspace) },
          ]),
        );
        const workspaces = Object.keys(given);
        await createDimension(bench, "project", { workspaces, records });
        const fifths = Array.from({ length: 12 }, (_, at) => at * 5);
        await createDimension(bench, "user", { workspaces, records, leftOut: { [OTHER]: fifths } });
        await createPrices(bench.store, priced);

        const whole = await rowsOf(client, COSTS("workspace"));
        const charges = expectedCharges(given, priced).map((line) => line.split(" "));
        expect(sumOf(whole.map((row) => row.cost))).toBe(
          sumOf(charges.map(([, , , , , cost]) => cost ?? "0")),
        );
        for (const dimension of ["project", "user"] as const) {
          expect(await rowsOf(client, COSTS(dimension)), dimension).toEqual(whole);
        }
        expect(
          await rowsOf(
            client,
            "SELECT group_by FROM reporting_detail.fct_cost_by_id_daily WHERE group_by NOT IN ('project', 'user', 'api_key')",
          ),
        ).toEqual([]);
        const attributed = await rowsOf(
          client,
          `SELECT usage_date AS day, workspace_id AS workspace, sku, traces, estimated_cost AS cost
         FROM reporting_detail.fct_cost_by_id_daily WHERE group_by = 'project' AND dimension_id <> '(none)'`,
        );
        for (const row of attributed) {
          const of = charges.filter(
            ([day, workspace, sku]) => day === row.day && workspace === row.workspace && sku === row.sku,
          );
          const cost = of.reduce((sum, [, , , , , one]) => sum + unscaled(one ?? "0"), 0n);
          const traces = of.reduce((sum, [, , , , one]) => sum + BigInt(one ?? "0"), 0n);
          const off = unscaled(row.cost ?? "") - rounded(cost * BigInt(row.traces ?? "0"), traces);
          expect([-1n, 0n, 1n], JSON.stringify(row)).toContain(off);
        }

        await client.query(CLOSE_MARCH);
        await createPrices(bench.store, later);
        await clearUsage(client);
        await createMonths(bench, now);
        await createDimension(bench, "project", { workspaces, records: recordsOf(now) });
        await createDimension(bench, "user", {
          workspaces,
          records: recordsOf(now),
          leftOut: { [OTHER]: fifths },
        });
        const march = (rows: Row[]) => rows.filter((row) => (row.day ?? "") < "2026-04-01");
        const changed = await rowsOf(client, COSTS("workspace"));
        expect(march(changed)).toEqual(march(whole));
        for (const dimension of ["project", "user"] as const) {
          expect(await rowsOf(client, COSTS(dimension)), `${dimension}, closed`).toEqual(changed);
          // What changed since the close is called that, whatever has an id.
          const adjusted = await rowsOf(
            client,
            `SELECT usage_date AS day, workspace_id AS workspace, sku, traces
           FROM ${costsBy(dimension)} WHERE ${dimension}_id = '(adjustment)'`,
          );
          const inOrder = (rows: Row[]) => rows.map((row) => Object.values(row).join(" ")).sort();
          const expected = march(whole).flatMap(({ day, workspace, sku, traces }) => {
            const of =
              now[workspace ?? ""]?.[(Date.parse(day ?? "") - Date.parse("2026-03-01")) / 86_400_000] ?? 0;
            const more = BigInt(traces ?? "0") - BigInt(of);
            return more === 0n
              ? []
              : [{ day: day ?? "", workspace: workspace ?? "", sku: sku ?? "", traces: `${more}` }];
          });
          expect(inOrder(adjusted), dimension).toEqual(inOrder(expected));
        }
      },
    ),
    { seed: seed(), numRuns: 3, endOnFailure: true },
  );
});

function sumOf(costs: readonly (string | null | undefined)[]): string {
  return decimal(costs.reduce((sum, cost) => sum + unscaled(cost ?? "0"), 0n));
}

function rounded(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}
