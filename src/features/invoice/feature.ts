import type { Feature } from "../feature.ts";

export const invoice: Feature = {
  commands: {
    invoice: {
      group: "Prices and owners",
      about: "import invoices of the platform, and show them beside what they were read from",
      load: () => import("./invoice.command.ts"),
    },
  },
};
