import { UsageError } from "../../core/base/errors.ts";
import { nearest } from "../../core/base/spelling.ts";
import { amountText } from "../../core/domain/usage/amount.ts";
import type { Database, Store } from "../../core/store/db/database.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";
import { type Explanation, explain } from "./explain.ts";
import { type FoundInvoice, findInvoices, keepMatch, readMatchInputs } from "./match.store.ts";
import type { MatchInputs } from "./match-inputs.ts";
import { keepSettlement, type Settlement, settlementOf } from "./settlements.store.ts";

export interface ExplainedInvoice {
  readonly source: string;
  readonly inputs: MatchInputs;
  readonly found: Explanation;
  /** Null: nobody has settled it. */
  readonly settlement: Settlement | null;
}

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

/** Explains an invoice by the figures of one instant, and stores nothing. */
export async function readExplanation(
  db: Database,
  { invoiceId, source }: FoundInvoice,
): Promise<ExplainedInvoice> {
  return inSnapshot(db, async (at) => {
    const inputs = await readMatchInputs(at, invoiceId);
    return { source, inputs, found: explain(inputs), settlement: await settlementOf(at, invoiceId) };
  });
}

/** Explains an invoice, and stores the match with its inputs. */
export async function explainInvoice(store: Store, invoice: FoundInvoice): Promise<ExplainedInvoice> {
  return store.transaction(
    async ({ db }) => {
      const explained = await readExplanation(db, invoice);
      await keepMatch(db, explained.inputs, explained.found);
      return explained;
    },
    { isOneInstant: true },
  );
}

/**
 * Settles an invoice by its match of now. A settlement is never undone: another one corrects it. Errors: `invoice_not_issued`,
 * `settle_reason_missing`, `invoice_settled`.
 */
export async function settleInvoice(
  store: Store,
  invoice: FoundInvoice,
  { reason, by }: { reason: string | null; by: Actor },
): Promise<ExplainedInvoice> {
  const { invoiceId, number, sourceId, status } = invoice;
  if (status !== "issued")
    throw new UsageError({
      code: "invoice_not_issued",
      message: `Invoice ${number} is ${status}. Only an issued invoice can be settled.`,
      next: "Import the invoice again when it is issued.",
    });
  return store.transaction(
    async ({ db }) => {
      const explained = await readExplanation(db, invoice);
      const { found, settlement } = explained;
      const amount = `${amountText(found.remainder)} ${found.currency}`;
      if (found.remainder !== 0n && reason === null)
        throw new UsageError({
          code: "settle_reason_missing",
          message: `${amount} of invoice ${number} is not explained.`,
          next: `Run \`usage-etl invoice explain ${number}\`. To accept the amount, add --reason TEXT.`,
        });
      const matchId = await keepMatch(db, explained.inputs, found);
      if (
        settlement !== null &&
        settlement.matchId === matchId &&
        (reason ?? settlement.reason) === settlement.reason
      )
        return explained;
      if (settlement !== null && reason === null)
        throw new UsageError({
          code: "invoice_settled",
          message: `Invoice ${number} was settled on ${settlement.settledAt.slice(0, 10)} by ${settlement.settledBy}. Its explanation has changed since.`,
          next: "To correct the settlement, add --reason TEXT. The first one stays in the history.",
        });
      const settledBy = by.name ?? by.via;
      await keepSettlement(db, { invoiceId, matchId, reason, settledBy });
      const detail = `${number}: ${amount} not explained${reason === null ? "" : `. ${reason}`}`;
      await recordAction(db, by, { sourceId, action: "invoice.settle", detail });
      return { ...explained, settlement: await settlementOf(db, invoiceId) };
    },
    { isOneInstant: true },
  );
}
