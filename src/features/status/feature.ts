import type { Feature } from "../feature.ts";

export const status: Feature = {
  commands: {
    status: {
      group: "Operate",
      about: "show how far each source is loaded, and its problems",
      load: () => import("./status.command.ts"),
    },
  },
  pages: async () => (await import("./overview.page.ts")).addOverview,
};
