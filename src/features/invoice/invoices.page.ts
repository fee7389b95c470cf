import { z } from "zod";
import { EtlError } from "../../core/base/errors.ts";
import { recordAction } from "../../core/store/work/operator-actions.ts";
import type { Page } from "../../web/layout.ts";
import {
  address,
  card,
  choice,
  type Html,
  hidden,
  html,
  name,
  notice,
  numberHead,
  optional,
  refusal,
  sourceField,
  table,
} from "../../web/parts.ts";
import type { Context, Web } from "../../web/routes.ts";
import { csvCell } from "../export/table-file.ts";
import { type InvoicePreview, importInvoices, previewInvoices } from "./import-invoice.ts";
import type { Invoice } from "./invoice.ts";
import { moneyShown } from "./invoice-sums.ts";
import { listInvoices } from "./invoices.store.ts";
import { mappingOf } from "./read-file.ts";
import { DATE_ORDERS } from "./written-date.ts";

const FORM = "/invoices/new";
/** Rows of a preview. The file has the others too, and all of them are stored. */
const ROWS_SHOWN = 300;

/** Columns of a line that is typed. */
const TYPED = [
  "text",
  "workspace",
  "period_start",
  "period_end",
  "quantity",
  "unit_price",
  "amount",
] as const;
const FIELDS_ASKED = ["issuer", "number", "currency", "issued_on"] as const;

const text = z.string().max(200).default("");
const REQUESTED = z.object({
  source: text,
  /** A chosen file, or the shown one again, in base64. */
  upload: z.object({ name: z.string().max(500), content: z.string() }).optional(),
  file_name: z.string().max(500).default(""),
  content: z.string().default(""),
  pasted: z.string().max(1_000_000).default(""),
  issuer: text,
  number: text,
  currency: text,
  issued_on: text,
  date_order: z.enum(["", ...DATE_ORDERS]).default(""),
  decimal_sign: z.enum(["", ".", ","]).default(""),
  /** YAML: names of the columns of another file. */
  mapping: z.string().max(10_000).default(""),
  accept_account: z.literal(["", "yes"]).default(""),
  ...Object.fromEntries(TYPED.map((column) => [column, text])),
  /** Adds the typed line to the table. */
  add: z.literal("yes").optional(),
  accept_difference: text,
  replace: z.literal("yes").optional(),
  confirmed: z.literal("yes").optional(),
});
type Requested = z.output<typeof REQUESTED> & Readonly<Partial<Record<(typeof TYPED)[number], string>>>;
type Of = Context & { readonly body?: Requested };

export function addInvoices(web: Web): void {
  web.page("/invoices", { query: z.object({ source: optional(z.string().max(63)) }) }, listPage);
  web.page(FORM, {}, async (context) => newPage(context, REQUESTED.parse({})));
  web.action(FORM, { body: REQUESTED }, importPage);
}

async function listPage({ db, isOperator, query }: Context<{ source?: string | undefined }>): Promise<Page> {
  const invoices = await listInvoices(db, query.source);
  const rows = invoices.map((one) =>
    card(
      html`<a href="${address("/invoices/explain", { number: one.number, source: one.source })}">${name(one.number)}</a>`,
      [
        ["Source", one.source],
        ["Issuer", name(one.issuer)],
        ["Status", one.status],
        ["Issued", one.issuedOn ?? ""],
        ["Total", `${moneyShown(one.total)} ${one.currency}`, "number"],
      ],
    ),
  );
  const heads = ["Invoice", "Source", "Issuer", "Status", "Issued", numberHead("Total")];
  return {
    title: "Invoices",
    body: html`${isOperator && html`<p><a class="button" href="${FORM}">Import an invoice</a></p>`}${
      rows.length === 0
        ? html`<p>No invoice is stored.</p>`
        : table({ kind: "cards", caption: "Invoices", heads, rows })
    }`,
  };
}

async function importPage(
  context: Of & { readonly body: Requested },
): Promise<Page | { readonly redirect: string }> {
  const { body, store, db, actor } = context;
  if (body.add !== undefined) return newPage(context, withLine(body));
  const file = fileOf(body);
  if (file === undefined)
    return newPage(context, body, notice("warn", "Choose a file, or paste a table."), 400);
  const fields = Object.fromEntries(
    FIELDS_ASKED.flatMap((field) => (body[field] === "" ? [] : [[field, body[field]]])),
  );
  try {
    const preview = await previewInvoices(db, file, {
      source: body.source || undefined,
      fields,
      acceptAccount: body.accept_account === "yes",
      ...(body.mapping.trim() === "" ? {} : { mapping: mappingOf("The mapping", body.mapping) }),
      dateOrder: body.date_order || undefined,
      decimalSign: body.decimal_sign || undefined,
    });
    const options = { replace: body.replace === "yes", acceptDifference: body.accept_difference };
    if (body.confirmed === undefined) return previewPage(context, preview, body);
    try {
      await importInvoices(store, preview, { ...options, by: actor });
    } catch (error) {
      if (!(error instanceof EtlError)) throw error;
      await recordAction(store.db, actor, {
        sourceId: preview.source.sourceId,
        action: "invoice.import",
        outcome: "refused",
        detail: `${file.name}: ${error.message}`,
      });
      return { ...previewPage(context, preview, body, refusal(error)), status: 409 };
    }
    return { redirect: "/invoices" };
  } catch (error) {
    if (!(error instanceof EtlError)) throw error;
    return newPage(context, body, refusal(error), 400);
  }
}

/** A typed line is a row of a table with our columns. */
function withLine(body: Requested): Requested {
  const table = body.pasted.trim() || TYPED.join(",");
  const row = TYPED.map((column) => csvCell(body[column] || null)).join(",");
  return { ...body, ...Object.fromEntries(TYPED.map((column) => [column, ""])), pasted: `${table}\n${row}` };
}

function fileOf({
  upload,
  file_name,
  content,
  pasted,
}: Requested): { name: string; bytes: Uint8Array } | undefined {
  if (upload !== undefined && upload.content !== "")
    return { name: upload.name, bytes: Buffer.from(upload.content, "base64") };
  if (content !== "") return { name: file_name, bytes: Buffer.from(content, "base64") };
  return pasted.trim() === "" ? undefined : { name: "pasted table", bytes: Buffer.from(pasted) };
}

function newPage(
  { config, isOperator, csrf }: Of,
  requested: Requested,
  said: Html = html``,
  status = 200,
): Page {
  if (!isOperator)
    return { title: "Import an invoice", body: html`<p>An operator can import it.</p>`, status: 403 };
  const slugs = config.sources.map(({ slug }) => slug);
  const input = (label: string, field: (typeof FIELDS_ASKED)[number] | (typeof TYPED)[number]) =>
    html`<label>${label} <input name="${field}" value="${requested[field] ?? ""}" maxlength="200"></label>`;
  const body = html`${said}<form method="post" action="${FORM}" enctype="multipart/form-data" class="ask">
    ${hidden({ _csrf: csrf() })}
    <div class="row">${sourceField(slugs, requested.source || slugs[0])}
      <label>File (PDF, XLSX, CSV, JSON, FOCUS) <input type="file" name="upload"></label></div>
    <label>Or a table: paste it, or type it with | between cells
      <textarea name="pasted" rows="10" maxlength="1000000">${requested.pasted}</textarea></label>
    <fieldset><legend>A line, typed</legend><div class="row">
      ${input("Text", "text")} ${input("Workspace", "workspace")} ${input("From", "period_start")} ${input("To (not included)", "period_end")}
      ${input("Quantity", "quantity")} ${input("Unit price", "unit_price")} ${input("Amount", "amount")}
      <button name="add" value="yes">Add the line to the table</button></div></fieldset>
    <fieldset><legend>Only what the file does not say</legend><div class="row">
      ${input("Issuer", "issuer")} ${input("Number", "number")} ${input("Currency", "currency")} ${input("Issued", "issued_on")}
      ${choice("Order of dates", "date_order", ["", ...DATE_ORDERS], requested.date_order)}
      ${choice("Decimal sign", "decimal_sign", ["", ".", ","], requested.decimal_sign)}</div>
      <label>Columns of another file (<code>amount: Net amount</code>)
        <textarea name="mapping" rows="3" maxlength="10000">${requested.mapping}</textarea></label>
      <label><input type="checkbox" name="accept_account" value="yes"> Accept an account that earlier invoices do not have</label></fieldset>
    <button>Read it</button></form>`;
  return { title: "Import an invoice", body, status };
}

function previewPage({ csrf }: Of, preview: InvoicePreview, requested: Requested, said: Html = html``): Page {
  const { file, invoices, source } = preview;
  const isNew = invoices.some(({ state }) => state !== "unchanged");
  const differs = invoices.some(({ differences }) => differences.length > 0);
  const { issuer, number, currency, issued_on, date_order, decimal_sign, mapping, accept_account } =
    requested;
  const again = { issuer, number, currency, issued_on, date_order, decimal_sign, mapping, accept_account };
  const shown = hidden({
    _csrf: csrf(),
    ...again,
    source: source.source,
    file_name: file.name,
    content: Buffer.from(file.bytes).toString("base64"),
    confirmed: "yes",
  });
  const form = html`<form method="post" action="${FORM}" enctype="multipart/form-data" class="ask">${shown}
    ${differs && html`<label>Why the difference is accepted <input name="accept_difference" maxlength="200"></label>`}
    ${invoices.some(({ state }) => state === "changed") && html`<label><input type="checkbox" name="replace" value="yes"> Replace the stored invoice</label>`}
    <button>Store it</button></form>`;
  return {
    title: "Compare with the file",
    body: html`${said}${invoices.map(
      ({ invoice, fields, differences, notes }) => html`<h2>${name(invoice.number)}</h2>
      ${table({
        kind: "cards",
        caption: "Fields",
        heads: ["Field", "Read", "Place", "Row of the file"],
        rows: fields.map(({ field, value, place, row }) =>
          card(field, [
            ["Read", name(value)],
            ["Place", place],
            ["Row of the file", name(row)],
          ]),
        ),
      })}${lineTable(invoice)}
      ${[...notes, ...differences].map((one) => notice("warn", html`<p>${one}</p>`))}`,
    )}${isNew ? form : notice("info", "It is stored already, with the same figures.")}<p><a href="${FORM}">Import another file</a></p>`,
  };
}

function lineTable({ lines, total, currency }: Invoice): Html {
  const hiddenRows = lines.length - ROWS_SHOWN;
  return html`${table({
    kind: "cards",
    caption: "Lines. A part is not added to its sum.",
    heads: [
      "Line",
      "Kind",
      "Period",
      "Workspace",
      numberHead("Quantity"),
      numberHead("Price"),
      numberHead("Amount"),
      "Place",
      "Row of the file",
    ],
    rows: lines.slice(0, ROWS_SHOWN).map((line) =>
      card(name(line.partOf === null ? line.text : `Part: ${line.text}`), [
        ["Kind", line.kind],
        [
          "Period",
          line.periodStart === null ? "" : `${line.periodStart} to ${line.periodEnd} (not included)`,
        ],
        ["Workspace", line.workspace === null ? "" : name(line.workspace)],
        ["Quantity", line.quantity === null ? "" : moneyShown(line.quantity), "number"],
        ["Price", line.unitPrice === null ? "" : moneyShown(line.unitPrice), "number"],
        ["Amount", moneyShown(line.amount), "number"],
        ["Place", line.place],
        ["Row of the file", name(line.sourceText)],
      ]),
    ),
    foot: html`<tr><th scope="row" colspan="6">Total, ${currency}</th><td class="number">${moneyShown(total)}</td><td colspan="2"></td></tr>`,
  })}${hiddenRows > 0 && html`<p>${hiddenRows} more lines.</p>`}`;
}
