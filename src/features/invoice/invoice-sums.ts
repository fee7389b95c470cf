import { type Amount, amountShown, centsShown } from "../../core/domain/usage/amount.ts";
import type { Draft } from "./draft.ts";
import type { Invoice, InvoiceLine } from "./invoice.ts";

/** What the lines come to. A part is counted in its sum. */
export function totalOf(lines: readonly InvoiceLine[]): Amount {
  return lines.reduce((sum, { partOf, amount }) => (partOf === null ? sum + amount : sum), 0n);
}

/** Sums that do not add up: of parts, of lines without tax, of all lines. Nothing is rounded. `written`: where the sums are. */
export function differencesOf(
  { lines, subtotal, total }: Invoice,
  written: Pick<Draft, "subtotal" | "total">,
): string[] {
  const named = (sum: "subtotal" | "total") => `${written[sum]?.place ?? "The file"}, ${sum}`;
  const ofParts = lines.flatMap((sum, at) => {
    if (!sum.isSum) return [];
    const parts = lines.filter(({ partOf }) => partOf === at);
    const what = `${sum.place}, ${JSON.stringify(sum.text)}`;
    const quantities = parts.flatMap(({ quantity }) => quantity ?? []);
    const areKnown = sum.quantity !== null && quantities.length === parts.length;
    return [
      ...sumDifference(what, sum.amount, added(parts.map(({ amount }) => amount))),
      ...(areKnown ? sumDifference(`${what}, quantity`, sum.quantity, added(quantities)) : []),
    ];
  });
  const untaxed = totalOf(lines.filter(({ kind }) => kind !== "tax"));
  return [
    ...ofParts,
    ...(subtotal === null ? [] : sumDifference(named("subtotal"), subtotal, untaxed)),
    ...sumDifference(named("total"), total, totalOf(lines)),
  ];
}

const CENT = 10n ** 8n;

/** `1,234.50`, and all digits of an amount that is not in whole cents. */
export function moneyShown(amount: Amount): string {
  return amount % CENT === 0n ? centsShown(amount) : amountShown(amount);
}

/** Empty if a written sum is what its parts come to. */
export function sumDifference(what: string, written: Amount, parts: Amount): string[] {
  if (written === parts) return [];
  return [
    `${what}: ${moneyShown(written)} is written, and its parts add up to ${moneyShown(parts)} (difference ${moneyShown(written - parts)})`,
  ];
}

function added(amounts: readonly Amount[]): Amount {
  return amounts.reduce((sum, amount) => sum + amount, 0n);
}
