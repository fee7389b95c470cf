import type { Feature } from "../feature.ts";

export const agents: Feature = {
  commands: {
    platform: {
      group: "Agents and deployments",
      about: "manage templates and deployments, run assistants, send agent-to-agent messages",
      load: () => import("./platform.command.ts"),
    },
  },
};
