import type { Feature } from "../feature.ts";

export const mcp: Feature = {
  commands: {
    mcp: {
      group: "Read",
      about:
        "answer questions of an AI client about usage, cost, bill and proof (Model Context Protocol, read-only)",
      load: () => import("./mcp.command.ts"),
    },
  },
  endpoints: async () => (await import("./http.ts")).addMcp,
};
