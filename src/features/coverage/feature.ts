import type { Feature } from "../feature.ts";

export const coverage: Feature = {
  commands: {
    coverage: {
      group: "Operate",
      about: "show which days are loaded and final, by dimension and stride",
      load: () => import("./coverage.command.ts"),
    },
  },
  pages: async () => {
    const [{ addCoverage }, { addCell }] = await Promise.all([
      import("./coverage.page.ts"),
      import("./cell.page.ts"),
    ]);
    return (web) => {
      addCoverage(web);
      addCell(web);
    };
  },
};
