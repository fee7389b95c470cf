import { sql } from "kysely";
import { amountCut, amountText } from "../../core/domain/usage/amount.ts";
import { iso } from "../../core/store/db/expressions.ts";
import { change, type Database, query, queryOne } from "../../core/store/db/query.ts";
import type { Invoice } from "./invoice.ts";
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

export type ListedInvoice = Omit<StoredInvoice, "lines"> & { readonly lines: number };

/** An invoice without its lines. */
const ABOUT = sql`
  i.invoice_id as "invoiceId", s.slug as source, i.issuer, i.number, i.status,
  i.issued_on::text as "issuedOn", i.due_on::text as "dueOn", i.terms, i.account,
  i.purchase_order as "purchaseOrder", i.currency, i.corrects_number as corrects,
  trim_scale(i.subtotal)::text as subtotal, trim_scale(i.total)::text as total, i.file_name as "fileName",
  i.file_form as "fileForm", encode(i.file_digest, 'hex') as "fileDigest",
  i.accepted_difference as "acceptedDifference", i.imported_by as "importedBy",
  ${iso("i.imported_at")} as "importedAt", ${iso("i.replaced_at")} as "replacedAt"
`;
const ORDER = sql`order by i.issued_on desc nulls last, s.slug, i.issuer, i.number, i.invoice_id desc`;

/** Current versions, the newest first. */
export async function listInvoices(db: Database, source: string | null = null): Promise<ListedInvoice[]> {
  const rows = await query<ListedInvoice>(db)`
    select ${ABOUT}, (select count(*)::integer from usage.invoice_line l where l.invoice_id = i.invoice_id) as lines
    from usage.invoice i join usage.source s using (source_id)
    where i.replaced_at is null and (${source}::text is null or s.slug = ${source}) ${ORDER}
  `;
  return rows.map(withAmounts);
}

interface Selection {
  readonly source?: string | undefined;
  readonly number?: string;
  readonly withReplaced?: boolean;
}

/** Reads whole invoices, the newest first. Without `withReplaced`: only the versions that count. */
export async function readInvoices(db: Database, wanted: Selection = {}): Promise<StoredInvoice[]> {
  const { source = null, number = null, withReplaced = false } = wanted;
  const rows = await query<StoredInvoice>(db)`
    select ${ABOUT},
           (select coalesce(json_agg(json_build_object(
              'text', l.line_text, 'isSum', l.is_sum, 'partOf', l.part_of - 1, 'kind', l.kind,
              'quantity', trim_scale(l.quantity)::text, 'unit', l.unit, 'unitPrice', trim_scale(l.unit_price)::text,
              'amount', trim_scale(l.amount)::text, 'periodStart', l.period_start, 'periodEnd', l.period_end,
              'workspace', l.workspace, 'place', l.place, 'sourceText', l.source_text) order by l.line_number), '[]')
            from usage.invoice_line l where l.invoice_id = i.invoice_id) as lines
    from usage.invoice i join usage.source s using (source_id)
    where (${source}::text is null or s.slug = ${source}) and (${number}::text is null or i.number = ${number})
      and (${withReplaced} or i.replaced_at is null) ${ORDER}
  `;
  return rows.map((row) => ({ ...withAmounts(row), lines: row.lines.map(withAmounts) }));
}

/** Postgres returns decimals as texts. */
function withAmounts<Row extends object>(row: Row): Row {
  const amounts = ["subtotal", "total", "quantity", "unitPrice", "amount"].flatMap((key) => {
    const text = row[key as keyof Row];
    return typeof text === "string" ? [[key, amountCut(text)]] : [];
  });
  return { ...row, ...Object.fromEntries(amounts) };
}

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
