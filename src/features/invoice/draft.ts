/** What the readers of all forms return: an invoice in the texts of its file. `finish-invoice.ts` reads these texts. */

export const FIELDS = [
  "issuer",
  "number",
  "status",
  "issued_on",
  "due_on",
  "terms",
  "account",
  "purchase_order",
  "currency",
  "corrects",
] as const;
export type Field = (typeof FIELDS)[number];

/** A text of a file. `row` is the row in which it is. */
export interface Written {
  readonly text: string;
  readonly place: string;
  readonly row: string;
}

export interface DraftLine {
  readonly place: string;
  readonly row: string;
  readonly text: string;
  readonly kind?: string | undefined;
  readonly quantity?: string | undefined;
  readonly unit?: string | undefined;
  readonly unitPrice?: string | undefined;
  readonly amount: string;
  /** A written period, or two days of which the end is not included. */
  readonly period?: string | { readonly start: string; readonly end: string } | undefined;
  readonly workspace?: string | undefined;
  /** A part of the last line above it that is not a part. */
  readonly isPart: boolean;
}

/** An amount that the lines from `from` up to `to` add up to, besides subtotal and total. */
interface PartialSum {
  readonly written: Written;
  readonly from: number;
  readonly to: number;
}

export interface Draft {
  readonly fields: Partial<Record<Field, Written>>;
  readonly lines: readonly DraftLine[];
  readonly subtotal?: Written | undefined;
  readonly total?: Written | undefined;
  readonly sums?: readonly PartialSum[];
  /** Codes and symbols of currencies that are not in a line's amount. */
  readonly marks?: readonly { readonly mark: string; readonly place: string }[];
  /** Period of lines that have none of their own. */
  readonly period?: Written | undefined;
  /** A credit note writes what it credits without a minus. */
  readonly isCreditNote?: boolean;
}

/** The texts of a file, which may hold several invoices. */
export interface Drafts {
  readonly drafts: readonly Draft[];
  /** Decimal sign of the form, or the one that such a file likely has: a number of the file overrides only a likely one. */
  readonly decimalSign?: { readonly sign: "." | ","; readonly isSure: boolean } | undefined;
}

/** `Tier 2 (> 10000)`, and what another invoice program calls it: `First 10,000`, `Next 90,000`. */
export const TIER = /^(?:tier\s*\d+\b|(?:first|next|over|above)\s+[\d.,]+)/i;
