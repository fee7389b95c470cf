import { FIGURE_STATUS, figureStatus } from "../../core/domain/proof/statuses.ts";
import { amountOf, amountShown, percentOf } from "../../core/domain/usage/amount.ts";
import {
  card,
  count,
  type Html,
  html,
  money,
  name,
  notice,
  numberHead,
  percent,
  pill,
  table,
} from "../../web/parts.ts";
import {
  type Bill,
  type BillLine,
  billTotals,
  costsText,
  lineName,
  lineState,
  namesWithoutCost,
  roundedCosts,
  shownAmount,
  type UnloadedWorkspace,
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
  return html`${names.length > 0 && billTotals(bill).length > 0 && notice("info", `Not included: ${names.join("; ")}. The bill of the month says why.`)}
    ${bill.some(({ line }) => line === "correction") && notice("info", "The bill also has corrections of closed months, which this cost has not.")}`;
}

/** The lines of a bill, its total, and below the total what it lacks. `worth`: the open differences of a measure, in money. */
export function billLines(
  { lines, unloaded, budgets }: Bill,
  worth: ReadonlyMap<string, string> = new Map(),
): Html {
  const rounded = roundedCosts(lines);
  const totals = billTotals(lines);
  const [{ currency } = { currency: "USD" }] = totals;
  const isOne = totals.length < 2;
  const shown = (one: BillLine) => {
    const cents = rounded.get(one);
    if (cents === undefined || one.currency === null) return html`–`;
    const amount = money(cents, one.currency, amountOf(one.cost ?? "0"));
    return isOne ? amount : html`${amount} ${one.currency}`;
  };
  const charged = lines.filter((one) => !IS_APART.has(one.line));
  const row = (one: BillLine) =>
    rowOf({
      what: html`${lineName(one)}${detailsOf(one)}`,
      quantity: quantity(one),
      price: one.unitPrice === null ? "–" : html`${shownAmount(one.unitPrice)}`,
      cost: shown(one),
      status: lineStatus(one, worth.get(one.measure ?? "")),
    });
  const sums = [
    ...totals.map((total) => ({
      what: isOne ? "Total estimated" : `Total estimated, ${total.currency}`,
      cost: money(total.cost, total.currency),
      status: html``,
      kind: "total",
    })),
    ...budgets.map((one) => {
      const total = totals.find((sum) => sum.currency === one.currency)?.cost ?? 0n;
      const used = `${percent(percentOf(total, amountOf(one.cost)))} is used`;
      return {
        what: "Budget of the source",
        cost: money(amountOf(one.cost), one.currency),
        status: html`${used}`,
        kind: "quiet",
      };
    }),
  ].map(({ what, ...one }) => rowOf({ what: html`${what}`, quantity: "", price: "", ...one }));
  return table({
    label: "Lines",
    kind: "two bill",
    caption: "An estimate from the imported prices, in cents that add up",
    heads: [
      "Item",
      numberHead("Quantity"),
      html`<th scope="col" class="number opt">Unit price</th>`,
      numberHead(isOne ? currency : "Cost"),
      "Status",
    ],
    rows: [
      ...charged.filter(({ cost }) => cost !== null).map(row),
      ...sums,
      ...unloaded.map(unloadedRow),
      ...charged.filter(({ cost }) => cost === null).map(row),
    ],
  });
}

interface Row {
  readonly what: Html;
  readonly quantity: Html | string;
  readonly price: Html | string;
  readonly cost: Html;
  readonly status: Html;
  readonly kind?: string;
}

function rowOf({ what, quantity, price, cost, status, kind = "" }: Row): Html {
  return html`<tr class="${kind}"><th scope="row">${what}</th><td class="number change">${quantity}</td>
    <td class="number opt">${price}</td><td class="number lead">${cost}</td><td class="share">${status}</td></tr>`;
}

function unloadedRow(one: UnloadedWorkspace): Html {
  const { traces, costs, asIn } = one;
  return rowOf({
    what: html`Workspace ${workspaceName(one)}<br><small>not loaded: no sync reads it${asIn !== undefined && `; as in ${asIn}`}</small>`,
    quantity: count(traces),
    price: "–",
    cost: html`${costs.length === 0 ? "–" : `≈ ${costsText(costs).replace(/ USD$/, "")}`}`,
    status: pill(FIGURE_STATUS.missing),
    kind: "apart",
  });
}

/** The name of a workspace that no sync loads, or the beginning of its id. */
export function workspaceName({ workspaceId, name: called }: UnloadedWorkspace): Html {
  if (called !== null || workspaceId === "") return name(called ?? "(none)");
  return html`<span title="${workspaceId}">${workspaceId.slice(0, 8)}…</span>`;
}

/** Why a line has no cost, or which SKU prices it. */
function detailsOf(one: BillLine): Html | "" {
  const { cost, sku, line } = one;
  if (cost === null) return html`<br><small>${lineState(one)}</small>`;
  if (line === "estimate" || line === "added") return html`<br><small>${lineState(one)}</small>`;
  const isNamed = sku === null || sku === lineName({ ...one, fromQuantity: null });
  return isNamed ? "" : html`<br><small>${name(sku)}</small>`;
}

function lineStatus(one: BillLine, worth: string | undefined): Html {
  const { cost, isFinal, isProved, unprovedCost, currency, daysDiffering } = one;
  if (cost === null) return pill(FIGURE_STATUS.missing);
  const status = figureStatus({ isComplete: true, isFinal, isProved, isDifferent: (daysDiffering ?? 0) > 0 });
  if (status === "differs") return pill(FIGURE_STATUS.differs, worth);
  const open = amountOf(unprovedCost ?? "0");
  const isPart = open !== 0n && open !== amountOf(cost) && currency !== null;
  return html`${pill(FIGURE_STATUS[status])}${isPart && html`<br><small>${money(open, currency)} not proved</small>`}`;
}

/** Lines that are counted without a cost, and other numbers that the platform reports. */
export function otherLines({ lines, alsoReported }: Bill): Html | undefined {
  const apart = lines.filter(({ line }) => IS_APART.has(line));
  if (apart.length + alsoReported.length === 0) return undefined;
  return html`${
    apart.length > 0 &&
    table({
      label: "Not billed",
      kind: "cards",
      caption: "Not billed",
      heads: ["Item", numberHead("Quantity"), "Reason"],
      rows: apart.map((one) =>
        card(lineName(one), [
          ["Quantity", quantity(one), "number"],
          ["Reason", lineState(one)],
        ]),
      ),
    })
  }${alsoReported.length > 0 && alsoReportedTable(alsoReported)}`;
}

function alsoReportedTable(lines: readonly StatementLine[]): Html {
  return table({
    label: ALSO_REPORTED,
    kind: "cards",
    caption: lines.length > MOST_LINES ? `${ALSO_REPORTED}. ${leftOut(lines)}` : ALSO_REPORTED,
    heads: ["Item", numberHead("Value"), "Read", "Does not say"],
    rows: lines.slice(0, MOST_LINES).map((one) =>
      card(name(statementName(one)), [
        ["Value", statementValue(one), "number"],
        ["Read", one.takenOn],
        ["Does not say", one.doesNotSay],
      ]),
    ),
  });
}

function quantity(one: BillLine): Html {
  const { measure, quantity: text } = one;
  if (text === null) return html`–`;
  const amount = amountOf(text);
  // Units of sandboxes have six digits; the title has all of them.
  const shown =
    measure === IN_MONEY
      ? money(amount)
      : (text.split(".")[1] ?? "").length > 2
        ? money(amount)
        : amountShown(amount);
  return html`${shown}${one.cost === null && ` ${unitOf(measure)}`}`;
}
