import type { Feature } from "../feature.ts";

export const owners: Feature = {
  commands: {
    owners: {
      group: "Prices and owners",
      about: "manage who pays: rules that give usage to owners and cost centres",
      load: () => import("./owners.command.ts"),
    },
  },
};
