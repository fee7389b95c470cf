import type { Feature } from "../feature.ts";

export const figures: Feature = {
  pages: async () => {
    const [{ addUsage }, { addOwners }] = await Promise.all([
      import("./usage.page.ts"),
      import("./owners.page.ts"),
    ]);
    return (web) => {
      addUsage(web);
      addOwners(web);
    };
  },
};
