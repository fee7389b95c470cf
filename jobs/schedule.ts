import type { JobsOptions, Queue } from "bullmq";
import type { Logger } from "../src/log.ts";
import { alertJob } from "./alert.ts";
import { checkTotalsJob } from "./check-totals.ts";
import { enqueueJob } from "./enqueue.ts";
import { CONTROL_OPTIONS } from "./job.ts";
import { probeJob } from "./probe.ts";
import { pruneJob } from "./prune.ts";
import { reconcileRangeJob } from "./reconcile-range.ts";
import { requeueJob } from "./requeue.ts";
import { syncJob } from "./sync.ts";

/** How often a scheduler checks that its schedules are still in Redis. */
const RESTORE_EVERY_MS = 20_000;

/** When jobs run and how far back they look, as configured. */
interface ScheduleSettings {
  readonly syncEveryMs: number;
  readonly reconcileDays: number;
  readonly keepDays: number;
  /** How long hourly records are kept; undefined: for ever. */
  readonly keepHours?: number | undefined;
  readonly hasWebhook: boolean;
  /** Undefined: no meter probe. */
  readonly probeEveryMs?: number | undefined;
}

interface Schedule {
  /** The key in Redis. */
  readonly id: string;
  readonly job: string;
  /** Either every so many milliseconds, or by a cron pattern in UTC. */
  readonly repeat: { readonly every: number } | { readonly pattern: string; readonly tz: "UTC" };
  readonly data: Readonly<Record<string, unknown>>;
  readonly options?: JobsOptions;
}

type Repeated = { readonly name: string };

function every(ms: number, { name }: Repeated): Schedule {
  return { id: name, job: name, repeat: { every: ms }, data: {} };
}

function at(pattern: string, { name }: Repeated, data: Schedule["data"], id: string = name): Schedule {
  return { id, job: name, repeat: { pattern, tz: "UTC" }, data };
}

/** All schedules of a source. */
export function schedulesOf(settings: ScheduleSettings): Schedule[] {
  const { syncEveryMs, reconcileDays, keepDays, keepHours, hasWebhook, probeEveryMs } = settings;
  return [
    ...(probeEveryMs === undefined ? [] : [{ ...every(probeEveryMs, probeJob), options: probeJob.options }]),
    every(syncEveryMs, syncJob),
    every(5_000, enqueueJob),
    every(20_000, requeueJob),
    // A longer reach includes the shorter ones and runs less often: it costs more requests, and old errors are rare.
    at("30 1 * * *", checkTotalsJob, { reach: "month" }, `${checkTotalsJob.name}-month`),
    at("30 2 * * 0", checkTotalsJob, { reach: "quarter" }, `${checkTotalsJob.name}-quarter`),
    at("30 2 5 * *", checkTotalsJob, { reach: "all" }, `${checkTotalsJob.name}-all`),
    at("0 3 * * *", reconcileRangeJob, { days: reconcileDays }),
    // `keepHours` is left out if unset: a worker of an older release refuses unknown data.
    at("0 5 * * *", pruneJob, { keepDays, ...(keepHours === undefined ? {} : { keepHours }) }),
    ...(hasWebhook ? [every(60_000, alertJob)] : []),
  ];
}

/**
 * Adds missing schedules, replaces changed ones and removes unknown ones. A correct schedule is left alone: writing it
 * again would drop a run that is due.
 */
export async function restoreSchedules(
  queue: Queue,
  schedules: readonly Schedule[],
): Promise<{ restored: number; removed: number }> {
  let restored = 0;
  for (const { id, job, repeat, data, options = CONTROL_OPTIONS } of schedules) {
    const found = await queue.getJobScheduler(id);
    if (found !== undefined && isSame(found, repeat, data)) continue;
    await queue.upsertJobScheduler(id, repeat, { name: job, data, opts: options });
    restored++;
  }
  const known = new Set(schedules.map((schedule) => schedule.id));
  const surplus = (await queue.getJobSchedulers()).filter((found) => !known.has(found.key));
  for (const { key } of surplus) await queue.removeJobScheduler(key);
  return { restored, removed: surplus.length };
}

/** Restores the schedules now and every 20 s, since Redis may lose everything at any time. Returns the closer. */
export async function keepSchedules(
  control: Queue,
  schedules: readonly Schedule[],
  log: Logger,
): Promise<() => Promise<void>> {
  const restore = async () => {
    try {
      const { restored, removed } = await restoreSchedules(control, schedules);
      if (restored + removed > 0) log.info({ restored, removed }, "schedules");
    } catch (error) {
      log.warn({ code: "schedules_unrestored", reason: (error as Error).message }, "schedules");
    }
  };
  await restore();
  const timer = setInterval(() => void restore(), RESTORE_EVERY_MS);
  return async () => clearInterval(timer);
}

function isSame(
  found: { every?: number; pattern?: string; template?: { data?: unknown } },
  repeat: Schedule["repeat"],
  data: Schedule["data"],
): boolean {
  const isSameTime =
    "every" in repeat ? Number(found.every) === repeat.every : found.pattern === repeat.pattern;
  return isSameTime && JSON.stringify(found.template?.data ?? {}) === JSON.stringify(data);
}
