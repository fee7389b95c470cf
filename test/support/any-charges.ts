import fc from "fast-check";
import type pg from "pg";
import { DAYS, dayOf, decimal, type GivenPrice } from "./charges.ts";
import { WORKSPACES } from "./reporting.ts";

const [WORKSPACE, OTHER] = WORKSPACES;

/** A load that empties a day would ask for a second one that agrees: so what was loaded goes without one. */
export async function clearUsage(client: pg.Client): Promise<void> {
  await client.query(
    "DELETE FROM usage.dated_record; DELETE FROM usage.coverage; DELETE FROM usage.restatement",
  );
}

const day = (min: number, max: number) => fc.integer({ min, max }).map(dayOf);
const unitPrice = fc
  .oneof(fc.constant(0n), fc.bigInt(1n, 10_000_000n), fc.bigInt(0n, 10n ** 18n - 1n))
  .map(decimal);

function scale(fixed: Partial<GivenPrice>) {
  const from = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 3000 }));
  return fc
    .record({
      prices: fc.array(unitPrice, { minLength: 4, maxLength: 4 }),
      starts: fc.uniqueArray(from, { maxLength: 3 }),
      countedOver: fc.constantFrom("source" as const, "workspace" as const),
    })
    .map(({ prices, starts, countedOver }) =>
      [0, ...starts].map((fromQuantity, at): GivenPrice => {
        return { ...fixed, fromQuantity, countedOver, unitPrice: prices[at] ?? "0" };
      }),
    );
}

export const anyPrices = fc
  .tuple(day(0, DAYS), day(0, 30), day(31, DAYS))
  .chain(([change, from, to]) =>
    fc
      .tuple(
        scale({ to: change }),
        scale({ from: change }),
        fc.option(scale({ source: "default", from, to }), { nil: [] }),
        fc.option(scale({ workspace: WORKSPACE, source: "default", from, to }), { nil: [] }),
        fc.option(scale({ sku: "retention", currency: "EUR", source: "default" }), { nil: [] }),
      )
      .map((scales) => scales.flat()),
  );

const traces = fc.dictionary(
  fc.integer({ min: 0, max: DAYS - 1 }).map(String),
  fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 2000 }), fc.constant(10 ** 12)),
  { maxKeys: 12 },
);
export const anyUsage = fc.record({ [WORKSPACE]: traces, [OTHER]: traces });
