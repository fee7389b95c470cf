import type { Feature } from "../feature.ts";

export const probe: Feature = {
  commands: {
    probe: {
      group: "Prove",
      about: "send a few known traces and check that exactly those are billed; they cost money",
      load: () => import("./probe.command.ts"),
    },
  },
};
