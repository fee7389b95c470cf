import fc from "fast-check";
import { expect, test } from "vitest";
import { amountOf, amountText } from "../../../../src/core/domain/usage/amount.ts";
import {
  type ChargedLine,
  chargeBack,
  divisionOf,
  ledgerRows,
} from "../../../../src/features/invoice/charge-back.ts";
import { seed } from "../../../support/drawn.ts";

const CENT = 100_000_000n;

const anyWeights = fc.array(
  fc.record({
    owner: fc.constantFrom("search", "chat", "(unallocated)"),
    costCenter: fc.constantFrom("(none)", "CC-1"),
    weight: fc.bigInt(0n, 10n ** 20n),
  }),
  { maxLength: 5 },
);
const anyLine = fc.record({
  lineNumber: fc.nat(),
  text: fc.constant("line"),
  amount: fc.oneof(
    fc.bigInt(-(10n ** 16n), 10n ** 16n),
    fc.bigInt(-1000n, 1000n).map((cents) => cents * CENT),
  ),
  division: fc.constantFrom(
    ...["usage", "even", "finance=100", "search=33.33;chat=66.67"].map(
      (text) => divisionOf(text) as ChargedLine["division"],
    ),
  ),
  weights: fc.option(anyWeights),
});

test("the parts of all owners are the invoice's total to the cent, and debits equal credits", () => {
  fc.assert(
    fc.property(
      fc.array(anyLine, { maxLength: 12 }),
      anyWeights,
      fc.bigInt(-100n, 100n),
      (lines, shares, more) => {
        const sum = lines.reduce((all, { amount }) => all + amount, 0n);
        const total = (sum / CENT + more) * CENT;
        const parts = chargeBack(lines, { total, currency: "USD", shares });
        expect(parts.reduce((all, { amount }) => all + amount, 0n)).toBe(total);
        expect(parts.filter(({ amount }) => amount % CENT !== 0n)).toEqual([]);
        // No part is more than a cent away from its exact share.
        for (const line of new Set(parts.map((part) => part.line))) {
          const own = parts
            .filter((part) => part.line === line)
            .reduce((all, { amount }) => all + amount, 0n);
          const off = own - line.amount;
          expect(off < 0n ? -off : off).toBeLessThanOrEqual(CENT * 10n);
        }
        const accounts = new Map([
          ["*", "6000"],
          ["(payable)", "2000"],
        ]);
        const rows = ledgerRows(parts, { accounts, memo: "A-1" });
        expect(rows.reduce((all, { amount }) => all + amount, 0n)).toBe(0n);
        expect(rows.at(-1)).toMatchObject({ account: "2000", amount: -total });
      },
    ),
    { seed: seed(), numRuns: 500 },
  );
});

test("a line is divided by its usage, evenly, by the usage of all lines, or by fixed shares", () => {
  const payee = (owner: string, weight: bigint) => ({ owner, costCenter: `of ${owner}`, weight });
  const shares = [payee("chat", 1n), payee("search", 2n), payee("idle", 0n)];
  const line = (text: string, weights: ChargedLine["weights"]): ChargedLine => ({
    ...{ lineNumber: 1, text, amount: amountOf("9.01"), division: divisionOf(text) ?? "usage", weights },
  });
  const shown = (one: ChargedLine) =>
    chargeBack([one], { total: amountOf("9.01"), currency: "USD", shares }).map(
      ({ owner, costCenter, amount }) => `${owner} ${costCenter} ${amountText(amount)}`,
    );
  expect(shown(line("usage", [payee("chat", 3n), payee("chat", 1n), payee("search", 4n)]))).toEqual([
    ...["chat of chat 4.51", "search of search 4.5"],
  ]);
  expect(shown(line("usage", null))).toEqual(["chat of chat 3", "search of search 6.01"]);
  expect(shown(line("even", null))).toEqual(["chat of chat 4.51", "search of search 4.5"]);
  expect(shown(line("chat=25;finance=75", null))).toEqual(["chat of chat 2.25", "finance (none) 6.76"]);
  // Usage that nobody here has is nobody's, whatever the others use.
  expect(shown(line("usage", []))).toEqual(["(unallocated) (none) 9.01"]);
  for (const wrong of ["chat", "chat=50", "chat=50;search=60", "=100", "chat=0;search=100"])
    expect(divisionOf(wrong), wrong).toBe(undefined);
});
