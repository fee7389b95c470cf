import type { Feature } from "../feature.ts";

export const activity: Feature = {
  pages: async () => {
    const [{ addDifferences }, { addTimeline }] = await Promise.all([
      import("./differences.page.ts"),
      import("./timeline.page.ts"),
    ]);
    return (web) => {
      addDifferences(web);
      addTimeline(web);
    };
  },
};
