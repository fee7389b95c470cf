import { type Amount, amountOf, amountText, roundedTo } from "../../core/domain/usage/amount.ts";
import { type Cell, dayCell, decimalCell, type Table } from "../export/table-file.ts";
import { type Bill, billTotals, lineName, lineState, roundedCosts, totalState, unitOf } from "./bill.ts";

/** `line` and `added` of one currency add up to the row `total`. */
type RowKind = "line" | "added" | "not_in_total" | "total" | "previous_month" | "budget";

interface FileRow {
  readonly row: RowKind;
  readonly workspaceId?: string | null;
  readonly workspaceName?: string | null;
  readonly what: string;
  readonly sku?: string | null;
  readonly measure?: string | null;
  readonly quantity?: string | null;
  readonly unitPrice?: string | null;
  readonly currency: string | null;
  readonly rounded?: Amount | undefined;
  readonly exact?: string | null;
  readonly state?: string;
}

export function billFile(bills: readonly Bill[]): Table {
  return {
    header: [
      ...HEAD,
      ...[
        "row",
        "workspace_id",
        "workspace_name",
        "what",
        "sku",
        "measure",
        "quantity",
        "unit",
        "unit_price",
      ],
      ...["currency", "cost", "estimated_cost", "state"],
    ],
    rows: bills.flatMap((bill) => {
      const head = headOf(bill);
      return rowsOf(bill).map((one): Cell[] => [
        ...head,
        ...[one.row, one.workspaceId ?? null, one.workspaceName ?? null, one.what, one.sku ?? null],
        ...[one.measure ?? null, decimalCell(one.quantity), unitOf(one.measure ?? null)],
        ...[decimalCell(one.unitPrice), one.currency],
        decimalCell(one.rounded === undefined ? null : amountText(one.rounded)),
        ...[decimalCell(one.exact), one.state ?? null],
      ]);
    }),
  };
}

/** Columns of `headOf`. */
export const HEAD = "source_id organization month period_start period_end as_of closed_at closed_by".split(
  " ",
);

export function headOf({ source, organization, month, asOf, closed }: Bill): Cell[] {
  return [
    ...[source, organization, { at: month.start, per: "month" as const }, dayCell(month.start)],
    ...[dayCell(month.end), { at: asOf, per: "second" as const }],
    ...[closed === null ? null : { at: closed.at, per: "second" as const }, closed?.by ?? null],
  ];
}

function rowsOf(bill: Bill): FileRow[] {
  const { lines, unloaded, before, budgets } = bill;
  const rounded = roundedCosts(lines);
  const inAll = (row: RowKind, what: string, currency: string, exact: string, state?: string): FileRow => {
    const shown = roundedTo(currency, amountOf(exact));
    return { row, what, currency, exact, rounded: shown, ...(state === undefined ? {} : { state }) };
  };
  return [
    ...lines.map(
      (line): FileRow => ({
        ...line,
        row: line.line === "added" ? "added" : "line",
        what: lineName(line),
        rounded: rounded.get(line),
        exact: line.cost,
        state: lineState(line),
      }),
    ),
    ...unloaded.flatMap(({ workspaceId, name, traces, costs }) =>
      (costs.length === 0 ? [{ currency: null, cost: null }] : costs).map(
        ({ currency, cost }): FileRow => ({
          ...{ row: "not_in_total", workspaceId, workspaceName: name, what: "Traces that no sync loads" },
          ...{ measure: "traces", quantity: String(traces), currency, exact: cost },
          rounded: currency === null ? undefined : roundedTo(currency, amountOf(cost)),
          state: "not loaded",
        }),
      ),
    ),
    ...billTotals(lines).map(({ currency, cost }) =>
      inAll("total", "Total", currency, amountText(cost), totalState(lines, unloaded)),
    ),
    ...before.map(({ currency, cost }) => inAll("previous_month", "Previous month", currency, cost)),
    ...budgets.map(({ currency, cost }) => inAll("budget", "Budget", currency, cost)),
  ];
}
