import type { CalendarMonth } from "../../core/domain/months/month.ts";
import { decimalCell, type Table } from "../export/table-file.ts";
import { type BillLine, lineName, lineState } from "./bill.ts";

export interface MonthBill {
  readonly source: string;
  readonly month: Pick<CalendarMonth, "start">;
  readonly lines: readonly BillLine[];
}

export function billTable(bills: readonly MonthBill[]): Table {
  return {
    header: [
      "source_id",
      "month",
      "what",
      "sku",
      "quantity",
      "unit_price",
      "currency",
      "estimated_cost",
      "state",
    ],
    rows: bills.flatMap(({ source, month, lines }) =>
      lines.map((line) => [
        source,
        { at: month.start, per: "month" },
        lineName(line),
        line.sku,
        decimalCell(line.quantity),
        decimalCell(line.unitPrice),
        line.currency,
        decimalCell(line.cost),
        lineState(line),
      ]),
    ),
  };
}
