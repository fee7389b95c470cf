import fc from "fast-check";
import type pg from "pg";
import { expect, test } from "vitest";
import { addDays, type Days, monthStart } from "../../src/core/domain/time/days.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { DIMENSIONS } from "../../src/core/store/db/dimensions.ts";
import type { UsageCells } from "../../src/core/store/figures/records.ts";
import { currenciesOf, type ViewLine, viewLines } from "../../src/features/costs/costs.store.ts";
import { anyPrices, anyUsage, clearUsage } from "../support/any-charges.ts";
import {
  CLOSE_MARCH,
  createDimension,
  createMonths,
  createPrices,
  DAYS,
  dayOf,
  decimal,
  type IdUsage,
  unscaled,
} from "../support/charges.ts";
import { seed, times } from "../support/drawn.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { costsBy } from "../support/views.ts";

const [, OTHER] = WORKSPACES;
const TOP = 2;
const range: fc.Arbitrary<Days> = fc
  .oneof(
    fc.tuple(fc.integer({ min: 0, max: DAYS }), fc.integer({ min: 1, max: DAYS })),
    fc.constantFrom([0, 31] as const, [31, 30] as const, [0, 61] as const),
  )
  .map(([at, length]) => ({ from: dayOf(at), to: dayOf(at + length) }));
const EARLIER = [
  { apart: 0, days: 31 },
  { apart: 12, days: 9 },
] as const;
const share = fc.integer({ min: 0, max: 60 }).map((percent) => percent / 100);

test("costs by id and bucket are those of the views to the last digit, with tiers, gaps and a closed month", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  const SEED = seed();
  await fc.assert(
    fc.asyncProperty(
      ...([
        anyUsage,
        anyPrices,
        anyPrices,
        range,
        range,
        fc.tuple(share, share, share),
        fc.boolean(),
      ] as const),
      async (usage, priced, later, one, other, [a, b, c], isClosed) => {
        await client.query(
          "DELETE FROM usage.closed_charge; DELETE FROM usage.closed_workspace; DELETE FROM usage.close",
        );
        await clearUsage(client);
        await createMonths(bench, usage);
        const records: IdUsage = Object.entries(usage).flatMap(([workspace, days]) =>
          Object.entries(days).flatMap(([at, traces]) =>
            [a, b, c].map(
              (part, n) => [workspace, Number(at), `${"abc"[n]}`, Math.floor(traces * part)] as const,
            ),
          ),
        );
        const workspaces = Object.keys(usage);
        const fifths = Array.from({ length: 12 }, (_, at) => at * 5);
        await createDimension(bench, "user", { workspaces, records, leftOut: { [OTHER]: fifths } });
        await createPrices(bench.store, priced);
        if (isClosed) {
          await client.query(CLOSE_MARCH);
          await createPrices(bench.store, later);
        }
        for (const requested of [one, other]) {
          for (const by of ["workspace", "user"] as const) {
            const of: UsageCells = { sourceId: bench.sourceId, source: "default", by, workspaceId: null };
            await compare(bench.store, client, of, requested);
          }
        }
      },
    ),
    { seed: SEED, numRuns: times(2) },
  );
});

async function compare(store: Store, client: pg.Client, of: UsageCells, range: Days): Promise<void> {
  const currencies = await currenciesOf(store.db, of.sourceId);
  for (const currency of currencies) {
    const rowsOf = async ({ from, to }: Days) =>
      (
        await client.query<{ day: string; id: string | null; cost: string; final: string }>(
          `SELECT usage_date::text AS day, ${DIMENSIONS[of.by].id} AS id, sum(estimated_cost) AS cost, bool_and(is_final)::text AS final
           FROM ${costsBy(of.by)} WHERE usage_date >= $1::date AND usage_date < $2::date AND currency = $3
           GROUP BY 1, 2`,
          [from, to, currency],
        )
      ).rows;
    const linesOf = async (wanted: Parameters<typeof viewLines>[2]) =>
      (await viewLines(store.db, of, wanted)).map(({ amount, amountBefore, ...line }) => {
        return { ...line, cost: amount, costBefore: amountBefore };
      });
    const rows = await rowsOf(range);
    for (const [per, { apart, days }, find] of [
      ["day", EARLIER[0], undefined],
      ["month", EARLIER[1], undefined],
      ["day", EARLIER[1], "b"],
    ] as const) {
      const end = addDays(range.from, -apart);
      const before = { from: addDays(end, -days), to: end };
      const what = JSON.stringify({ by: of.by, ...range, per, currency, before, find });
      const requested = { ...range, per, currency, before, top: TOP, masked: false, find };
      const lines = await linesOf({ ...requested, sort: "amount" });
      const early = await rowsOf(before);
      const whole = lines.filter(({ bucket }) => bucket === null);
      const expected = [...Map.groupBy(rows, ({ id }) => id)].map(([id, of]) => ({ id, cost: sum(of) }));
      const costOf = (id: string | null) => expected.find((one) => one.id === id)?.cost ?? 0n;
      const isId = (id: string | null) => id !== null && id !== "(none)" && id !== "(adjustment)";
      const isFound = (id: string | null) => (id ?? "").toLowerCase().includes(find ?? "");
      const ranked = expected
        .filter(({ id }) => isId(id) && isFound(id))
        .sort((a, b) =>
          a.cost === b.cost ? ((a.id ?? "") < (b.id ?? "") ? -1 : 1) : a.cost < b.cost ? 1 : -1,
        );
      expect(
        whole.filter(({ kind }) => kind === "id").map(({ id, cost }) => ({ id, cost: unscaledOf(cost) })),
        what,
      ).toEqual(ranked.slice(0, TOP));
      const kindSum = (kind: ViewLine["kind"]) => sum(whole.filter((line) => line.kind === kind));
      expect(decimal(kindSum("rest")), what).toBe(
        decimal(sum(rows.filter(({ id }) => isId(id) && !ranked.slice(0, TOP).some((one) => one.id === id)))),
      );
      expect(kindSum("none"), what).toBe(costOf("(none)"));
      expect(kindSum("unloaded"), what).toBe(costOf(null));
      expect(kindSum("adjustment"), what).toBe(costOf("(adjustment)"));
      expect(sum(whole), what).toBe(sum(rows));
      const bucketOf = (day: string) => (per === "month" ? monthStart(day) : day);
      for (const { id, kind, costBefore } of whole) {
        if (kind !== "id") continue;
        expect(unscaledOf(costBefore), what).toBe(sum(early.filter((row) => row.id === id)));
      }
      expect(sum(whole.map(({ costBefore }) => ({ cost: costBefore }))), what).toBe(sum(early));
      const byBucket = (all: readonly { bucket: string; cost: string }[]) =>
        [...Map.groupBy(all, ({ bucket }) => bucket)].map(([bucket, of]) => `${bucket} ${sum(of)}`).sort();
      expect(
        byBucket(
          lines.flatMap(({ kind, bucket, cost }) =>
            bucket === null || kind === "before" ? [] : [{ bucket, cost }],
          ),
        ),
        what,
      ).toEqual(byBucket(rows.map(({ day, cost }) => ({ bucket: bucketOf(day), cost }))));
      expect(
        byBucket(
          lines.flatMap(({ kind, bucket, cost }) =>
            kind === "before" ? [{ bucket: bucket ?? "", cost }] : [],
          ),
        ),
        what,
      ).toEqual(byBucket(early.map(({ day, cost }) => ({ bucket: bucketOf(day), cost }))));
      const grown = await linesOf({ ...requested, sort: "growth" });
      const growth = grown.flatMap(({ kind, bucket, cost, costBefore }) =>
        kind === "id" && bucket === null ? [unscaledOf(cost) - unscaledOf(costBefore)] : [],
      );
      expect(growth, what).toEqual(growth.toSorted((x, y) => (x < y ? 1 : -1)));
      expect(sum(grown.filter(({ bucket }) => bucket === null)), what).toBe(sum(rows));
    }
  }
}

function unscaledOf(cost: string): bigint {
  return cost.startsWith("-") ? -unscaled(cost.slice(1)) : unscaled(cost);
}

function sum(lines: readonly { cost: string }[]): bigint {
  return lines.reduce((all, { cost }) => all + unscaledOf(cost), 0n);
}
