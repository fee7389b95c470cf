import { z } from "zod";
import { raiseAlerts } from "../src/pipeline/alerts.ts";
import { CONTROL_OPTIONS, defineJob } from "./job.ts";

/** Tells the webhook what has begun or ended; scheduled only where there is one. */
export const alertJob = defineJob({
  name: "alert",
  queue: "control",
  payload: z.strictObject({}),
  options: { ...CONTROL_OPTIONS, attempts: 1 },
  handle: async ({ source, alerts }) => raiseAlerts(await source.known(), alerts),
});
