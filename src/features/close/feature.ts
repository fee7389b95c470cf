import type { Feature } from "../feature.ts";

export const close: Feature = {
  commands: {
    close: {
      group: "Prove",
      about: "close a month such as 2026-03: store its totals once every day is final and reconciled",
      load: () => import("./close.command.ts"),
    },
  },
  pages: async () => (await import("./month.page.ts")).addMonths,
};
