import { shortInstant } from "../../core/domain/time/days.ts";
import { type Amount, amountOf, percentOf } from "../../core/domain/usage/amount.ts";
import {
  type Cell,
  card,
  type Html,
  html,
  money,
  name,
  notice,
  numberHead,
  percent,
  table,
} from "../../web/parts.ts";
import {
  type Bill,
  type BillLine,
  billTotals,
  type CurrencyCost,
  describeTotal,
  lineName,
  lineState,
  NOT_REPORTED,
  namesWithoutCost,
  roundedCosts,
  shownAmount,
  totalState,
  unitOf,
} from "./bill.ts";
import {
  ALSO_REPORTED,
  leftOut,
  MOST_LINES,
  type StatementLine,
  statementName,
  statementValue,
} from "./statement.ts";

const IS_APART: ReadonlySet<BillLine["line"]> = new Set(["not_charged", "counted_apart", "not_invoiced"]);
const IN_MONEY = "spend_usd";

export function withoutCost(bill: readonly BillLine[]): Html {
  const names = namesWithoutCost(bill);
  const left = `Not in the cost, in whole or in part: ${names.join(", ")}. The bill of the month says why.`;
  const corrected =
    "The total of the bill has corrections of closed months too, which this month's cost has not.";
  return html`${names.length > 0 && billTotals(bill).length > 0 && notice("info", left)}
    ${bill.some(({ line }) => line === "correction") && notice("info", corrected)}`;
}

export function billTable(bill: Bill): Html {
  const { organization, asOf, lines, unloaded } = bill;
  const totals = billTotals(lines);
  const rounded = roundedCosts(lines);
  const row = (label: string, { currency, cost }: { currency: string; cost: Amount }, state: string) =>
    html`<tr><th scope="row" colspan="3">${label}</th>
      <td class="number" data-column="Cost"><strong>${money(cost, currency)} ${currency}</strong></td><td data-column="State">${state}</td></tr>`;
  const beside = (label: string, costs: readonly CurrencyCost[], state: (part: CurrencyCost) => string) =>
    costs.map((one) => row(label, { ...one, cost: amountOf(one.cost) }, state(one)));
  const usedOf = ({ currency, cost }: CurrencyCost) => {
    const total = totals.find((one) => one.currency === currency)?.cost ?? 0n;
    return `${percent(percentOf(total, amountOf(cost)))} is used`;
  };
  const foot = [
    ...totals.map((total) => row("Total", total, totalState(lines, unloaded))),
    ...beside("Previous month", bill.before, () => ""),
    ...beside("Budget", bill.budgets, usedOf),
  ];
  const charged = lines.filter(({ line }) => !IS_APART.has(line));
  const apart = lines.filter(({ line }) => IS_APART.has(line));
  return html`${
    charged.length > 0 &&
    table({
      label: "Bill",
      kind: "cards",
      caption: `${organization === null ? "" : `Organization ${organization}. `}An estimate from the imported prices, in cents that add up, as of ${shortInstant(asOf)}. An invoice also has amounts that no API reports: ${NOT_REPORTED}.`,
      heads: ["What", numberHead("Quantity"), numberHead("Unit price"), numberHead("Cost"), "State"],
      rows: charged.map((one) => chargedRow(one, rounded.get(one))),
      foot: html`${foot}`,
    })
  }${totals.length === 0 && html`<p>${describeTotal(bill)}</p>`}${
    apart.length > 0 &&
    table({
      label: "Counted, without a cost",
      kind: "cards",
      caption: "Counted, without a cost.",
      heads: ["What", numberHead("Quantity"), "Why it has no cost"],
      rows: apart.map((one) => card(lineName(one), [quantity(one), ["Why it has no cost", lineState(one)]])),
    })
  }`;
}

export function alsoReportedTable(lines: readonly StatementLine[]): Html | false {
  return (
    lines.length > 0 &&
    html`<h2>${ALSO_REPORTED}</h2>${table({
      label: ALSO_REPORTED,
      kind: "cards",
      caption: lines.length > MOST_LINES ? leftOut(lines) : "Each line is a snapshot of one night.",
      heads: ["What", numberHead("Value"), "Read", "Does not say"],
      rows: lines.slice(0, MOST_LINES).map((one) =>
        card(name(statementName(one)), [
          ["Value", statementValue(one), "number"],
          ["Read", one.takenOn],
          ["Does not say", one.doesNotSay],
        ]),
      ),
    })}`
  );
}

function chargedRow(one: BillLine, rounded: Amount | undefined): Html {
  const what = lineName(one);
  const isNamed =
    one.sku === null || one.sku === lineName({ ...one, fromQuantity: null }) || one.line === "unpriced";
  return card(html`${what}${!isNamed && html`<br><small>SKU ${name(one.sku ?? "")}</small>`}`, [
    quantity(one),
    ["Unit price", one.unitPrice === null ? "–" : `${shownAmount(one.unitPrice)} ${one.currency}`, "number"],
    [
      "Cost",
      rounded === undefined
        ? "–"
        : html`${money(rounded, one.currency ?? "", amountOf(one.cost ?? "0"))} ${one.currency}`,
      "number",
    ],
    ["State", lineState(one)],
  ]);
}

function quantity({ measure, quantity: text }: BillLine): Cell {
  const shown = measure === IN_MONEY && text !== null ? money(amountOf(text)) : shownAmount(text);
  return ["Quantity", shown === null ? "–" : html`${shown} ${unitOf(measure)}`, "number"];
}
