import type { Feature } from "../feature.ts";

export const alerts: Feature = {
  commands: {
    alerts: {
      group: "Operate",
      about: "show routes and open incidents, and send a test message",
      load: () => import("./alerts.command.ts"),
    },
  },
  pages: async () => (await import("./alerts.page.ts")).addAlerts,
  jobs: async () => (await import("./alerts.job.ts")).alertJobs,
  checks: async () => ({ installation: (await import("./owner-file.check.ts")).checkOwners }),
};
