import { amountCut, amountText } from "../../core/domain/usage/amount.ts";
import { change, type Database, query, queryOne } from "../../core/store/db/query.ts";
import type { Invoice, InvoiceLine } from "./invoice.ts";
import type { FileForm } from "./read-file.ts";

export interface StoredInvoice extends Invoice {
  readonly invoiceId: number;
  readonly source: string;
  readonly fileName: string;
  readonly fileForm: FileForm;
  /** SHA-256, in hexadecimal. */
  readonly fileDigest: string;
  readonly acceptedDifference: string | null;
  readonly importedAt: string;
  readonly importedBy: string;
  /** Null: the version that counts. */
  readonly replacedAt: string | null;
}

export interface NewInvoice {
  readonly sourceId: number;
  readonly invoice: Invoice;
  readonly file: { readonly name: string; readonly form: FileForm; readonly bytes: Uint8Array };
  readonly acceptedDifference: string | null;
  readonly by: string;
}

type Decimals = { readonly [K in "subtotal" | "total"]: string | null };
type LineRow = Omit<InvoiceLine, "quantity" | "unitPrice" | "amount"> & {
  readonly [K in "quantity" | "unitPrice" | "amount"]: string | null;
};
type InvoiceRow = Omit<StoredInvoice, "lines" | "subtotal" | "total"> &
  Decimals & { readonly lines: readonly LineRow[] };

interface Selection {
  readonly invoiceId?: number;
  readonly source?: string | undefined;
  readonly number?: string;
  readonly withReplaced?: boolean;
}

/** Reads whole invoices, the newest first. Without `withReplaced`: only the versions that count. */
export async function readInvoices(db: Database, wanted: Selection = {}): Promise<StoredInvoice[]> {
  const { invoiceId = null, source = null, number = null, withReplaced = false } = wanted;
  const rows = await query<InvoiceRow>(db)`
    select i.invoice_id as "invoiceId", s.slug as source, i.issuer, i.number, i.status,
           i.issued_on::text as "issuedOn", i.due_on::text as "dueOn", i.terms, i.account,
           i.purchase_order as "purchaseOrder", i.currency, i.corrects_number as corrects,
           trim_scale(i.subtotal)::text as subtotal, trim_scale(i.total)::text as total, i.file_name as "fileName",
           i.file_form as "fileForm", encode(i.file_digest, 'hex') as "fileDigest",
           i.accepted_difference as "acceptedDifference", i.imported_by as "importedBy",
           to_char(i.imported_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "importedAt",
           to_char(i.replaced_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "replacedAt",
           (select coalesce(json_agg(json_build_object(
              'text', l.line_text, 'isSum', l.is_sum, 'partOf', l.part_of - 1, 'kind', l.kind,
              'quantity', trim_scale(l.quantity)::text, 'unit', l.unit, 'unitPrice', trim_scale(l.unit_price)::text,
              'amount', trim_scale(l.amount)::text, 'periodStart', l.period_start, 'periodEnd', l.period_end,
              'workspace', l.workspace, 'place', l.place, 'sourceText', l.source_text) order by l.line_number), '[]')
            from usage.invoice_line l where l.invoice_id = i.invoice_id) as lines
    from usage.invoice i join usage.source s using (source_id)
    where (${invoiceId}::integer is null or i.invoice_id = ${invoiceId})
      and (${source}::text is null or s.slug = ${source}) and (${number}::text is null or i.number = ${number})
      and (${withReplaced} or i.replaced_at is null)
    order by i.issued_on desc nulls last, s.slug, i.issuer, i.number, i.invoice_id desc
  `;
  return rows.map(({ lines, subtotal, total, ...row }) => ({
    ...row,
    subtotal: exact(subtotal),
    total: amountCut(total),
    lines: lines.map((line) => ({
      ...line,
      quantity: exact(line.quantity),
      unitPrice: exact(line.unitPrice),
      amount: amountCut(line.amount),
    })),
  }));
}

const exact = (text: string | null) => (text === null ? null : amountCut(text));

/** The caller holds the lock of the source. */
export async function addInvoice(db: Database, added: NewInvoice): Promise<number> {
  const { sourceId, invoice, file, acceptedDifference, by } = added;
  const given = JSON.stringify(invoice, (_, value) =>
    typeof value === "bigint" ? amountText(value) : value,
  );
  const { invoiceId } = await queryOne<{ invoiceId: number }>(db)`
    with given as (select ${given}::jsonb as i), added as (
      insert into usage.invoice (
        source_id, issuer, number, status, issued_on, due_on, terms, account, purchase_order, currency, corrects_number,
        subtotal, total, file_name, file_form, file, file_digest, accepted_difference, imported_by
      )
      select ${sourceId}, i ->> 'issuer', i ->> 'number', i ->> 'status', (i ->> 'issuedOn')::date, (i ->> 'dueOn')::date,
             i ->> 'terms', i ->> 'account', i ->> 'purchaseOrder', i ->> 'currency', i ->> 'corrects',
             (i ->> 'subtotal')::numeric, (i ->> 'total')::numeric, ${file.name}, ${file.form}, ${file.bytes}::bytea,
             sha256(${file.bytes}::bytea), ${acceptedDifference}, ${by}
      from given
      returning invoice_id
    ), lines as (
      insert into usage.invoice_line (
        invoice_id, line_number, line_text, is_sum, part_of, kind, quantity, unit, unit_price, amount, period_start,
        period_end, workspace, place, source_text
      )
      select invoice_id, n, l ->> 'text', (l ->> 'isSum')::boolean, (l ->> 'partOf')::integer + 1, l ->> 'kind',
             (l ->> 'quantity')::numeric, l ->> 'unit', (l ->> 'unitPrice')::numeric, (l ->> 'amount')::numeric,
             (l ->> 'periodStart')::date, (l ->> 'periodEnd')::date, l ->> 'workspace', l ->> 'place', l ->> 'sourceText'
      from added, given, jsonb_array_elements(i -> 'lines') with ordinality as lines (l, n)
    )
    select invoice_id as "invoiceId" from added
  `;
  return invoiceId;
}

/** The version stays as history. */
export async function replaceInvoice(db: Database, invoiceId: number): Promise<void> {
  await change(db)`update usage.invoice set replaced_at = clock_timestamp() where invoice_id = ${invoiceId}`;
}

export interface InvoiceSource {
  readonly sourceId: number;
  readonly source: string;
  readonly organizationId: string | null;
  readonly organizationName: string | null;
  /** Issuer that the configuration names for FOCUS. */
  readonly issuer: string | null;
  readonly workspaces: readonly { readonly id: string; readonly name: string | null }[];
}

export async function invoiceSources(db: Database): Promise<InvoiceSource[]> {
  return query<InvoiceSource>(db)`
    select s.source_id as "sourceId", s.slug as source, s.organization_id as "organizationId",
           s.organization_name as "organizationName", s.invoice_issuer_name as issuer,
           (select coalesce(json_agg(json_build_object('id', w.workspace_id, 'name', w.workspace_name) order by 1), '[]')
            from reporting.dim_workspace w where w.source_id = s.slug) as workspaces
    from usage.source s order by s.slug
  `;
}
