import type { Amount } from "../../core/domain/usage/amount.ts";

export const INVOICE_STATUSES = ["open", "issued", "voided"] as const;
export type InvoiceStatus = (typeof INVOICE_STATUSES)[number];

/**
 * What a line charges. A `commitment` is bought in advance and a `drawdown` uses it up. An `adjustment` is anything else that is
 * neither usage nor a seat.
 */
export const LINE_KINDS = [
  "usage",
  "seat",
  "commitment",
  "drawdown",
  "credit",
  "discount",
  "tax",
  "adjustment",
] as const;
export type LineKind = (typeof LINE_KINDS)[number];

/** An invoice as it is written, before anything is compared with it. Days are UTC and ISO; an end is not included. */
export interface Invoice {
  readonly issuer: string;
  readonly number: string;
  readonly status: InvoiceStatus;
  readonly issuedOn: string | null;
  readonly dueOn: string | null;
  readonly terms: string | null;
  readonly account: string | null;
  readonly purchaseOrder: string | null;
  /** ISO 4217. */
  readonly currency: string;
  /** Number of the invoice that this one corrects. */
  readonly corrects: string | null;
  readonly lines: readonly InvoiceLine[];
  /** Before tax. Null: not written on it. */
  readonly subtotal: Amount | null;
  readonly total: Amount;
}

export interface InvoiceLine {
  /** The text that charges something, without its quantity and price. */
  readonly text: string;
  /** A sum row is shown, and never added to the lines that are parts of it. */
  readonly isSum: boolean;
  /** Position, from 0, of the sum row whose part this line is. */
  readonly partOf: number | null;
  readonly kind: LineKind;
  readonly quantity: Amount | null;
  readonly unit: string | null;
  readonly unitPrice: Amount | null;
  readonly amount: Amount;
  /** Both null: the line has no period of its own. */
  readonly periodStart: string | null;
  readonly periodEnd: string | null;
  /** The workspace's id or name as it is written. Null: the whole organization. */
  readonly workspace: string | null;
  /** Where the line is in the file, such as `page 1, row 12` or `line 7`. */
  readonly place: string;
  /** The row of the file as it was read. */
  readonly sourceText: string;
}
