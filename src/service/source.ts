import { keepSchedules, schedulesOf } from "../../jobs/schedule.ts";
import type { Config, SourceConfig } from "../config/config.ts";
import { DAY_MS, HOUR_MS } from "../domain/time/stride.ts";
import { openLimited, type Shared } from "./limited-source.ts";
import { startWork } from "./work.ts";

/** Starts what this process does for one source: keeps its schedules, takes its jobs. Returns the closer. */
export async function startSource(
  source: SourceConfig,
  shared: Shared,
  does: { readonly schedules: boolean; readonly works: boolean },
): Promise<() => Promise<void>> {
  const { config, queues, clockOff } = shared;
  const log = shared.log.child({ source: source.slug });
  const started = new AsyncDisposableStack();
  const limited = openLimited(source, { ...shared, log });
  started.defer(limited.close);
  if (does.schedules) {
    const { control } = queues.of(source.slug);
    started.defer(await keepSchedules(control, schedulesFor(config, source), { log, clockOff }));
  }
  if (does.works) started.defer(startWork(source, limited, { ...shared, log }));
  return () => started.disposeAsync();
}

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
