import { z } from "zod";
import { sourceFlagsOf } from "../../core/base/config.ts";
import { EtlError } from "../../core/base/errors.ts";
import { recordAction } from "../../core/store/work/operator-actions.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  button,
  card,
  type Html,
  hidden,
  html,
  name,
  notice,
  numberHead,
  optional,
  refusal,
  table,
  twin,
} from "../../web/parts.ts";
import type { Context, Web } from "../../web/routes.ts";
import { type Comparison, readComparison, readMatchLines } from "./comparison.store.ts";
import { invoiceNumbered, notCompared, settleInvoice } from "./explain-invoice.ts";
import { causeRows, differenceText, settlementText, shown, stateText } from "./explanation.ts";

const PATH = "/invoices/explain";
const LINES_SHOWN = 100;

export const INVOICE_QUERY = { number: z.string().min(1).max(200), source: optional(z.string().max(63)) };
const query = z.object({
  ...INVOICE_QUERY,
  lines: optional(z.enum(["all", "open"])),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
});
const settlement = z.object({ ...INVOICE_QUERY, reason: z.string().max(500), confirmed: z.literal("yes") });
type Query = z.output<typeof query>;

export function addExplanation(web: Web): void {
  web.page(PATH, { query }, (context) => explanationPage(context));
  web.action("/invoices/settle", { body: settlement }, settle);
}

async function settle(context: Context & { readonly body: z.output<typeof settlement> }) {
  const { db, store, actor, body } = context;
  const { number, source, reason } = body;
  const invoice = await invoiceNumbered(db, { number, source });
  try {
    await settleInvoice(store, invoice, { reason: reason.trim() || null, by: actor });
    return { redirect: address(PATH, { number, source }) };
  } catch (error) {
    if (!(error instanceof EtlError)) throw error;
    const detail = `${number}: ${error.message}`;
    const { sourceId } = invoice;
    await recordAction(store.db, actor, { sourceId, action: "invoice.settle", outcome: "refused", detail });
    const page = await explanationPage(
      { ...context, query: { number, source, lines: undefined, page: 1 } },
      refusal(error),
    );
    return { ...page, status: 409 };
  }
}

async function explanationPage(
  {
    db,
    config,
    masked,
    isOperator,
    csrf,
    query: { number, source, lines, page },
  }: Omit<Context<Query>, "params">,
  said: Html | "" = "",
): Promise<Page> {
  const invoice = await invoiceNumbered(db, { number, source });
  const compared = await readComparison(db, invoice, { masked });
  if (compared === undefined) throw notCompared(number);
  const isAll = lines === "all";
  const found = await readMatchLines(db, invoice, {
    ...{ isOpen: !isAll, limit: LINES_SHOWN, offset: (page - 1) * LINES_SHOWN },
  });
  const counts = Object.entries(compared.lineCounts);
  const count = counts.reduce((sum, [state, more]) => sum + (isAll || state !== "agrees" ? more : 0), 0);
  const to = (wanted: "all" | "open", nth: number) =>
    address(PATH, { number, source, lines: wanted, page: nth === 1 ? undefined : nth });
  const { issuer, status, issuedOn } = invoice;
  const settled = settlementText(compared);
  return {
    title: `Invoice ${number}`,
    about: html`${name(issuer)}, ${status}${issuedOn !== null && `, ${issuedOn}`}`,
    actions: button(address("/invoices/statement", { number, source }), "By owner"),
    body: html`${said}<p>${differenceText(compared)}</p>
      ${settled !== undefined && notice("info", settled)}
      ${causeTable(compared)}
      ${isOperator && status === "issued" && settleForm(compared, csrf(), { number, source })}
      ${twin(`usage-etl invoice settle ${quoted(number)}${sourceFlagsOf(config, invoice.source)} --reason TEXT`)}
      <h2 id="lines">Lines</h2>
      <p><a href="${to(isAll ? "open" : "all", 1)}">${isAll ? "Only lines that do not agree" : "All lines"}</a></p>
      ${found.length === 0 ? html`<p>All lines agree.</p>` : lineTable(found)}
      ${count > LINES_SHOWN && pages(count, page, (nth) => to(isAll ? "all" : "open", nth))}`,
  };
}

const quoted = (text: string) => (/^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function pages(count: number, page: number, to: (page: number) => string): Html {
  const last = Math.ceil(count / LINES_SHOWN);
  return html`<nav class="presets" aria-label="Pages of lines"><ul>
    ${page > 1 && html`<li><a href="${to(page - 1)}">Previous</a></li>`}
    <li>Page ${page} of ${last}</li>
    ${page < last && html`<li><a href="${to(page + 1)}">Next</a></li>`}</ul></nav>`;
}

function settleForm(
  { remainder, settlement: settled, invoice: { currency } }: Comparison,
  csrf: string,
  fields: { number: string; source: string | undefined },
): Html {
  return html`<form method="post" action="/invoices/settle" class="ask">${hidden({ _csrf: csrf, ...fields })}
    <label>${remainder === "0" ? "Note" : `Why ${shown(remainder)} ${currency} are accepted`}
      <input name="reason" maxlength="500" ${remainder !== "0" && html`required`}></label>
    <label><input type="checkbox" name="confirmed" value="yes" required> This cannot be undone</label>
    <button>${settled === null ? "Settle" : "Correct the settlement"}</button></form>`;
}

function causeTable(compared: Comparison): Html {
  const { currency } = compared.invoice;
  const higher = `Higher by, ${currency}`;
  return table({
    label: "Causes",
    kind: "cards",
    caption: "Each cause is our bill priced again with one thing changed. Together they are the difference.",
    heads: ["Why", "What", "Period", numberHead("Usage more"), numberHead(higher)],
    rows: causeRows(compared).map(({ why, what, period, quantity, amount }) =>
      card(why, [
        ["What", name(what)],
        ["Period", period],
        ["Usage more", shown(quantity), "number"],
        [higher, shown(amount), "number"],
      ]),
    ),
    foot: html`<tr><th scope="row" colspan="4">Difference</th><td class="number">${shown(compared.difference)}</td></tr>`,
  });
}

function lineTable(lines: Awaited<ReturnType<typeof readMatchLines>>): Html {
  const numbers = ["Quantity", "Quantity here", "Amount", "Cost here"].map((head) => numberHead(head));
  return table({
    kind: "cards",
    caption: "Lines",
    heads: ["Line", "Workspace", ...numbers, "State"],
    rows: lines.map((line) =>
      card(name(line.text), [
        ["Workspace", name(line.workspaceName ?? line.workspaceId ?? "")],
        ["Quantity", shown(line.quantity), "number"],
        ["Quantity here", shown(line.quantityHere), "number"],
        ["Amount", shown(line.amount), "number"],
        ["Cost here", shown(line.costHere), "number"],
        ["State", stateText(line)],
      ]),
    ),
  });
}
