import { counted } from "../../core/base/printable.ts";
import { type Amount, amountShown, amountText } from "../../core/domain/usage/amount.ts";
import { linesOf, tableOf, toTheRight } from "../../terminal/output.ts";
import type { InvoicePreview } from "./import-invoice.ts";
import type { Invoice, InvoiceLine } from "./invoice.ts";
import { moneyShown } from "./invoice-sums.ts";
import type { StoredInvoice } from "./invoices.store.ts";

/** Decimals are text in JSON. */
export function invoiceData<I extends Invoice>(invoice: I) {
  const { lines, subtotal, total, ...rest } = invoice;
  return {
    ...rest,
    subtotal: textOf(subtotal),
    total: amountText(total),
    lines: lines.map(({ quantity, unitPrice, amount, ...line }) => ({
      ...line,
      quantity: textOf(quantity),
      unitPrice: textOf(unitPrice),
      amount: amountText(amount),
    })),
  };
}

const textOf = (amount: Amount | null) => (amount === null ? null : amountText(amount));
const shownOf = (amount: Amount | null) => (amount === null ? "" : amountShown(amount));

export function previewData({ source, file, form, invoices }: InvoicePreview, stored: boolean) {
  return {
    source: source.source,
    file: file.name,
    form,
    stored,
    invoices: invoices.map(({ invoice, replaces: _, ...read }) => ({
      ...read,
      invoice: invoiceData(invoice),
    })),
  };
}

const STATES = {
  new: "It is new.",
  unchanged: "It is stored already, with the same figures.",
  changed: "This number is stored with other figures.",
};

export function describePreview({ form, invoices }: InvoicePreview): string {
  return invoices
    .map(({ invoice, fields, differences, notes, state }) =>
      linesOf(
        `${titleOf(invoice)}, read as ${form}. ${STATES[state]}`,
        tableOf(fields, { field: "field", read: "value", place: "place", "row of the file": "row" }),
        describeLines(invoice),
        notes,
        differences.map((one) => `It does not add up. ${one}.`),
      ),
    )
    .join("\n\n");
}

function titleOf({ number, issuer, total, currency, lines }: Invoice): string {
  return `Invoice ${number} of ${issuer}: ${moneyShown(total)} ${currency}, ${counted(lines.length, "line")}`;
}

function describeLines({ lines, subtotal, total }: Invoice): string {
  const right = (value: (line: InvoiceLine) => Amount | null) =>
    toTheRight(lines, (line) => shownOf(value(line)));
  return linesOf(
    tableOf(lines, {
      place: "place",
      kind: "kind",
      line: ({ text, partOf }) => (partOf === null ? text : `  ${text}`),
      workspace: lines.some(({ workspace }) => workspace !== null) && (({ workspace }) => workspace ?? ""),
      from: ({ periodStart }) => periodStart ?? "",
      "to (not included)": ({ periodEnd }) => periodEnd ?? "",
      quantity: right(({ quantity }) => quantity),
      price: right(({ unitPrice }) => unitPrice),
      amount: toTheRight(lines, ({ amount }) => moneyShown(amount)),
      "row of the file": "sourceText",
    }),
    `${subtotal === null ? "" : `Subtotal ${moneyShown(subtotal)}, `}total ${moneyShown(total)}. Indented lines are parts of the line above.`,
  );
}

export function describeStored(invoice: StoredInvoice): string {
  const { fileName, fileForm, fileDigest, importedAt, importedBy, replacedAt, acceptedDifference } = invoice;
  return linesOf(
    `${titleOf(invoice)}${replacedAt === null ? "" : ` (replaced ${replacedAt})`}`,
    tableOf(
      Object.entries({
        source: invoice.source,
        status: invoice.status,
        issued: invoice.issuedOn,
        due: invoice.dueOn,
        terms: invoice.terms,
        account: invoice.account,
        "purchase order": invoice.purchaseOrder,
        "corrects invoice": invoice.corrects,
        file: `${fileName} (${fileForm}), SHA-256 ${fileDigest}`,
        imported: `${importedAt} by ${importedBy}`,
        "difference accepted": acceptedDifference,
      }).flatMap(([name, value]) => (value === null ? [] : [{ name, value }])),
      { field: "name", value: "value" },
    ),
    describeLines(invoice),
  );
}
