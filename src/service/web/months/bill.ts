import {
  type BillLine,
  billTotals,
  describeTotal,
  isWithoutCost,
  lineName,
  lineState,
  shownAmount,
  totalState,
} from "../../../domain/bill/bill.ts";
import type { CalendarMonth } from "../../../domain/months/month.ts";
import { amountOf } from "../../../domain/usage/amount.ts";
import { type Html, html, money, name, notice, numberHead, table } from "../parts.ts";

/** Counted, and on no invoice. */
const IS_APART: ReadonlySet<BillLine["line"]> = new Set(["not_charged", "not_invoiced"]);
/** Amounts of money, whatever is charged for them. */
const IN_MONEY = "spend_usd";

/** What the cost of a month leaves out, and what the bill has beside it. */
export function withoutCost(bill: readonly BillLine[]): Html[] {
  const names = [...new Set(bill.filter(isWithoutCost).map(lineName))];
  const corrects = bill.some(({ line }) => line === "correction");
  return [
    ...(names.length === 0 || billTotals(bill).length === 0
      ? []
      : [
          notice(
            "info",
            `Not in the cost, in whole or in part: ${names.join(", ")}. The bill of the month says why.`,
          ),
        ]),
    ...(corrects
      ? [
          notice(
            "info",
            "The total of the bill has corrections of closed months too, which this month's cost has not.",
          ),
        ]
      : []),
  ];
}

/** The bill of a month: what is charged, with what is not known of it, what that comes to, and what else was counted. */
export function billTable(
  lines: readonly BillLine[],
  of: { readonly month: CalendarMonth; readonly dataStart: string },
): Html {
  const totals = billTotals(lines);
  const foot = totals.map(
    ({ currency, cost }) => html`<tr><th scope="row" colspan="3">Total</th>
      <td class="number"><strong>${money(cost)} ${currency}</strong></td><td>${totalState(lines)}</td></tr>`,
  );
  const charged = lines.filter(({ line }) => !IS_APART.has(line));
  const apart = lines.filter(({ line }) => IS_APART.has(line));
  return html`${
    charged.length === 0
      ? ""
      : table({
          label: "Bill",
          caption:
            "An estimate from the imported prices, without taxes and discounts: not an invoice. Rounded to cents.",
          heads: ["What", numberHead("Quantity"), numberHead("Unit price"), numberHead("Cost"), "State"],
          rows: charged.map(chargedRow),
          foot: html`${foot}`,
        })
  }${totals.length === 0 ? html`<p>${describeTotal(lines, of)}</p>` : ""}${
    apart.length === 0
      ? ""
      : table({
          label: "Counted, and on no invoice",
          caption: "Counted, and on no invoice.",
          heads: ["What", numberHead("Quantity"), "Why it has no cost"],
          rows: apart.map(
            (one) =>
              html`<tr><th scope="row">${lineName(one)}</th>${quantity(one)}<td>${lineState(one)}</td></tr>`,
          ),
        })
  }`;
}

function chargedRow(one: BillLine): Html {
  const what = lineName(one);
  const isNamed =
    one.sku === null || one.sku === lineName({ ...one, fromQuantity: null }) || one.line === "unpriced";
  return html`<tr><th scope="row">${what}${isNamed ? "" : html`<br><small>SKU ${name(one.sku ?? "")}</small>`}</th>${quantity(one)}<td class="number">${one.unitPrice === null ? "–" : `${shownAmount(one.unitPrice)} ${one.currency}`}</td>
    <td class="number">${one.cost === null ? "–" : html`${money(amountOf(one.cost))} ${one.currency}`}</td><td>${lineState(one)}</td></tr>`;
}

function quantity({ measure, quantity: text }: BillLine): Html {
  if (text === null) return html`<td class="number">–</td>`;
  return html`<td class="number">${measure === IN_MONEY ? money(amountOf(text)) : shownAmount(text)}</td>`;
}
