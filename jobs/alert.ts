import { raiseAlerts } from "../src/pipeline/alerts/tell.ts";
import { CONTROL, defineJob } from "./job.ts";

/** Tells each route the incidents that began or ended. */
export const alertJob = defineJob({
  ...CONTROL,
  name: "alert",
  options: { ...CONTROL.options, attempts: 1 },
  handle: async ({ source, alerts, signal }) => {
    const { told, cleared } = await raiseAlerts(await source.known(), { ...alerts, signal });
    return { told, cleared };
  },
});
