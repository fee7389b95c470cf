import { type Amount, roundedParts } from "../../core/domain/usage/amount.ts";
import { NO_COST_CENTER, UNALLOCATED } from "../owners/owner.ts";

/** How a line is divided: by the owners' share of usage, evenly, or by fixed shares (one owner has all of it). */
export type Division = "usage" | "even" | readonly { readonly owner: string; readonly share: bigint }[];

interface Payee {
  readonly owner: string;
  readonly costCenter: string;
}

/** The usage of an owner that a line charges. */
export interface Weight extends Payee {
  readonly weight: bigint;
}

export interface ChargedLine {
  /** Null: the part of the total that no line has. */
  readonly lineNumber: number | null;
  readonly text: string;
  readonly amount: Amount;
  readonly division: Division;
  /** Who had the usage that the line charges. Empty: nobody here had it. Null: the line charges no usage. */
  readonly weights: readonly Weight[] | null;
}

export interface ChargedPart extends Payee {
  readonly line: ChargedLine;
  /** In whole units of the currency, such as cents. */
  readonly amount: Amount;
}

/** `usage`, `even`, or shares such as `finance=100` and `search=60;chat=40`, in percent. Undefined: it is none of these. */
export function divisionOf(text: string): Division | undefined {
  if (text === "" || text === "usage") return "usage";
  if (text === "even") return "even";
  const shares = text.split(";").map((part) => {
    const [, owner = "", percent = "", fraction = ""] =
      /^\s*(.+?)\s*=\s*(\d{1,3})(?:\.(\d{1,2}))?\s*$/.exec(part) ?? [];
    return { owner, share: BigInt(percent + fraction.padEnd(2, "0") || 0) };
  });
  const isWhole = shares.reduce((sum, { share }) => sum + share, 0n) === 10_000n;
  return isWhole && shares.every(({ owner, share }) => owner !== "" && share > 0n) ? shares : undefined;
}

/**
 * Divides the lines of an invoice by owners. All parts together are the total, to the smallest unit of the currency. A line with
 * usage is divided by that usage unless a rule says otherwise. `shares`: the usage of the whole period, for other lines.
 */
export function chargeBack(
  lines: readonly ChargedLine[],
  { total, currency, shares }: { total: Amount; currency: string; shares: readonly Weight[] },
): ChargedPart[] {
  const payees = sumOfPayees(shares).filter(({ weight }) => weight > 0n);
  const centers = new Map(payees.map(({ owner, costCenter }) => [owner, costCenter]));
  const charged = lines.reduce((sum, { amount }) => sum + amount, 0n);
  const rest: ChargedLine = {
    ...{ lineNumber: null, text: "Total less all lines", amount: total - charged },
    ...{ division: "usage", weights: null },
  };
  const parts = [...lines, rest].flatMap((line) => {
    const weights = weightsOf(line);
    const exact = shared(
      line.amount,
      weights.map(({ weight }) => weight),
    );
    return weights.map(({ owner, costCenter }, at) => ({
      line,
      owner,
      costCenter,
      amount: exact[at] as Amount,
    }));
  });
  const rounded = roundedParts(
    currency,
    parts.map(({ amount }) => amount),
    total,
  );
  return parts
    .map((part, at) => ({ ...part, amount: rounded[at] as Amount }))
    .filter(({ amount }) => amount !== 0n);

  function weightsOf({ division, weights }: ChargedLine): readonly Weight[] {
    if (typeof division === "object")
      return division.map(({ owner, share }) => ({
        ...{ owner, costCenter: centers.get(owner) ?? NO_COST_CENTER, weight: share },
      }));
    const own = weights === null || division === "even" ? payees : sumOfPayees(weights);
    const used = own.filter(({ weight }) => weight > 0n);
    // Usage of a workspace that nobody here reads belongs to no owner.
    if (used.length === 0) return [{ owner: UNALLOCATED, costCenter: NO_COST_CENTER, weight: 1n }];
    return division === "even" ? used.map((one) => ({ ...one, weight: 1n })) : used;
  }
}

/** Divides an amount by weights exactly: the digits that are left go to the first ones. */
function shared(amount: Amount, weights: readonly bigint[]): Amount[] {
  const whole = weights.reduce((sum, weight) => sum + weight, 0n);
  let [before, given] = [0n, 0n];
  return weights.map((weight) => {
    before += weight;
    const part = (amount * before) / whole - given;
    given += part;
    return part;
  });
}

function sumOfPayees(weights: readonly Weight[]): Weight[] {
  const sums = new Map<string, Weight>();
  for (const one of weights) {
    const key = JSON.stringify([one.owner, one.costCenter]);
    sums.set(key, { ...one, weight: one.weight + (sums.get(key)?.weight ?? 0n) });
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, weight]) => weight);
}

export interface LedgerRow {
  readonly account: string;
  readonly costCenter: string | null;
  /** Positive: a debit. Negative: a credit. */
  readonly amount: Amount;
  readonly memo: string;
}

/** Accounts by owner; `*` is for all others, `(payable)` is what the invoice is owed from. */
export const PAYABLE = "(payable)";

/** One row for each owner and cost center, and one for what is owed. Debits equal credits. */
export function ledgerRows(
  parts: readonly ChargedPart[],
  { accounts, memo }: { accounts: ReadonlyMap<string, string>; memo: string },
): LedgerRow[] {
  const accountOf = (owner: string) => accounts.get(owner) ?? accounts.get("*") ?? "";
  const sums = Map.groupBy(parts, ({ owner, costCenter }) => JSON.stringify([owner, costCenter]));
  const debits = [...sums.values()].map((own): LedgerRow => {
    const [{ owner, costCenter }] = own as [ChargedPart];
    const amount = own.reduce((sum, part) => sum + part.amount, 0n);
    return {
      account: accountOf(owner),
      costCenter: costCenter === NO_COST_CENTER ? null : costCenter,
      amount,
      memo: `${memo}, ${owner}`,
    };
  });
  const owed = debits.reduce((sum, { amount }) => sum + amount, 0n);
  return [
    ...debits.filter(({ amount }) => amount !== 0n),
    { account: accounts.get(PAYABLE) ?? "", costCenter: null, amount: -owed, memo },
  ];
}
