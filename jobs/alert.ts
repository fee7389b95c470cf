import { sendAlerts } from "../src/pipeline/alerts/send-alerts.ts";
import { CONTROL, defineJob } from "./job.ts";

/** Notifies each route of incidents that began, grew or ended. */
export const alertJob = defineJob({
  ...CONTROL,
  name: "alert",
  options: { ...CONTROL.options, attempts: 1 },
  handle: async ({ source, alerts, signal }) => {
    const { notified, ended } = await sendAlerts(await source.known(), { ...alerts, signal });
    return { notified, ended };
  },
});
