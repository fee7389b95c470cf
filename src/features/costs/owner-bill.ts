import { counted } from "../../core/base/printable.ts";
import { type CalendarMonth, daysText } from "../../core/domain/months/month.ts";
import { addDays, type Days, dayOf, joined } from "../../core/domain/time/days.ts";
import { type Amount, amountCut, percentOf } from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import { DIMENSIONS } from "../../core/store/db/dimensions.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { linesOf, shownDecimal, tableOf, toTheRight } from "../../terminal/output.ts";
import { type Cell, decimalCell, type Table } from "../export/table-file.ts";
import { type DividingDimension, NO_COST_CENTER } from "../owners/owner.ts";
import { appliedOwners, type OwnedState, ownedState } from "../owners/owners.store.ts";
import {
  type BillLine,
  describeTotal,
  describeUnloaded,
  isBillFinal,
  isBillProved,
  namesWithoutCost,
  type UnloadedWorkspace,
} from "./bill.ts";
import { monthBill, monthBillByOwner, type OwnerBill } from "./bill-lines.store.ts";
import { unloadedWorkspaces } from "./bill-terms.store.ts";

export interface BillByOwner {
  readonly source: string;
  readonly dataStart: string;
  readonly lines: readonly BillLine[];
  readonly unloaded: readonly UnloadedWorkspace[];
  readonly owners: readonly (OwnerBill & {
    /** Share of the cost in the first currency, else of the traces. */ readonly sharePercent: number | null;
  })[];
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
    const lines = await monthBill(at, { source, monthStart: month.start });
    const unloaded = await unloadedWorkspaces(at, { source, monthStart: month.start });
    const owners = await monthBillByOwner(at, { source, month, lines });
    const ended = [month.end, dayOf(now)].sort()[0] as string;
    const range = { from: month.start, to: ended };
    const state = await ownedState(at, { source, range });
    const currencies = [...new Set(owners.flatMap(({ costs }) => Object.keys(costs)))].sort();
    const partOf = ({ costs, traces }: OwnerBill) =>
      amountCut(currencies[0] === undefined ? traces : costs[currencies[0]]);
    const whole = owners.reduce<Amount>((all, one) => all + partOf(one), 0n);
    return {
      source,
      dataStart,
      lines,
      unloaded,
      currencies,
      state,
      owners: owners.map((one) => ({ ...one, sharePercent: percentOf(partOf(one), whole) })),
      divideBy: (await appliedOwners(at))?.divideBy ?? null,
    };
  });
}

/** While a day is not final by the dividing dimension, final traces may still move between owners. */
function isDivisionFinal({ lines, state }: Pick<BillByOwner, "lines" | "state">): boolean {
  return isBillFinal(lines) && state.daysMissing + state.daysUndivided === 0 && state.open.length === 0;
}

export function billByOwnerToData({ name }: CalendarMonth, bill: BillByOwner) {
  const { source, lines, owners, divideBy, state } = bill;
  return {
    source,
    month: name,
    divideBy,
    owners,
    isFinal: isDivisionFinal(bill),
    billIsProved: isBillProved(lines),
    withoutCost: namesWithoutCost(lines),
    daysMissing: state.daysMissing,
    daysUndivided: state.daysUndivided,
    daysNotFinal: state.open,
  };
}

export function describeBillByOwner(month: CalendarMonth, bill: BillByOwner): string {
  const { source, dataStart, lines, unloaded, owners, currencies, divideBy, state } = bill;
  const hasCenters = owners.some(({ costCenter }) => costCenter !== NO_COST_CENTER);
  const columns = currencies.flatMap((currency) => {
    const amount = (text: string | undefined) =>
      text === undefined ? "-" : `${shownDecimal(text, currency)} ${currency}`;
    const isCorrected = owners.some(({ corrections }) => corrections[currency] !== undefined);
    const corrected = toTheRight(owners, ({ corrections }) => amount(corrections[currency]));
    const name = currencies.length === 1 ? "cost" : `cost, ${currency}`;
    return [
      [name, toTheRight(owners, ({ costs }) => amount(costs[currency]))] as const,
      ...(isCorrected
        ? [[`of it corrections${currencies.length === 1 ? "" : `, ${currency}`}`, corrected] as const]
        : []),
    ];
  });
  const without = namesWithoutCost(lines);
  return linesOf(
    `Bill of ${month.name}, ${source}, by owner: an estimate from the imported prices, not an invoice`,
    owners.length > 0 &&
      tableOf(owners, {
        owner: "owner",
        "cost centre": hasCenters && "costCenter",
        traces: toTheRight(owners, ({ traces }) => (traces === null ? "-" : shownDecimal(traces, null))),
        ...Object.fromEntries(columns),
        share: toTheRight(owners, ({ sharePercent }) => (sharePercent === null ? "-" : `${sharePercent} %`)),
      }),
    describeTotal(lines, { month, dataStart, unloaded }),
    describeUnloaded(unloaded),
    without.length > 0 &&
      `Not in the cost, in whole or in part: ${without.join(", ")}. \`usage-etl bill ${month.name}\` says why.`,
    state.daysMissing > 0 &&
      `Not loaded: ${counted(state.daysMissing, "day")} of workspaces. What is missing counts for nobody.`,
    state.daysUndivided > 0 &&
      `Not loaded by ${DIMENSIONS[divideBy ?? "project"].title}: ${counted(state.daysUndivided, "day")} of workspaces. There, all traces count for who has the rest of the workspace.`,
    // Days that are not loaded are not final.
    state.daysMissing + state.daysUndivided === 0 &&
      state.open.length > 0 &&
      `Not final: ${rangesOf(state.open).map(daysText).join(", ")}.`,
    divideBy === null &&
      owners.length > 0 &&
      "No owner file is applied, so nothing has an owner. `usage-etl owners suggest` lists what there is, with rules for it.",
  );
}

function rangesOf(days: readonly string[]): Days[] {
  return joined(days.map((day) => ({ from: day, to: addDays(day, 1) })));
}

export function billByOwnerTable({ name }: CalendarMonth, bills: readonly BillByOwner[]): Table {
  const currencies = [...new Set(bills.flatMap((bill) => bill.currencies))].sort();
  const columns = currencies.map((currency) => currency.toLowerCase());
  return {
    header: [
      ...["source_id", "month", "owner", "cost_center", "traces"],
      ...columns.flatMap((currency) => [`estimated_cost_${currency}`, `corrections_${currency}`]),
      ...[
        "share_percent",
        "is_final",
        "bill_is_proved",
        "days_missing",
        "days_undivided",
        "days_not_final",
        "without_cost",
      ],
    ],
    rows: bills.flatMap((bill) =>
      bill.owners.map((one): Cell[] => [
        ...[bill.source, name, one.owner, one.costCenter, decimalCell(one.traces)],
        ...currencies.flatMap((currency) => [
          decimalCell(one.costs[currency]),
          decimalCell(one.corrections[currency]),
        ]),
        ...[one.sharePercent, String(isDivisionFinal(bill)), String(isBillProved(bill.lines))],
        ...[bill.state.daysMissing, bill.state.daysUndivided, bill.state.open.length],
        namesWithoutCost(bill.lines).join("; ") || null,
      ]),
    ),
  };
}
