import type { Queue } from "bullmq";
import { feedJob } from "./feed.ts";
import { CONTROL_OPTIONS } from "./job.ts";
import { planControlTotalsJob } from "./plan-control-totals.ts";
import { planRoundJob } from "./plan-round.ts";
import { pruneJob } from "./prune.ts";
import { reconcileRangeJob } from "./reconcile-range.ts";
import { sweepJob } from "./sweep.ts";

/** What the configuration says about when things run, and how far back they look. */
interface ScheduleSettings {
  readonly syncEveryMs: number;
  readonly reconcileDays: number;
  readonly keepDays: number;
}

interface Schedule {
  readonly job: string;
  /** Either every so many milliseconds, or by a cron pattern in UTC. */
  readonly repeat: { readonly every: number } | { readonly pattern: string; readonly tz: "UTC" };
  readonly data: Readonly<Record<string, unknown>>;
}

/** All schedules of a source, in one table. */
export function schedulesOf({ syncEveryMs, reconcileDays, keepDays }: ScheduleSettings): Schedule[] {
  return [
    { job: planRoundJob.name, repeat: { every: syncEveryMs }, data: {} },
    { job: feedJob.name, repeat: { every: 5_000 }, data: {} },
    { job: sweepJob.name, repeat: { every: 20_000 }, data: {} },
    { job: planControlTotalsJob.name, repeat: { pattern: "30 1 * * *", tz: "UTC" }, data: {} },
    {
      job: reconcileRangeJob.name,
      repeat: { pattern: "0 3 * * *", tz: "UTC" },
      data: { days: reconcileDays },
    },
    {
      job: pruneJob.name,
      repeat: { pattern: "0 5 * * *", tz: "UTC" },
      data: { keepDays },
    },
  ];
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
  for (const { job, repeat, data } of schedules) {
    const found = await queue.getJobScheduler(job);
    if (found !== undefined && isSame(found, repeat, data)) continue;
    await queue.upsertJobScheduler(job, repeat, { name: job, data, opts: CONTROL_OPTIONS });
    restored++;
  }
  const known = new Set(schedules.map((schedule) => schedule.job));
  const surplus = (await queue.getJobSchedulers()).filter((found) => !known.has(found.key));
  for (const { key } of surplus) await queue.removeJobScheduler(key);
  return { restored, removed: surplus.length };
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
