import { schedulesOf } from "../../jobs/schedule.ts";
import type { Config, SourceConfig } from "../config/config.ts";
import { DAY_MS, HOUR_MS } from "../domain/time/stride.ts";

/** The schedules of a source, from durations of the configuration in milliseconds. */
export function schedulesFor(config: Config, { deploymentUrl, probeProject }: SourceConfig) {
  const { syncEveryMs, reconcileForMs, keepHistoryMs, hourlyKeepMs, probeEveryMs, alertWebhookUrl } = config;
  const days = (ms: number) => Math.max(1, Math.ceil(ms / DAY_MS));
  const canProbe = deploymentUrl !== undefined && probeProject !== undefined;
  return schedulesOf({
    syncEveryMs,
    reconcileDays: days(reconcileForMs),
    keepDays: days(keepHistoryMs),
    keepHours: hourlyKeepMs === undefined ? undefined : Math.ceil(hourlyKeepMs / HOUR_MS),
    hasWebhook: alertWebhookUrl !== undefined,
    probeEveryMs: canProbe ? probeEveryMs : undefined,
  });
}
