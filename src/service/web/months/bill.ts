import {
  type BillLine,
  billTotals,
  describeTotal,
  lineName,
  lineState,
  shownAmount,
  totalState,
} from "../../../domain/bill/bill.ts";
import type { CalendarMonth } from "../../../domain/months/month.ts";
import { amountShown } from "../../../domain/usage/amount.ts";
import { type Html, html, name, numberHead, table } from "../parts.ts";

/** The bill of a month: its lines, what is not known among them, and what they come to. */
export function billTable(
  lines: readonly BillLine[],
  of: { readonly month: CalendarMonth; readonly dataStart: string },
): Html {
  const totals = billTotals(lines);
  const number = (text: string | null) => html`<td class="number">${shownAmount(text) ?? "–"}</td>`;
  const rows = lines.map(
    (one) => html`<tr><th scope="row">${lineName(one)}</th>
      <td>${one.sku === null || one.line === "unpriced" ? "" : name(one.sku)}</td>${number(one.quantity)}${number(one.unitPrice)}
      <td class="number">${one.cost === null ? "–" : `${shownAmount(one.cost)} ${one.currency}`}</td><td>${lineState(one)}</td></tr>`,
  );
  const foot = totals.map(
    ({ currency, cost }) => html`<tr><th scope="row" colspan="4">Total</th>
      <td class="number"><strong>${amountShown(cost)} ${currency}</strong></td><td>${totalState(lines)}</td></tr>`,
  );
  return html`${
    lines.length === 0
      ? ""
      : table({
          label: "Bill",
          caption: "An estimate from the imported prices, without taxes and discounts: not an invoice.",
          heads: [
            "What",
            "SKU",
            numberHead("Quantity"),
            numberHead("Unit price"),
            numberHead("Cost"),
            "State",
          ],
          rows,
          foot: html`${foot}`,
        })
  }${totals.length === 0 ? html`<p>${describeTotal(lines, of)}</p>` : ""}`;
}
