import { type Database, query } from "../../core/store/db/query.ts";

/** What an owner pays of a line. */
export interface ChargedPart {
  readonly owner: string;
  readonly costCenter: string;
  /** 0: the part of the total that no line has. */
  readonly lineNumber: number;
  readonly text: string;
  /** Exact decimal in whole units of the currency, such as cents. */
  readonly amount: string;
}

/** The parts of all owners are the invoice's total, by its newest match. */
export async function chargedParts(db: Database, invoiceId: number): Promise<ChargedPart[]> {
  return query<ChargedPart>(db)`
    select o.owner, o.cost_center as "costCenter", o.line_number as "lineNumber", o.line_text as text, trim_scale(o.amount)::text as amount
    from usage.invoice i
    join usage.source s using (source_id)
    join reporting_detail.fct_invoice_owner o on o.source_id = s.slug and o.issuer = i.issuer and o.invoice_number = i.number
    where i.invoice_id = ${invoiceId}
    order by o.line_number, o.owner collate "C", o.cost_center collate "C"
  `;
}
