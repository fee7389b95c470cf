import { CONTROL, defineJob, type FeatureJob } from "../../../jobs/job.ts";
import { explainInvoice } from "./explain-invoice.ts";
import { findInvoices } from "./match.store.ts";

/** Usage, prices and closes may have changed what explains an invoice that nobody has settled. */
const explainInvoicesJob = defineJob({
  ...CONTROL,
  name: "explain-invoices",
  handle: async ({ source, signal }) => {
    const { store, sourceId } = await source.known();
    const invoices = await findInvoices(store.db, { isOpen: true });
    const own = invoices.filter((one) => one.sourceId === sourceId);
    for (const invoice of own) {
      signal.throwIfAborted();
      await explainInvoice(store, invoice);
    }
    return { explained: own.length };
  },
});

export function invoiceJobs(): FeatureJob[] {
  // After the nightly reading of the bill.
  return [{ job: explainInvoicesJob, repeat: { pattern: "0 5 * * *", tz: "UTC" } }];
}
