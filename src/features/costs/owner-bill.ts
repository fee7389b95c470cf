import { counted } from "../../core/base/printable.ts";
import { type CalendarMonth, daysText } from "../../core/domain/months/month.ts";
import { addDays, type Days, dayOf, joined } from "../../core/domain/time/days.ts";
import {
  type Amount,
  amountCut,
  amountText,
  percentOf,
  roundedParts,
  roundShown,
} from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import { DIMENSIONS } from "../../core/store/db/dimensions.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { linesOf, shownDecimal, tableOf, toTheRight } from "../../terminal/output.ts";
import { type Cell, decimalCell, type Table } from "../export/table-file.ts";
import { type DividingDimension, NO_COST_CENTER } from "../owners/owner.ts";
import { appliedOwners, type OwnedState, ownedState } from "../owners/owners.store.ts";
import {
  type Bill,
  type BillLine,
  billTotals,
  costsText,
  describeTotal,
  describeUnloaded,
  isBillFinal,
  isBillProved,
  namesWithoutCost,
  unitOf,
} from "./bill.ts";
import { HEAD, headOf } from "./bill-file.ts";
import { monthBillByOwner, type OwnerBill, type OwnerCost } from "./bill-lines.store.ts";
import { readMonthBill } from "./month-bill.store.ts";

/** Part of an owner's costs, with its amount in whole cents: all parts of a currency add up to their rounded total. */
interface RoundedCost extends OwnerCost {
  readonly rounded: Amount;
}

interface OwnerPart extends Omit<OwnerBill, "costs"> {
  readonly costs: readonly RoundedCost[];
  /** Share of the cost in the first currency, else of the traces. */
  readonly sharePercent: number | null;
}

export interface BillByOwner {
  readonly bill: Bill;
  readonly owners: readonly OwnerPart[];
  readonly currencies: readonly string[];
  /** Null: no owner file is applied. */
  readonly divideBy: DividingDimension | null;
  readonly state: OwnedState;
}

export async function billByOwner(
  db: Database,
  { source, dataStart, month, now }: { source: string; dataStart: string; month: CalendarMonth; now: number },
): Promise<BillByOwner> {
  return inSnapshot(db, async (at) => {
    const bill = await readMonthBill(at, { source, dataStart, month });
    const owners = await monthBillByOwner(at, { source, month, lines: bill.lines });
    const ended = [month.end, dayOf(now)].sort()[0] as string;
    const range = { from: month.start, to: ended };
    const state = await ownedState(at, { source, range });
    const currencies = [
      ...new Set(owners.flatMap(({ costs }) => costs.map(({ currency }) => currency))),
    ].sort();
    const partOf = ({ costs, traces }: OwnerBill) =>
      currencies[0] === undefined
        ? amountCut(traces)
        : sumOf(
            costs.filter(({ currency }) => currency === currencies[0]).map(({ cost }) => amountCut(cost)),
          );
    const whole = sumOf(owners.map(partOf));
    const rounded = roundedByOwner(owners, bill.lines);
    return {
      bill,
      currencies,
      state,
      owners: owners.map((one) => ({
        ...one,
        costs: one.costs.map((cost) => ({ ...cost, rounded: rounded.get(cost) as Amount })),
        sharePercent: percentOf(partOf(one), whole),
      })),
      divideBy: (await appliedOwners(at))?.divideBy ?? null,
    };
  });
}

/** Cents of each owner and SKU, which add up to the bill's charges in cents. Shares have more digits than an amount. */
function roundedByOwner(
  owners: readonly OwnerBill[],
  lines: readonly BillLine[],
): ReadonlyMap<OwnerCost, Amount> {
  const whole = new Map(
    billTotals(lines.filter(({ line }) => line !== "added")).map(({ currency, cost }) => [currency, cost]),
  );
  const rounded = new Map<OwnerCost, Amount>();
  const costs = owners.flatMap((one) => one.costs);
  for (const [currency, some] of Map.groupBy(costs, (one) => one.currency)) {
    const parts = some.map(({ cost }) => amountCut(cost));
    const inCents = roundedParts(currency, parts, whole.get(currency));
    some.forEach((cost, n) => void rounded.set(cost, inCents[n] as Amount));
  }
  return rounded;
}

function sumOf(amounts: readonly Amount[]): Amount {
  return amounts.reduce((sum, one) => sum + one, 0n);
}

/** While a day is not final by the dividing dimension, final traces may still move between owners. */
function isDivisionFinal({ bill, state }: Pick<BillByOwner, "bill" | "state">): boolean {
  return isBillFinal(bill.lines) && state.daysMissing + state.daysUndivided === 0 && state.open.length === 0;
}

/** Undefined: the owner has no cost in the currency. */
function costIn(costs: readonly RoundedCost[], currency: string): Amount | undefined {
  const some = costs.filter((one) => one.currency === currency);
  return some.length === 0 ? undefined : sumOf(some.map(({ rounded }) => rounded));
}

export function billByOwnerToData({ name }: CalendarMonth, of: BillByOwner) {
  const { bill, owners, currencies, divideBy, state } = of;
  return {
    source: bill.source,
    organization: bill.organization,
    month: name,
    asOf: bill.asOf,
    closed: bill.closed,
    divideBy,
    owners: owners.map(({ costs, ...one }) => ({
      ...one,
      costs: costs.map(({ rounded, ...cost }) => ({ ...cost, roundedCost: amountText(rounded) })),
      totals: currencies.flatMap((currency) => {
        const cost = costIn(costs, currency);
        return cost === undefined ? [] : [{ currency, roundedCost: amountText(cost) }];
      }),
    })),
    isFinal: isDivisionFinal(of),
    billIsProved: isBillProved(bill.lines),
    withoutCost: namesWithoutCost(bill.lines),
    unloaded: bill.unloaded,
    daysMissing: state.daysMissing,
    daysUndivided: state.daysUndivided,
    daysNotFinal: state.open,
  };
}

interface OwnerRow {
  readonly part: OwnerPart;
  readonly sku?: RoundedCost;
}

export function describeBillByOwner(month: CalendarMonth, of: BillByOwner): string {
  const { bill, owners, currencies, divideBy, state } = of;
  const { lines, unloaded } = bill;
  const hasCenters = owners.some(({ costCenter }) => costCenter !== NO_COST_CENTER);
  const rows = owners.flatMap((part): OwnerRow[] => [
    { part },
    ...(part.costs.length > 1 ? part.costs.map((sku) => ({ part, sku })) : []),
  ]);
  const columns = currencies.flatMap((currency) => {
    const shown = (amount: Amount | undefined) =>
      amount === undefined ? "-" : `${roundShown(amount, currency)} ${currency}`;
    const suffix = currencies.length === 1 ? "" : `, ${currency}`;
    const partsOf = ({ part, sku }: OwnerRow) => (sku === undefined ? part.costs : [sku]);
    const corrections = (row: OwnerRow) =>
      partsOf(row).filter((one) => one.currency === currency && one.correction !== null);
    const isCorrected = rows.some((row) => corrections(row).length > 0);
    const cost = toTheRight(rows, (row) => shown(costIn(partsOf(row), currency)));
    const correction = toTheRight(rows, (row) => {
      const some = corrections(row);
      return shown(some.length === 0 ? undefined : sumOf(some.map((one) => amountCut(one.correction))));
    });
    return [
      [`cost${suffix}`, cost] as const,
      ...(isCorrected ? [[`of it corrections${suffix}`, correction] as const] : []),
    ];
  });
  const without = namesWithoutCost(lines);
  const added = lines.filter(({ line }) => line === "added");
  return linesOf(
    `Bill of ${month.name}, ${bill.source}, by owner: an estimate from the imported prices, not an invoice`,
    rows.length > 0 &&
      tableOf(rows, {
        owner: ({ part, sku }) => (sku === undefined ? part.owner : `  ${sku.sku}`),
        "cost centre": hasCenters && (({ part, sku }) => (sku === undefined ? part.costCenter : "")),
        traces: toTheRight(rows, ({ part, sku }) =>
          sku !== undefined ? "" : part.traces === null ? "-" : shownDecimal(part.traces, null),
        ),
        ...Object.fromEntries(columns),
        share: toTheRight(rows, ({ part, sku }) =>
          sku !== undefined ? "" : part.sharePercent === null ? "-" : `${part.sharePercent} %`,
        ),
      }),
    describeTotal(bill),
    added.length > 0 &&
      `Not divided: ${costsText(billTotals(added).map(({ currency, cost }) => ({ currency, cost: amountText(cost) })))} of lines that were entered by hand.`,
    describeUnloaded(unloaded),
    without.length > 0 &&
      `Not in the cost, in whole or in part: ${without.join(", ")}. \`usage-etl bill ${month.name}\` says why.`,
    state.daysMissing > 0 &&
      `Not loaded: ${counted(state.daysMissing, "day")} of workspaces. Missing usage is charged to nobody.`,
    state.daysUndivided > 0 &&
      `Not loaded by ${DIMENSIONS[divideBy ?? "project"].title}: ${counted(state.daysUndivided, "day")} of workspaces. There, all traces go to the owner of the rest of the workspace.`,
    // Days that are not loaded are not final.
    state.daysMissing + state.daysUndivided === 0 &&
      state.open.length > 0 &&
      `Not final: ${rangesOf(state.open).map(daysText).join(", ")}.`,
    divideBy === null &&
      owners.length > 0 &&
      "No owner file is applied, so no usage has an owner. `usage-etl owners suggest` lists usage, with rules for it.",
  );
}

function rangesOf(days: readonly string[]): Days[] {
  return joined(days.map((day) => ({ from: day, to: addDays(day, 1) })));
}

export function billByOwnerTable(bills: readonly BillByOwner[]): Table {
  return {
    header: [
      ...HEAD,
      ...["row", "owner", "cost_center", "traces", "share_percent", "sku", "unit", "currency", "cost"],
      ...["estimated_cost", "corrections", "is_final", "bill_is_proved", "days_missing", "days_undivided"],
      ...["days_not_final", "without_cost"],
    ],
    rows: bills.flatMap((of) => {
      const { bill, owners, state } = of;
      const head = headOf(bill);
      const tail: Cell[] = [
        ...[String(isDivisionFinal(of)), String(isBillProved(bill.lines))],
        ...[state.daysMissing, state.daysUndivided, state.open.length],
        namesWithoutCost(bill.lines).join("; ") || null,
      ];
      const none: Cell[] = [null, null, null, null, null, null];
      const ofOwners = owners.flatMap(({ owner, costCenter, traces, sharePercent, costs }) => {
        const parts = costs.length === 0 ? [none] : costs.map(cellsOf);
        return parts.map((cells, n): Cell[] => [
          ...[...head, "line", owner, costCenter],
          ...(n === 0 ? [decimalCell(traces), sharePercent] : [null, null]),
          ...[...cells, ...tail],
        ]);
      });
      const totals = of.currencies.map((currency): Cell[] => {
        const parts = owners.flatMap(({ costs }) => costs).filter((one) => one.currency === currency);
        const rounded = decimalCell(amountText(sumOf(parts.map((one) => one.rounded))));
        return [...head, "total", null, null, null, null, null, null, currency, rounded, null, null, ...tail];
      });
      return [...ofOwners, ...totals];
    }),
  };
}

function cellsOf({ sku, measure, currency, rounded, cost, correction }: RoundedCost): Cell[] {
  const inCents = decimalCell(amountText(rounded));
  return [sku, unitOf(measure), currency, inCents, decimalCell(cost), decimalCell(correction)];
}
