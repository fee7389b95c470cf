import type { Feature } from "../feature.ts";

export const backfill: Feature = {
  commands: {
    backfill: {
      group: "Load",
      about: "load a range, by default through the queue until it is done",
      load: () => import("./backfill.command.ts"),
    },
    plan: {
      group: "Load",
      about: "show the windows and requests of a range without sending any",
      load: () => import("./plan.command.ts"),
    },
    runs: {
      group: "Operate",
      about: "show recent syncs, backfills, comparisons and files",
      load: () => import("./runs.command.ts"),
    },
  },
  pages: async () => {
    const [{ addBackfillList }, { addNewBackfill }, { addOneBackfill }] = await Promise.all([
      import("./backfills.page.ts"),
      import("./new-backfill.page.ts"),
      import("./backfill.page.ts"),
    ]);
    return (web) => {
      addBackfillList(web);
      addNewBackfill(web);
      addOneBackfill(web);
    };
  },
};
