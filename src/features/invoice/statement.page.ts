import { z } from "zod";
import { amountOf, roundShown } from "../../core/domain/usage/amount.ts";
import type { Page } from "../../web/layout.ts";
import { address, button, html, name, numberHead, optional, table } from "../../web/parts.ts";
import type { Context, Web } from "../../web/routes.ts";
import { asWorkbook } from "../export/workbook-file.ts";
import { readStatement, statementTable, sumsByOwner } from "./charge-back.ts";
import { INVOICE_QUERY } from "./explain.page.ts";
import { invoiceNumbered } from "./explain-invoice.ts";

const PATH = "/invoices/statement";
const query = z.object({ ...INVOICE_QUERY, owner: optional(z.string().max(200)) });
type Query = z.output<typeof query>;

export function addStatements(web: Web): void {
  web.page(PATH, { query }, statementPage);
  web.file(`${PATH}.xlsx`, { query }, async ({ db, reply, query: wanted }) => {
    const invoice = await invoiceNumbered(db, wanted);
    const table = statementTable(invoice, await readStatement(db, invoice, wanted));
    const file = [invoice.number, wanted.owner ?? "owners"].join("-").replaceAll(/[^\w.-]+/g, "_");
    return reply
      .type("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")
      .header("content-disposition", `attachment; filename="${file}.xlsx"`)
      .send(await asWorkbook([{ sheet: "Statement", table }]));
  });
}

/** Lines of an owner with the same text are one row, so that a statement fits on one sheet. */
async function statementPage({ db, query: wanted }: Context<Query>): Promise<Page> {
  const { number, source, owner } = wanted;
  const invoice = await invoiceNumbered(db, wanted);
  const parts = await readStatement(db, invoice, wanted);
  const { currency, issuer, issuedOn } = invoice;
  const shown = (amount: bigint) => roundShown(amount, currency);
  const total = parts.reduce((sum, { amount }) => sum + amountOf(amount), 0n);
  const sums =
    owner === undefined
      ? sumsByOwner(parts).map((one) => ({
          first: html`<a href="${address(PATH, { number, source, owner: one.owner })}">${name(one.owner)}</a>`,
          second: one.costCenter,
          amount: one.amount,
        }))
      : [...Map.groupBy(parts, ({ text, costCenter }) => JSON.stringify([text, costCenter])).values()].map(
          (own) => ({
            first: name(own[0]?.text ?? ""),
            second: own[0]?.costCenter ?? "",
            amount: own.reduce((sum, { amount }) => sum + amountOf(amount), 0n),
          }),
        );
  return {
    title: `Invoice ${number} by owner`,
    about: html`${name(issuer)}${issuedOn !== null && `, ${issuedOn}`}`,
    ...(owner === undefined ? {} : { filters: owner }),
    actions: button(address(`${PATH}.xlsx`, { number, source, owner }), "Excel"),
    body: table({
      caption: "Statement",
      heads: [owner === undefined ? "Owner" : "Line", "Cost center", numberHead(`Amount, ${currency}`)],
      rows: sums.map(
        ({ first, second, amount }) =>
          html`<tr><th scope="row">${first}</th><td>${name(second)}</td><td class="number">${shown(amount)}</td></tr>`,
      ),
      foot: html`<tr><th scope="row" colspan="2">Total</th><td class="number">${shown(total)}</td></tr>`,
    }),
  };
}
