import { isDeepStrictEqual } from "node:util";
import { getNextMillis, type JobsOptions, type Queue } from "bullmq";
import { systemClock } from "../src/core/base/clock.ts";
import type { Config } from "../src/core/base/config.ts";
import { faultOf } from "../src/core/base/faults.ts";
import type { Logger } from "../src/core/base/log.ts";
import type { RedisConnection } from "../src/core/base/redis-connect.ts";
import { checkTotalsJob } from "./check-totals.ts";
import { enqueueJob, requeueJob } from "./enqueue.ts";
import { extractJob } from "./extract.ts";
import type { FeatureJob, JobDefinition, Repeat } from "./job.ts";
import type { Pause } from "./pause-jobs.ts";
import { pruneJob } from "./prune.ts";
import { reconcileRangeJob } from "./reconcile-range.ts";
import { syncJob } from "./sync.ts";

const CORE = [syncJob, enqueueJob, requeueJob, extractJob, reconcileRangeJob, checkTotalsJob, pruneJob];

export type Jobs = ReadonlyMap<string, JobDefinition<never>>;

export function jobsOf(features: readonly FeatureJob[]): Jobs {
  const all = [...CORE, ...features.map(({ job }) => job)];
  return new Map(all.map((job) => [job.name, job as unknown as JobDefinition<never>]));
}

const RESTORE_EVERY_MS = 20_000;
/** Time between full checks. Checks in between compare ids and next runs with one command. */
const READ_EVERY_MS = 300_000;

const REQUEUE_EVERY_MS = 10_000;

export interface Schedule {
  readonly id: string;
  readonly job: string;
  readonly repeat: Repeat;
  readonly data: Readonly<Record<string, unknown>>;
  readonly options: JobsOptions;
}

type Repeated = { readonly name: string; readonly options: JobsOptions };

function every(ms: number, { name, options }: Repeated): Schedule {
  return { id: name, job: name, repeat: { every: ms }, data: {}, options };
}

function at(
  pattern: string,
  { name, options }: Repeated,
  data: Schedule["data"] = {},
  id: string = name,
): Schedule {
  return { id, job: name, repeat: { pattern, tz: "UTC" }, data, options };
}

type ScheduleSettings = Pick<Config, "syncEveryMs" | "reconcileForMs" | "keepHistoryMs" | "hourlyKeepMs">;

const HOUR_MS = 3_600_000;

export function schedulesOf(config: ScheduleSettings, features: readonly FeatureJob[]): Schedule[] {
  const { hourlyKeepMs } = config;
  const days = (ms: number) => Math.max(1, Math.ceil(ms / (24 * HOUR_MS)));
  const keepHours = hourlyKeepMs === undefined ? {} : { keepHours: Math.ceil(hourlyKeepMs / HOUR_MS) };
  return [
    every(config.syncEveryMs, syncJob),
    every(REQUEUE_EVERY_MS, requeueJob),
    // A check of a longer time costs more requests. It runs less often, because errors of old days are rare.
    at("30 1 * * *", checkTotalsJob, { reach: "month" }, `${checkTotalsJob.name}-month`),
    at("30 2 * * 0", checkTotalsJob, { reach: "quarter" }, `${checkTotalsJob.name}-quarter`),
    at("30 2 5 * *", checkTotalsJob, { reach: "all" }, `${checkTotalsJob.name}-all`),
    at("0 3 * * *", reconcileRangeJob, { days: days(config.reconcileForMs) }),
    at("0 5 * * *", pruneJob, { keepDays: days(config.keepHistoryMs), ...keepHours }),
    ...features.flatMap(({ job: { name, options }, repeat }) =>
      repeat === undefined ? [] : [{ id: name, job: name, repeat, data: {}, options }],
    ),
  ];
}

/**
 * Makes the schedules in Redis equal to the given ones. A schedule that is right is not written again, because that would
 * drop a due run. A next run that is more than one period away comes from a host whose clock was ahead.
 */
export async function restoreSchedules(
  queue: Queue,
  schedules: readonly Schedule[],
  now: number = systemClock.now(),
): Promise<{ restored: number; removed: number }> {
  let restored = 0;
  const present = new Map((await queue.getJobSchedulers()).map((found) => [found.key, found]));
  for (const schedule of schedules) {
    const { id, job, repeat, data, options } = schedule;
    const found = present.get(id);
    const isTooFar = Number(found?.next ?? 0) > latestNext(repeat, now);
    if (found !== undefined && isSame(found, schedule) && !isTooFar) continue;
    // BullMQ would keep the wrong next run.
    if (isTooFar && !(await removeSchedule(queue, id, repeat, now))) continue;
    await queue.upsertJobScheduler(id, repeat, { name: job, data, opts: options });
    restored++;
  }
  const known = new Set(schedules.map((schedule) => schedule.id));
  const surplus = [...present.keys()].filter((key) => !known.has(key));
  for (const key of surplus) await queue.removeJobScheduler(key);
  return { restored, removed: surplus.length };
}

async function areSchedulesPresent(
  queue: Queue,
  schedules: readonly Schedule[],
  { connection, now = systemClock.now() }: { connection: RedisConnection; now?: number },
): Promise<boolean> {
  const listed = await connection.zrange(queue.toKey("repeat"), 0, "-1", "WITHSCORES");
  const next = new Map(listed.flatMap((id, i) => (i % 2 === 0 ? [[id, Number(listed[i + 1])]] : [])));
  return (
    next.size === schedules.length &&
    schedules.every(({ id, repeat }) => (next.get(id) ?? Infinity) <= latestNext(repeat, now))
  );
}

/** Tolerance of a next run: hosts' clocks differ by up to two seconds. */
const SLACK_MS = 5_000;

function latestNext(repeat: Schedule["repeat"], now: number): number {
  return "every" in repeat ? now + repeat.every + SLACK_MS : Number(getNextMillis(now + SLACK_MS, repeat));
}

/** False: a host already runs the schedule's next job. The schedule is right after that job ends. */
async function removeSchedule(
  queue: Queue,
  id: string,
  repeat: Schedule["repeat"],
  now: number,
): Promise<boolean> {
  // A job that ran too early has the id of the right run, and BullMQ adds no second job with an id.
  const early = `repeat:${id}:${"every" in repeat ? "" : getNextMillis(now, repeat)}`;
  if ((await queue.getJob(early)) !== undefined && (await queue.remove(early)) === 0) return false;
  return queue.removeJobScheduler(id);
}

/** Restores schedules now and every 20 s, since Redis may lose them. Skipped while this host's clock is off. */
export async function keepSchedules(
  control: Queue,
  schedules: readonly Schedule[],
  { connection, log, clockOff }: { connection: RedisConnection; log: Logger; clockOff: Pause },
): Promise<() => Promise<void>> {
  let readAt = Number.NEGATIVE_INFINITY;
  const restore = async () => {
    if (clockOff.isPaused()) return;
    try {
      const isRead = performance.now() - readAt < READ_EVERY_MS;
      if (isRead && (await areSchedulesPresent(control, schedules, { connection }))) return;
      const { restored, removed } = await restoreSchedules(control, schedules);
      readAt = performance.now();
      if (restored + removed > 0) log.info({ restored, removed }, "schedules");
    } catch (error) {
      const { message } = faultOf(error) ?? (error as Error);
      log.warn({ code: "schedules_unrestored", reason: message }, "schedules");
    }
  };
  clockOff.onChange(() => void restore());
  await restore();
  const timer = setInterval(() => void restore(), RESTORE_EVERY_MS);
  return async () => clearInterval(timer);
}

function isSame(
  found: { every?: number; pattern?: string; template?: { data?: unknown; opts?: { attempts?: number } } },
  { repeat, data, options }: Schedule,
): boolean {
  const isSameTime =
    "every" in repeat ? Number(found.every) === repeat.every : found.pattern === repeat.pattern;
  const isSameData = isDeepStrictEqual(found.template?.data ?? {}, data);
  return isSameTime && isSameData && found.template?.opts?.attempts === options.attempts;
}
