import type { Queue } from "bullmq";
import { keepSchedules, schedulesOf } from "../../jobs/schedule.ts";
import { syncJob } from "../../jobs/sync.ts";
import type { Config, SourceConfig } from "../config/config.ts";
import { DAY_MS, HOUR_MS } from "../domain/time/stride.ts";
import { createClosers } from "./closers.ts";
import { type LimitedSource, openLimited, type Shared } from "./limited-source.ts";
import { startWork } from "./work.ts";

/** Starts what this process does for one source: keeps its schedules, takes its jobs. Returns the closer. */
export async function startSource(
  source: SourceConfig,
  shared: Shared,
  does: { readonly schedules: boolean; readonly works: boolean },
): Promise<() => Promise<void>> {
  const { config, queues, clockOff, secretFiles } = shared;
  const log = shared.log.child({ source: source.slug });
  const started = createClosers();
  const limited = openLimited(source, { ...shared, log });
  started.defer(limited.close);
  if (does.schedules) {
    const { control } = queues.of(source.slug);
    const connection = queues.producer;
    started.defer(await keepSchedules(control, schedulesFor(config, source), { connection, log, clockOff }));
  }
  secretFiles.onChange(source.apiKey, () => {
    // The schedule does the same at its next sync.
    resume(limited, queues.of(source.slug).control).catch(() => {});
  });
  if (does.works) started.defer(startWork(source, limited, { ...shared, log }));
  return () => started.disposeAsync();
}

/** A key that the platform refused stopped the source. Another one has come: it goes on, without waiting for a schedule. */
async function resume({ handle }: LimitedSource, control: Queue): Promise<void> {
  await handle.known();
  await control.add(syncJob.name, {}, { ...syncJob.options, jobId: `key-${Date.now()}` });
}

/** The schedules of a source, from durations of the configuration in milliseconds. */
export function schedulesFor(config: Config, { deploymentUrl, probeProject }: SourceConfig) {
  const { syncEveryMs, reconcileForMs, keepHistoryMs, hourlyKeepMs, probeEveryMs, alertWebhookUrl, files } =
    config;
  const days = (ms: number) => Math.max(1, Math.ceil(ms / DAY_MS));
  const canProbe = deploymentUrl !== undefined && probeProject !== undefined;
  return schedulesOf({
    syncEveryMs,
    reconcileDays: days(reconcileForMs),
    keepDays: days(keepHistoryMs),
    keepHours: hourlyKeepMs === undefined ? undefined : Math.ceil(hourlyKeepMs / HOUR_MS),
    hasWebhook: alertWebhookUrl !== undefined,
    writesFiles: files.address !== undefined,
    probeEveryMs: canProbe ? probeEveryMs : undefined,
  });
}
