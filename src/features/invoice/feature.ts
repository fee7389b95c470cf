import type { Feature } from "../feature.ts";

export const invoice: Feature = {
  commands: {
    invoice: {
      group: "Prices and owners",
      about: "import invoices of the platform, and explain how they differ from our bill",
      load: () => import("./invoice.command.ts"),
    },
  },
  jobs: async () => (await import("./explain.job.ts")).invoiceJobs,
  pages: async () => {
    const [{ addInvoices }, { addExplanation }, { addStatements }] = await Promise.all([
      import("./invoices.page.ts"),
      import("./explain.page.ts"),
      import("./statement.page.ts"),
    ]);
    return (web) => {
      addInvoices(web);
      addExplanation(web);
      addStatements(web);
    };
  },
};
