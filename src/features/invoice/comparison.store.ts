import { type Database, query } from "../../core/store/db/query.ts";
import { maskedActor } from "../../core/store/work/operator-actions.ts";
import type { NamedCause, Unexplained } from "./explain.ts";
import type { FoundInvoice } from "./match.store.ts";
import type { LineState } from "./match.ts";
import type { WhyNot } from "./match-inputs.ts";
import { type Settlement, settlementOf } from "./settlements.store.ts";

/** The newest stored match of an invoice. Decimals are texts, and an end is not included. */
export interface Comparison {
  readonly invoice: FoundInvoice;
  readonly total: string;
  readonly bill: string;
  readonly difference: string;
  readonly remainder: string;
  readonly causes: readonly StoredCause[];
  readonly lineCounts: Readonly<Partial<Record<LineState, number>>>;
  /** Null: nobody has settled the invoice. */
  readonly settlement: Settlement | null;
}

export interface StoredCause {
  readonly cause: NamedCause["cause"] | "unexplained";
  /** What is unexplained. */
  readonly why: Unexplained["why"] | null;
  readonly amount: string;
  readonly sku: string | null;
  readonly periodStart: string | null;
  readonly periodEnd: string | null;
  readonly workspaceId: string | null;
  readonly workspaceName: string | null;
  readonly quantity: string | null;
  readonly lineNumber: number | null;
  readonly lineText: string | null;
  readonly days: NamedCause["days"];
  readonly isTolerated: boolean;
}

export interface StoredMatchLine {
  /** Null: only our bill has it. */
  readonly lineNumber: number | null;
  readonly text: string;
  readonly state: LineState;
  readonly why: WhyNot | null;
  readonly measure: string | null;
  readonly sku: string | null;
  readonly periodStart: string | null;
  readonly periodEnd: string | null;
  readonly workspaceId: string | null;
  readonly workspaceName: string | null;
  readonly quantity: string | null;
  readonly unitPrice: string | null;
  readonly amount: string | null;
  readonly quantityHere: string | null;
  readonly unitPriceHere: string | null;
  readonly costHere: string | null;
}

/** Undefined: the invoice was never compared. */
export async function readComparison(
  db: Database,
  invoice: FoundInvoice,
  { masked = false } = {},
): Promise<Comparison | undefined> {
  const { invoiceId } = invoice;
  const [found] = await query<Omit<Comparison, "invoice" | "causes" | "settlement"> & { matchId: number }>(
    db,
  )`
    select i.match_id as "matchId", trim_scale(i.total)::text as total, trim_scale(i.bill)::text as bill,
           trim_scale(i.total - i.bill)::text as difference, trim_scale(i.remainder)::text as remainder, (
             select coalesce(json_object_agg(state, lines), '{}')
             from (select state, count(*) as lines from usage.invoice_match_line l where l.match_id = i.match_id group by state) l
           ) as "lineCounts"
    from usage.compared_invoice i where i.invoice_id = ${invoiceId} and i.match_id is not null
  `;
  if (found === undefined) return undefined;
  const { matchId, ...amounts } = found;
  const causes = await query<StoredCause>(db)`
    select c.cause, c.why, trim_scale(c.amount)::text as amount, c.sku, c.period_start::text as "periodStart",
           c.period_end::text as "periodEnd", c.workspace as "workspaceId", n.name as "workspaceName",
           trim_scale(c.quantity)::text as quantity, c.line_number as "lineNumber", l.line_text as "lineText",
           case when c.cause = 'days_open'
             then json_build_object('notLoaded', c.days_not_loaded, 'notFinal', c.days_not_final) end as days,
           c.is_tolerated as "isTolerated"
    from usage.invoice_cause c
    left join usage.invoice_line l on l.invoice_id = ${invoiceId} and l.line_number = c.line_number
    left join usage.invoice_workspace n on n.source_id = ${invoice.sourceId} and n.workspace = c.workspace
    where c.match_id = ${matchId} order by c.place
  `;
  const settlement = await settlementOf(db, invoiceId);
  const settled = masked && settlement !== null ? { settledBy: maskedActor(settlement.settledBy) } : {};
  return { invoice, ...amounts, causes, settlement: settlement && { ...settlement, ...settled } };
}

export interface LineChoice {
  /** Without lines that agree. */
  readonly isOpen?: boolean;
  readonly limit?: number;
  readonly offset?: number;
}

export async function readMatchLines(
  db: Database,
  { invoiceId, sourceId }: FoundInvoice,
  { isOpen = false, limit = 1_000_000, offset = 0 }: LineChoice = {},
): Promise<StoredMatchLine[]> {
  return query<StoredMatchLine>(db)`
    select m.line_number as "lineNumber", coalesce(nullif(concat_ws(', ', s.line_text, l.line_text), ''), m.sku, '') as text, m.state, m.why,
           m.measure, m.sku, m.period_start::text as "periodStart", m.period_end::text as "periodEnd", m.workspace as "workspaceId",
           n.name as "workspaceName", trim_scale(l.quantity)::text as quantity, trim_scale(l.unit_price)::text as "unitPrice",
           trim_scale(l.amount)::text as amount, trim_scale(m.quantity_here)::text as "quantityHere",
           trim_scale(m.unit_price_here)::text as "unitPriceHere", trim_scale(m.cost_here)::text as "costHere"
    from (
      select m.* from usage.compared_invoice i join usage.invoice_match_line m using (match_id)
      where i.invoice_id = ${invoiceId} and not (${isOpen} and m.state = 'agrees')
      order by m.place limit ${limit} offset ${offset}
    ) m
    left join usage.invoice_line l on l.invoice_id = ${invoiceId} and l.line_number = m.line_number
    left join usage.invoice_line s on s.invoice_id = ${invoiceId} and s.line_number = l.part_of
    left join usage.invoice_workspace n on n.source_id = ${sourceId} and n.workspace = m.workspace
    order by m.place
  `;
}
