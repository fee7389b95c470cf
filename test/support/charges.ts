import type { GroupBy } from "../../src/core/domain/usage/record.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { importPrices } from "../../src/features/costs/import-prices.ts";
import type { PricedMeasure } from "../../src/features/costs/price.ts";
import { ALL_DUE } from "./by-hand.ts";
import { loadRows, windowOf } from "./store.ts";

const DAY_MS = 86_400_000;
const FIRST_DAY = Date.parse("2026-03-01");
export const DAYS = 61;

export function dayOf(at: number): string {
  return new Date(FIRST_DAY + at * DAY_MS).toISOString().slice(0, 10);
}

export interface GivenPrice {
  readonly sku?: string;
  readonly unitPrice: string;
  readonly currency?: string;
  readonly from?: string;
  readonly to?: string;
  readonly source?: string;
  readonly workspace?: string;
  readonly fromQuantity?: number;
  readonly countedOver?: "source" | "workspace";
  readonly measure?: PricedMeasure;
}

function linesOf(given: readonly GivenPrice[]) {
  return given.map((one, at) => ({
    where: `line ${at}`,
    price: {
      sku: one.sku ?? "traces",
      unitPrice: one.unitPrice,
      currency: one.currency ?? "USD",
      validFrom: one.from ?? "2026-01-01",
      validTo: one.to ?? null,
      source: one.source ?? null,
      workspace: one.workspace ?? null,
      fromQuantity: one.fromQuantity ?? 0,
      countedOver: one.countedOver ?? null,
      ...(one.measure === undefined ? {} : { measure: one.measure }),
    },
  }));
}

export async function createPrices(store: Store, given: readonly GivenPrice[]) {
  return importPrices(store, { file: "prices", lines: linesOf(given), replace: true, estimate: true });
}

export const CLOSE_MARCH = `
  WITH m AS (
    INSERT INTO usage.close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements, costs_closed_at)
    SELECT source_id, '2026-03-01', '2026-04-01', 1, 0, now() FROM usage.source RETURNING close_id
  ), w AS (
    INSERT INTO usage.closed_workspace SELECT close_id, entity_id, false FROM m, usage.workspace RETURNING close_id, workspace_id
  )
  INSERT INTO usage.closed_charge
  SELECT close_id, usage_date, workspace_id, sku, measure, price_id, tier, from_quantity, unit_price, currency, quantity, cost
  FROM usage.charge JOIN w USING (workspace_id) WHERE month_start = '2026-03-01';
  ${ALL_DUE}`;

export type Usage = Readonly<Record<string, Readonly<Record<number, number>>>>;

export type IdUsage = readonly (readonly [workspace: string, at: number, id: string, traces: number])[];

/** Loads March and April of each workspace by the dimension workspace, but for the days that are left out. */
export async function createMonths(
  bench: { store: Store; sourceId: number },
  usage: Usage,
  leftOut: Readonly<Record<string, readonly number[]>> = {},
): Promise<void> {
  const records = Object.entries(usage).flatMap(([workspace, days]) =>
    Object.entries(days).map(([at, traces]) => [workspace, Number(at), workspace, traces] as const),
  );
  await createDimension(bench, "workspace", { workspaces: Object.keys(usage), records, leftOut });
}

export async function createDimension(
  { store, sourceId }: { store: Store; sourceId: number },
  groupBy: GroupBy,
  given: {
    workspaces: readonly string[];
    records: IdUsage;
    leftOut?: Readonly<Record<string, readonly number[]>>;
  },
): Promise<void> {
  const { workspaces, records, leftOut = {} } = given;
  for (const workspaceId of workspaces) {
    const ends = [...(leftOut[workspaceId] ?? []).flatMap((at) => [at, at + 1]), 31, DAYS].sort(
      (a, b) => a - b,
    );
    let start = 0;
    for (const end of ends) {
      const rows = records
        .filter(([of, at, , traces]) => of === workspaceId && at >= start && at < end && traces > 0)
        .map(([, at, id, traces]) => [dayOf(at), id, traces] as const);
      if (start < end && !leftOut[workspaceId]?.includes(start)) {
        const window = windowOf("day", dayOf(start), dayOf(end));
        await loadRows(store, { sourceId, workspaceId, groupBy, window, rows });
      }
      start = end;
    }
  }
}

const SCALE = 10;

export function unscaled(price: string): bigint {
  const [whole = "", fraction = ""] = price.split(".");
  return BigInt(whole + fraction.padEnd(SCALE, "0"));
}

export function decimal(unscaledCost: bigint): string {
  const digits = unscaledCost.toString().padStart(SCALE + 1, "0");
  return `${digits.slice(0, -SCALE)}.${digits.slice(-SCALE)}`;
}

interface Counter {
  whole: bigint;
  readonly one: Map<string, bigint>;
}

export function expectedCharges(usage: Usage, prices: readonly GivenPrice[], source = "default"): string[] {
  const lines: string[] = [];
  const skus = [...new Set(prices.map((one) => one.sku ?? "traces"))].sort();
  const counters = new Map<string, Counter>();
  for (let at = 0; at < DAYS; at++) {
    const day = dayOf(at);
    for (const workspace of Object.keys(usage).sort()) {
      const traces = BigInt(usage[workspace]?.[at] ?? 0);
      for (const sku of traces === 0n ? [] : skus) {
        const valid = prices.filter(
          (one) =>
            (one.sku ?? "traces") === sku &&
            (one.from ?? "2026-01-01") <= day &&
            (one.to === undefined || day < one.to) &&
            (one.source === undefined || one.source === source) &&
            (one.workspace === undefined || one.workspace === workspace),
        );
        const rank = (one: GivenPrice) =>
          one.workspace === undefined ? (one.source === undefined ? 0 : 1) : 2;
        const best = Math.max(...valid.map(rank));
        const steps = valid
          .filter((one) => rank(one) === best)
          .sort((a, b) => (a.fromQuantity ?? 0) - (b.fromQuantity ?? 0));
        if (steps.length === 0) continue;
        const scope = `${day.slice(0, 7)} ${sku} ${steps[0]?.source} ${steps[0]?.workspace}`;
        const counter = counters.get(scope) ?? { whole: 0n, one: new Map() };
        counters.set(scope, counter);
        const isOne = steps.some((one) => one.countedOver === "workspace");
        let place = isOne ? (counter.one.get(workspace) ?? 0n) : counter.whole;
        let left = traces;
        steps.forEach((step, index) => {
          const end = steps[index + 1]?.fromQuantity;
          const room = end === undefined ? left : BigInt(end) - place;
          const here = room < 0n ? 0n : room < left ? room : left;
          if (here === 0n) return;
          const cost = decimal(unscaled(step.unitPrice) * here);
          const tier = steps.length === 1 ? 0 : index + 1;
          lines.push(`${day} ${workspace} ${sku} ${tier} ${here} ${cost} ${step.currency ?? "USD"}`);
          place += here;
          left -= here;
        });
        counter.whole += traces;
        counter.one.set(workspace, (counter.one.get(workspace) ?? 0n) + traces);
      }
    }
  }
  return lines;
}
