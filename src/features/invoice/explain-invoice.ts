import { UsageError } from "../../core/base/errors.ts";
import { nearest } from "../../core/base/spelling.ts";
import type { Database, Store } from "../../core/store/db/database.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";
import { type Comparison, readComparison } from "./comparison.store.ts";
import { explain } from "./explain.ts";
import { type FoundInvoice, findInvoices, keepMatch, readMatchInputs } from "./match.store.ts";
import type { Suggestion } from "./match.ts";
import { keepSettlement } from "./settlements.store.ts";

/** The current version of an invoice. Errors: `invoice_unknown`, `invoice_ambiguous`. */
export async function invoiceNumbered(
  db: Database,
  { number, source }: { number: string; source?: string | undefined },
): Promise<FoundInvoice> {
  const all = await findInvoices(db, { source });
  const named = all.filter((one) => one.number === number);
  const [first, ...others] = named;
  if (first !== undefined && others.length === 0) return first;
  if (first !== undefined)
    throw new UsageError({
      code: "invoice_ambiguous",
      message: `${named.length} invoices have the number ${number}: ${named.map((one) => `${one.source}, ${one.issuer}`).join("; ")}.`,
      next: "Name its source with --source.",
    });
  const near = nearest(
    number,
    all.map((one) => one.number),
  );
  throw new UsageError({
    code: "invoice_unknown",
    message: `No invoice ${number} is stored.${near === undefined ? "" : ` Did you mean ${near}?`}`,
    next: "Run `usage-etl invoice list` to see their numbers.",
  });
}

export function notCompared(number: string): UsageError {
  return new UsageError({
    code: "invoice_not_compared",
    message: `Invoice ${number} was never compared with our bill.`,
    next: `Run \`usage-etl invoice explain ${number}\`. The service does it every night.`,
  });
}

/** Explains an invoice by the figures of one instant, and stores the match with its inputs. */
export async function explainInvoice(
  store: Store,
  invoice: FoundInvoice,
): Promise<Comparison & { readonly suggestions: readonly Suggestion[] }> {
  return store.transaction(({ db }) => compare(db, invoice), { isOneInstant: true });
}

async function compare(db: Database, invoice: FoundInvoice) {
  const inputs = await readMatchInputs(db, invoice.invoiceId);
  const found = explain(inputs);
  const matchId = await keepMatch(db, inputs, found);
  return { ...(await comparisonOf(db, invoice)), matchId, suggestions: found.suggestions };
}

async function comparisonOf(db: Database, invoice: FoundInvoice): Promise<Comparison> {
  const compared = await readComparison(db, invoice);
  if (compared === undefined) throw new Error(`invoice ${invoice.invoiceId} has no match`);
  return compared;
}

/**
 * Settles an invoice by its match of now. A settlement is never undone: another one corrects it. Errors: `invoice_not_issued`,
 * `settle_reason_missing`, `invoice_settled`.
 */
export async function settleInvoice(
  store: Store,
  invoice: FoundInvoice,
  { reason, by }: { reason: string | null; by: Actor },
): Promise<Comparison> {
  const { invoiceId, number, sourceId, status, currency } = invoice;
  if (status !== "issued")
    throw new UsageError({
      code: "invoice_not_issued",
      message: `Invoice ${number} is ${status}. Only an issued invoice can be settled.`,
      next: "Import the invoice again when it is issued.",
    });
  return store.transaction(
    async ({ db }) => {
      const { matchId, remainder, settlement } = await compare(db, invoice);
      const amount = `${remainder} ${currency}`;
      if (remainder !== "0" && reason === null)
        throw new UsageError({
          code: "settle_reason_missing",
          message: `${amount} of invoice ${number} is not explained.`,
          next: `Run \`usage-etl invoice explain ${number}\`. To accept the amount, add --reason TEXT.`,
        });
      const isSame = settlement?.matchId === matchId && (reason ?? settlement.reason) === settlement.reason;
      if (settlement !== null && !isSame && reason === null)
        throw new UsageError({
          code: "invoice_settled",
          message: `Invoice ${number} was settled on ${settlement.settledAt.slice(0, 10)} by ${settlement.settledBy}. Its explanation has changed since.`,
          next: "To correct the settlement, add --reason TEXT. The first one stays in the history.",
        });
      if (!isSame) {
        await keepSettlement(db, { invoiceId, matchId, reason, settledBy: by.name ?? by.via });
        const detail = `${number}: ${amount} not explained${reason === null ? "" : `. ${reason}`}`;
        await recordAction(db, by, { sourceId, action: "invoice.settle", detail });
      }
      return comparisonOf(db, invoice);
    },
    { isOneInstant: true },
  );
}
