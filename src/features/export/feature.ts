import type { Feature } from "../feature.ts";

export const exporting: Feature = {
  commands: {
    export: {
      group: "Read",
      about: "write the rows of a reporting view to a file, in constant memory",
      load: () => import("./export.command.ts"),
    },
    files: {
      group: "Read",
      about: "write Parquet files for a warehouse, or check them",
      load: () => import("./files.command.ts"),
    },
  },
  jobs: async () => (await import("./files.job.ts")).filesJobs,
  outside: async () => (await import("./source-files.ts")).filesOfSource,
  checks: async () => ({ source: (await import("./files.check.ts")).checkFilesPlace }),
};
