import type { Feature } from "../feature.ts";

export const costs: Feature = {
  commands: {
    totals: {
      group: "Prove",
      about:
        "compare final days with the platform's totals of weeks, months and years, and dimensions with their workspace",
      load: () => import("./totals.command.ts"),
    },
    bill: {
      group: "Read",
      about: "show the bill of a month by price, and which parts of it are not known",
      load: () => import("./bill.command.ts"),
    },
    prices: {
      group: "Prices and owners",
      about: "manage the unit prices that costs are estimated from",
      load: () => import("./prices.command.ts"),
    },
  },
  jobs: async () => (await import("./bill.job.ts")).billJobs,
  checks: async () => ({ source: (await import("./costs.check.ts")).checkCosts }),
};
