import { amountOf, amountShown } from "../../core/domain/usage/amount.ts";

/** A line of `reporting_detail.provider_statement_line`. No total contains it. */
export interface StatementLine {
  readonly kind: string;
  readonly name: string;
  readonly subject: string | null;
  readonly window: string | null;
  /** Exact decimal. Null: as the remark says. */
  readonly value: string | null;
  readonly unit: string;
  readonly remark: string | null;
  /** ISO day. */
  readonly takenOn: string;
  readonly endpoint: string;
  readonly doesNotSay: string;
}

export const ALSO_REPORTED = "What the platform also reports (not in this total)";

/** An organization may have thousands of policies. */
export const MOST_LINES = 20;
export function leftOut(lines: readonly StatementLine[]): string {
  return `${lines.length - MOST_LINES} more lines are in reporting_detail.provider_statement_line.`;
}

export function statementName({ name, window, subject }: StatementLine): string {
  return [name, window, subject].filter(Boolean).join(", ");
}

/** Uses the bill's form, in which a value has no more digits than a cost. */
function shown(value: string): string {
  return (value.split(".")[1] ?? "").length > 10 ? value : amountShown(amountOf(value));
}

export function statementValue({ value, unit, remark }: StatementLine): string {
  if (remark === "no limit") return remark;
  const amount = value === null ? "not known" : `${shown(value)} ${unit}`;
  return remark === null ? amount : `${amount} (${remark})`;
}
