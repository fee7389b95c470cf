import { z } from "zod";
import { raiseAlerts } from "../src/pipeline/alerts.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Sends the webhook the alerts that began or ended. Scheduled only if a webhook is configured. */
export const alertJob = defineJob({
  name: "alert",
  queue: "control",
  payload: z.strictObject({}),
  options: { ...CONTROL_OPTIONS, attempts: 1 },
  handle: async ({ source, alerts, signal }) => raiseAlerts(await source.known(), { ...alerts, signal }),
});
