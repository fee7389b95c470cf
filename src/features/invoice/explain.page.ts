import { z } from "zod";
import { sourceFlagsOf } from "../../core/base/config.ts";
import { amountShown } from "../../core/domain/usage/amount.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import {
  address,
  card,
  type Html,
  html,
  name,
  notice,
  numberHead,
  optional,
  table,
  twin,
} from "../../web/parts.ts";
import type { Web } from "../../web/routes.ts";
import { type ExplainedInvoice, invoiceNumbered, readExplanation } from "./explain-invoice.ts";
import { causeRows, differenceText, settlementText, stateText } from "./explanation.ts";
import type { MatchedLine } from "./match.ts";

const LINES_SHOWN = 200;

const query = z.object({
  number: z.string().min(1).max(200),
  source: optional(z.string().max(63)),
  lines: optional(z.enum(["all", "open"])),
});

export function addExplanation(web: Web): void {
  web.page(
    "/invoices/explain",
    { query },
    async ({ db, config, masked, query: { number, source, lines } }) => {
      const invoice = await invoiceNumbered(db, { number, source });
      const explained = maskedSettlement(await readExplanation(db, invoice), masked);
      const { found, settlement } = explained;
      const flags = sourceFlagsOf(config, invoice.source);
      const settled = settlementText(explained);
      const quoted = /^[\w.-]+$/.test(number) ? number : `'${number.replaceAll("'", "'\\''")}'`;
      const body = html`<p>${name(invoice.issuer)}, ${invoice.status}${invoice.issuedOn !== null && `, ${invoice.issuedOn}`}: ${differenceText(explained)}</p>
      ${settled !== undefined && notice("info", settled)}
      ${causeTable(explained)}
      ${lineTable(explained, { isAll: lines === "all", link: (all) => address("/invoices/explain", { number, source, lines: all }) })}
      ${settlement === null && found.remainder !== 0n ? twin(`usage-etl invoice settle ${quoted}${flags} --reason TEXT`) : ""}`;
      return { title: `Invoice ${number}`, body };
    },
  );
}

function maskedSettlement(explained: ExplainedInvoice, masked: boolean): ExplainedInvoice {
  const { settlement } = explained;
  if (settlement === null || !masked) return explained;
  return { ...explained, settlement: { ...settlement, settledBy: maskedActor(settlement.settledBy) } };
}

function causeTable(explained: ExplainedInvoice): Html {
  const { currency, total, bill } = explained.found;
  const more = (text: Html | string) => [`Higher by, ${currency}`, text, "number"] as const;
  return table({
    label: "Causes",
    kind: "cards",
    caption: "Each cause is our bill priced again with one thing changed. Together they are the difference.",
    heads: ["Why", "What", "Period", numberHead("Usage more"), numberHead(`Higher by, ${currency}`)],
    rows: causeRows(explained).map(({ why, what, period, quantity, amount }) =>
      card(why, [
        ["What", name(what)],
        ["Period", period],
        ["Usage more", quantity === null ? "" : amountShown(quantity), "number"],
        more(amountShown(amount)),
      ]),
    ),
    foot: html`<tr><th scope="row" colspan="4">Difference</th><td class="number">${amountShown(total - bill)}</td></tr>`,
  });
}

function lineTable(
  { inputs, found }: ExplainedInvoice,
  { isAll, link }: { isAll: boolean; link: (lines: "all" | "open") => string },
): Html {
  const invoiced = new Map(inputs.lines.map((line) => [line.lineNumber, line]));
  const names = new Map(inputs.workspaces.map(({ id, name }) => [id, name]));
  const chosen = isAll ? found.lines : found.lines.filter(({ state }) => state !== "agrees");
  const rows = chosen.slice(0, LINES_SHOWN).map((line: MatchedLine) => {
    const own = line.lineNumber === null ? undefined : invoiced.get(line.lineNumber);
    const text = [own?.sumText, own?.text].filter((part) => part != null).join(", ") || (line.sku ?? "");
    const workspace = line.workspaceId === null ? "" : (names.get(line.workspaceId) ?? line.workspaceId);
    const here = (amount: bigint | null) => (amount === null ? "" : amountShown(amount));
    return card(name(text), [
      ["Workspace", name(workspace)],
      ["Quantity", own?.quantity ?? "", "number"],
      ["Quantity here", here(line.quantityHere), "number"],
      ["Amount", own?.amount ?? "", "number"],
      ["Cost here", here(line.costHere), "number"],
      ["State", stateText(line)],
    ]);
  });
  const hidden = chosen.length - rows.length;
  const heads = [
    "Line",
    "Workspace",
    numberHead("Quantity"),
    numberHead("Quantity here"),
    numberHead("Amount"),
  ];
  return html`<h2>Lines</h2>
    <p><a href="${link(isAll ? "open" : "all")}">${isAll ? "Only lines that do not agree" : `All ${found.lines.length} lines`}</a></p>
    ${
      rows.length === 0
        ? html`<p>All lines agree.</p>`
        : table({
            kind: "cards",
            caption: "Lines",
            heads: [...heads, numberHead("Cost here"), "State"],
            rows,
          })
    }
    ${hidden > 0 && html`<p>${hidden} more lines: <code>usage-etl invoice explain --lines</code> shows them.</p>`}`;
}
