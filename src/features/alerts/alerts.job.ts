import { CONTROL, defineJob, type FeatureJob } from "../../../jobs/job.ts";
import type { Config } from "../../core/base/config.ts";
import { endWaits } from "../owners/notifications.store.ts";
import { conditionSettingsOf } from "./conditions.ts";
import { reportRoutes } from "./report.ts";
import { sendAlerts } from "./send-alerts.ts";

const EVERY_MS = 60_000;

export function alertJobs(config: Config, slug: string): FeatureJob[] {
  const settings = {
    slug,
    ...conditionSettingsOf(config),
    secrets: config.routeSecrets,
    webUrl: config.webUrl,
  };
  let isFirst = true;
  const job = defineJob({
    ...CONTROL,
    name: "alert",
    options: { ...CONTROL.options, attempts: 1 },
    handle: async ({ source, signal, log }) => {
      const created = await source.known();
      if (isFirst) {
        const { db } = created.store;
        // The restart may have brought the setting that a waiting route lacked.
        await endWaits(db);
        for (const { name, missing } of await reportRoutes(db, config))
          if (missing !== null) log.warn({ code: "route_failed", route: name }, missing);
      }
      isFirst = false;
      const { notified, ended } = await sendAlerts(created, { ...settings, signal });
      return { notified, ended };
    },
  });
  return [{ job, repeat: { every: EVERY_MS } }];
}
