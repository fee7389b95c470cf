import type { Feature } from "../feature.ts";

export const standin: Feature = {
  commands: {
    standin: {
      group: "Set up",
      about: "run a local platform with seeded usage, control plane, runs and A2A",
      load: () => import("./standin.command.ts"),
    },
  },
};
