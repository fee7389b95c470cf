import { UsageError } from "../../core/base/errors.ts";
import { type Amount, amountOf, amountText } from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import { type Cell, dayCell, decimalCell, type Table } from "../export/table-file.ts";
import { NO_COST_CENTER } from "../owners/owner.ts";
import { type ChargedPart, chargedParts } from "./charge-back.store.ts";
import type { FoundInvoice } from "./match.store.ts";

/** What one owner pays, or all of them. Errors: `invoice_not_issued`, `owner_unknown`. */
export async function readStatement(
  db: Database,
  { number, invoiceId, status }: FoundInvoice,
  { owner }: { owner?: string | undefined },
): Promise<ChargedPart[]> {
  if (status === "voided")
    throw new UsageError({
      code: "invoice_not_issued",
      message: `Invoice ${number} is voided, so nobody is charged for it.`,
      next: "Charge back the invoice that replaces it.",
    });
  const parts = await chargedParts(db, invoiceId);
  const own = parts.filter((part) => owner === undefined || part.owner === owner);
  if (own.length > 0 || owner === undefined) return own;
  throw new UsageError({
    code: "owner_unknown",
    message: `Owner ${owner} has no part of invoice ${number}.`,
    next: `Choose one of: ${[...new Set(parts.map((part) => part.owner))].join(", ")}.`,
  });
}

export interface OwnerSum {
  readonly owner: string;
  readonly costCenter: string;
  readonly amount: Amount;
}

export function sumsByOwner(parts: readonly ChargedPart[]): OwnerSum[] {
  const groups = Map.groupBy(parts, ({ owner, costCenter }) => JSON.stringify([owner, costCenter]));
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, [first, ...others]]) => {
      const { owner, costCenter, amount } = first as ChargedPart;
      return {
        owner,
        costCenter,
        amount: others.reduce((sum, one) => sum + amountOf(one.amount), amountOf(amount)),
      };
    });
}

export function statementTable(
  { number, issuer, issuedOn, currency }: FoundInvoice,
  parts: readonly ChargedPart[],
): Table {
  return {
    header: ["invoice", "issuer", "issued_on", "owner", "cost_center", "line", "text", "amount", "currency"],
    rows: parts.map(({ owner, costCenter, lineNumber, text, amount }): Cell[] => [
      ...[number, issuer, issuedOn === null ? null : dayCell(issuedOn), owner, costCenter],
      ...[lineNumber === 0 ? null : lineNumber, text, decimalCell(amount), currency],
    ]),
  };
}

/** The account that the invoice is paid from. */
export const PAYABLE = "(payable)";

/** A row for each owner and cost center, and one for what is owed. Debits equal credits. `accounts`: by owner; `*` is for all others. */
export function ledgerTable(
  { number, issuer, issuedOn }: FoundInvoice,
  parts: readonly ChargedPart[],
  accounts: ReadonlyMap<string, string>,
): Table {
  const memo = `${issuer} ${number}`;
  const accountOf = (owner: string) => accounts.get(owner) ?? accounts.get("*") ?? "";
  const debits = sumsByOwner(parts)
    .map(({ owner, costCenter, amount }) => ({
      ...{ account: accountOf(owner), amount, memo: `${memo}, ${owner}` },
      costCenter: costCenter === NO_COST_CENTER ? null : costCenter,
    }))
    .filter(({ amount }) => amount !== 0n);
  const owed = debits.reduce((sum, { amount }) => sum + amount, 0n);
  const rows = [...debits, { account: accountOf(PAYABLE), costCenter: null, amount: -owed, memo }];
  const cell = (amount: Amount) => (amount > 0n ? decimalCell(amountText(amount)) : null);
  return {
    header: ["date", "account", "debit", "credit", "cost_center", "memo", "id"],
    rows: rows.map(({ account, amount, costCenter, memo: text }, at): Cell[] => [
      ...[issuedOn === null ? null : dayCell(issuedOn), account, cell(amount), cell(-amount)],
      ...[costCenter, text, `${number}-${at + 1}`],
    ]),
  };
}
