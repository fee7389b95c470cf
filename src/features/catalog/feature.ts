import type { Feature } from "../feature.ts";

export const catalog: Feature = {
  commands: {
    "data-start": {
      group: "Load",
      about: "show the first day that is loaded, or move it later; USAGE_DATA_START moves it earlier",
      load: () => import("./data-start.command.ts"),
    },
    workspace: {
      group: "Load",
      about: "list the known workspaces, add one, or forget one",
      load: () => import("./workspace.command.ts"),
    },
    source: {
      group: "Load",
      about: "list the stored sources, or forget one",
      load: () => import("./source.command.ts"),
    },
  },
};
