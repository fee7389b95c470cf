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
import { planSyncJob } from "./sync.ts";

/** How often a scheduler looks whether its schedules still stand in Redis. */
const RESTORE_EVERY_MS = 20_000;

/** What the configuration says about when things run, and how far back they look. */
interface ScheduleSettings {
  readonly syncEveryMs: number;
  readonly reconcileDays: number;
  readonly keepDays: number;
  /** How long hours are kept; undefined: for good. */
  readonly keepHours?: number | undefined;
  readonly hasWebhook: boolean;
  /** Undefined: no probe. */
  readonly probeEveryMs?: number | undefined;
}

interface Schedule {
  /** The scheduler's key in Redis. */
  readonly id: string;
  readonly job: string;
  /** Either every so many milliseconds, or by a cron pattern in UTC. */
  readonly repeat: { readonly every: number } | { readonly pattern: string; readonly tz: "UTC" };
  readonly data: Readonly<Record<string, unknown>>;
  readonly options?: JobsOptions;
}

/** All schedules of a source, in one table. */
export function schedulesOf({
  syncEveryMs,
  reconcileDays,
  keepDays,
  keepHours,
  hasWebhook,
  probeEveryMs,
}: ScheduleSettings): Schedule[] {
  const probe = { job: probeJob.name, data: {}, options: probeJob.options };
  const schedules: (Omit<Schedule, "id"> & { id?: string })[] = [
    ...(probeEveryMs === undefined ? [] : [{ ...probe, repeat: { every: probeEveryMs } }]),
    { job: planSyncJob.name, repeat: { every: syncEveryMs }, data: {} },
    { job: enqueueJob.name, repeat: { every: 5_000 }, data: {} },
    { job: requeueJob.name, repeat: { every: 20_000 }, data: {} },
    // Each reach takes in the one before it, less often: what is wrong far back is rare, and costs more requests.
    ...(
      [
        ["month", "30 1 * * *"],
        ["quarter", "30 2 * * 0"],
        ["all", "30 2 5 * *"],
      ] as const
    ).map(([reach, pattern]) => ({
      id: `${checkTotalsJob.name}-${reach}`,
      job: checkTotalsJob.name,
      repeat: { pattern, tz: "UTC" as const },
      data: { reach },
    })),
    {
      job: reconcileRangeJob.name,
      repeat: { pattern: "0 3 * * *", tz: "UTC" },
      data: { days: reconcileDays },
    },
    {
      job: pruneJob.name,
      repeat: { pattern: "0 5 * * *", tz: "UTC" },
      // Only where it is set: a worker of an older release would not know what it means.
      data: { keepDays, ...(keepHours === undefined ? {} : { keepHours }) },
    },
    ...(hasWebhook ? [{ job: alertJob.name, repeat: { every: 60_000 }, data: {} }] : []),
  ];
  return schedules.map((schedule) => ({ id: schedule.job, ...schedule }));
}

/**
 * Puts in place what is missing or was changed, and removes what is no longer in the table. A scheduler that is right
 * is not touched: one that is overdue would lose its tick.
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

/** Looks at the schedules now and then: a Redis that lost everything gets them back. */
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
