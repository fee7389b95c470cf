import fc from "fast-check";
import { expect, test } from "vitest";
import { amountOf, minorDigits } from "../../src/core/domain/usage/amount.ts";
import { createMonths, createPrices } from "../support/charges.ts";
import { seed, times } from "../support/drawn.ts";
import { setOwners } from "../support/owners.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { insertInvoice } from "../support/stored-invoices.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const UNREAD = "0000000d-0000-4000-8000-000000000001";

/** In thousandths: 100 of the first workspace, halved, and 25 of the other, all of March. */
const COSTS: Record<string, Record<string, bigint>> = {
  [WORKSPACE]: { search: 50n, chat: 50n },
  [OTHER]: { chat: 25n },
  "": { search: 50n, chat: 75n },
  [UNREAD]: {},
};

const DIVISIONS = [null, "usage", "even", "finance=100", "search=33.33; chat=66.67"] as const;

interface Line {
  readonly amount: bigint;
  readonly workspace: string | null;
  readonly divide: (typeof DIVISIONS)[number];
}

/** Shares of a line, by arithmetic of this test. Undefined workspace: it charges no usage. */
function sharesOf({ workspace, divide }: Line): Record<string, bigint> {
  if (divide === "even") return { search: 1n, chat: 1n };
  if (divide === "finance=100") return { finance: 1n };
  if (divide === "search=33.33; chat=66.67") return { search: 3333n, chat: 6667n };
  const shares = COSTS[workspace ?? ""] ?? {};
  return Object.keys(shares).length === 0 ? { "(unallocated)": 1n } : shares;
}

test("the parts of all owners are any invoice's total to the cent, and each is its share of the line", async () => {
  const bench = await setupSource();
  const client = await connectPlain(bench.url);
  await createMonths(bench, { [WORKSPACE]: { 0: 20 }, [OTHER]: { 1: 5 } });
  await createPrices(bench.store, [{ unitPrice: "0.005" }]);
  await setOwners(
    bench.store,
    `rules:
  - { workspace: ${WORKSPACE}, shares: [{ owner: search, share: 0.5 }, { owner: chat, share: 0.5 }] }
  - { workspace: ${OTHER}, owner: chat }`,
  );
  const line: fc.Arbitrary<Line> = fc.record({
    amount: fc.oneof(
      fc.bigInt(-(10n ** 16n), 10n ** 16n),
      fc.bigInt(-1000n, 1000n).map((cents) => cents * 100_000_000n),
    ),
    workspace: fc.constantFrom(null, WORKSPACE, OTHER, UNREAD, ""),
    divide: fc.constantFrom(...DIVISIONS),
  });
  const invoices = fc.sample(
    fc.record({
      lines: fc.array(line, { minLength: 1, maxLength: 8 }),
      currency: fc.constantFrom("USD", "JPY", "KWD"),
      more: fc.bigInt(-100n, 100n),
    }),
    { seed: seed(), numRuns: times(40) },
  );
  for (const [nth, { lines, currency, more }] of invoices.entries()) {
    const unit = 10n ** BigInt(10 - minorDigits(currency));
    const text = (amount: bigint) =>
      `${amount < 0n ? "-" : ""}${String(amount < 0n ? -amount : amount)
        .padStart(11, "0")
        .replace(/(.{10})$/, ".$1")}`;
    const sum = lines.reduce((all, { amount }) => all + amount, 0n);
    const total = (sum / unit + more) * unit;
    const number = `A-${nth}`;
    const invoiceId = await insertInvoice(client, {
      ...{ number, currency, issuedOn: "2026-04-01", total: text(total) },
      lines: lines.map(({ amount }) => ({ text: "line", amount: text(amount) })),
    });
    await client.query(
      `WITH match AS (
         INSERT INTO usage.invoice_match (invoice_id, inputs, inputs_digest, total, bill, remainder) VALUES ($1, '{}', '', 0, 0, 0)
         RETURNING match_id
       )
       INSERT INTO usage.invoice_match_line (match_id, place, line_number, state, why, sku, billed_start, billed_end, workspace, divide)
       SELECT match_id, n, n, CASE WHEN w IS NULL THEN 'not_comparable' ELSE 'agrees' END, CASE WHEN w IS NULL THEN 'seat' END,
              CASE WHEN w IS NOT NULL THEN 'traces' END, CASE WHEN w IS NOT NULL THEN '2026-03-01'::date END,
              CASE WHEN w IS NOT NULL THEN '2026-04-01'::date END, nullif(w, ''), d
       FROM match, unnest($2::text[], $3::text[]) WITH ORDINALITY AS l (w, d, n)`,
      [invoiceId, lines.map(({ workspace }) => workspace), lines.map(({ divide }) => divide)],
    );
    const { rows } = await client.query<{ line: string; owner: string; amount: string }>(
      `SELECT line_number AS line, owner, trim_scale(amount)::text AS amount FROM reporting_detail.fct_invoice_owner
       WHERE invoice_number = $1`,
      [number],
    );
    const parts = rows.map(({ line, owner, amount }) => ({
      line: Number(line),
      owner,
      amount: amountOf(amount),
    }));
    expect(parts.reduce((all, { amount }) => all + amount, 0n)).toBe(total);
    expect(parts.filter(({ amount }) => amount % unit !== 0n)).toEqual([]);
    const rest: Line = { amount: total - sum, workspace: null, divide: null };
    for (const [at, one] of [rest, ...lines].entries()) {
      const shares = sharesOf(one);
      const whole = Object.values(shares).reduce((all, one) => all + one, 0n);
      const own = parts.filter((part) => part.line === at);
      expect(own.filter(({ owner }) => !(owner in shares))).toEqual([]);
      for (const [owner, share] of Object.entries(shares)) {
        const part = own.find((one) => one.owner === owner)?.amount ?? 0n;
        const off = part * whole - one.amount * share;
        expect(off < unit * whole && off > -unit * whole, `${number} ${at} ${owner}`).toBe(true);
      }
    }
  }
});

test("the digits of a currency are the same in SQL", async () => {
  const client = await connectPlain((await setupSource()).url);
  const { rows } = await client.query<{ code: string; digits: string }>(
    "SELECT code, usage.minor_digits(code) AS digits FROM unnest($1::text[]) code",
    [Intl.supportedValuesOf("currency")],
  );
  for (const { code, digits } of rows) expect([code, Number(digits)]).toEqual([code, minorDigits(code)]);
});
