import { evicts, lacksCommands, NOT_APPENDING } from "../../../jobs/queues.ts";
import { lookAtRedis, type QueueView, type RedisView } from "../../../jobs/redis-view.ts";
import type { Schedule } from "../../../jobs/schedule.ts";
import { CLOCK_TOLERANCE_MS, describeDuration, systemClock } from "../../core/base/clock.ts";
import type { Config } from "../../core/base/config.ts";
import { counted } from "../../core/base/printable.ts";
import { describeRedis, type RedisServer } from "../../core/base/redis-server.ts";
import { type Notes, problemOf } from "../../terminal/check.ts";
import { EXIT } from "../../terminal/exit.ts";

/** Workers take due jobs at once, and a job takes seconds. */
const OVERDUE_AFTER_MS = 60_000;

/** Undefined if no Redis is configured, or it does not respond. */
export async function checkRedisServer(config: Config, notes: Notes): Promise<RedisView | undefined> {
  if (config.redis === undefined) {
    notes.skip("redis", "REDIS_URL is not set. Only commands with --inline work.");
    return undefined;
  }
  try {
    const view = await lookAtRedis(
      config.redis,
      config.sources.map(({ slug }) => slug),
    );
    noteView(view, config.redis, notes);
    return view;
  } catch (error) {
    notes.fail("redis", problemOf(error));
    for (const check of ["redis_write", "redis_commands", "redis_eviction"])
      notes.skip(check, "Redis does not respond.");
    return undefined;
  }
}

function noteView(view: RedisView, server: RedisServer, notes: Notes): undefined {
  const { version, respondedInMs, writeFault, commandFault, policy, appendsOnly, clockOffMs } = view;
  notes.pass("redis", `${version} ${placeOf(server)} answers in ${respondedInMs} ms`);
  if (writeFault === undefined) notes.pass("redis_write", "takes a write");
  else notes.fail("redis_write", writeProblem(writeFault), EXIT.unreachable);
  const unsuitable = lacksCommands(commandFault);
  if (unsuitable === undefined) notes.pass("redis_commands", "allows blocking reads, scripts and streams");
  else notes.fail("redis_commands", unsuitable);
  const refused = evicts(policy);
  if (refused !== undefined) notes.fail("redis_eviction", refused);
  else if (appendsOnly) notes.pass("redis_eviction", "noeviction, and appendonly is on");
  else {
    notes.warn("redis_eviction", {
      code: "redis_settings",
      message: `noeviction; ${NOT_APPENDING}.`,
      next: "Set appendonly to yes in Redis.",
    });
  }
  const off = Math.abs(clockOffMs);
  if (off <= CLOCK_TOLERANCE_MS) return notes.pass("redis_clock", "is that of this host");
  const problem = {
    code: "clock_off",
    message: `The clocks of this host and Redis differ by ${describeDuration(off)}, so no worker on this host takes jobs.`,
    next: "Synchronize the clock by NTP.",
  };
  notes.fail("redis_clock", problem, EXIT.unreachable);
}

function placeOf(server: RedisServer): string {
  const [, place = ""] = /^Redis (at .*)/.exec(describeRedis(server)) ?? [];
  return place || `(${server.kind}): ${describeRedis(server)}`;
}

function writeProblem(reason: string) {
  const code = /^READONLY/.test(reason) ? "redis_read_only" : "redis_full";
  return {
    code,
    message: `Redis refuses writes: ${reason}.`,
    next: "Check whether Redis failed over, and give it more memory or disk space.",
  };
}

export function checkService(
  view: RedisView | undefined,
  { slug, schedules }: { slug: string; schedules: readonly Schedule[] },
  notes: Notes,
): void {
  const queues = view?.sources.get(slug);
  if (view === undefined || queues === undefined) {
    for (const check of ["schedules", "workers"])
      notes.skip(check, "Not checked, because Redis does not respond.");
    return;
  }
  const expected = schedules.map(({ id }) => id);
  const missing = expected.filter((id) => !queues.schedules.has(id));
  const { schedulers } = view;
  const start = "Start `usage-etl serve --role scheduler` (or `all`)";
  if (missing.length > 0) {
    notes.warn("schedules", {
      code: "schedules_missing",
      message: `${missing.length} of ${expected.length} schedules are not in Redis: ${missing.join(", ")}.`,
      next: `${start}, or let cron run \`usage-etl sync --inline\`.`,
    });
  } else if (schedulers === 0) {
    notes.warn("schedules", {
      code: "scheduler_missing",
      message: `All ${expected.length} are in Redis, but no scheduler is connected to it. A Redis that loses them stops every sync.`,
      next: `${start}.`,
    });
  } else {
    notes.pass(
      "schedules",
      `all ${expected.length} are in Redis, kept by ${schedulers === undefined ? "an unknown number of schedulers" : counted(schedulers, "scheduler")}`,
    );
  }
  noteWorkers(queues, notes);
}

function noteWorkers({ workers, schedules, nextSync = Infinity }: QueueView, notes: Notes): undefined {
  const overdue = systemClock.now() - nextSync;
  const next = "Start `usage-etl serve --role worker` (or `all`), and look at its log.";
  if (workers === undefined) return notes.skip("workers", "Redis does not list its clients (CLIENT LIST).");
  if (workers === 0) {
    const message = "No worker is connected to Redis for this source.";
    const problem = { code: "workers_missing", message, next };
    // Without schedules the service was never started, so no worker is expected.
    if (schedules.size === 0) return notes.warn("workers", problem);
    notes.fail("workers", problem, EXIT.unreachable);
    return;
  }
  const seen = `${counted(workers, "worker")} seen`;
  if (overdue < OVERDUE_AFTER_MS) return notes.pass("workers", seen);
  const message = `${seen}, but the next sync has been due for ${describeDuration(overdue)}.`;
  notes.fail(
    "workers",
    { code: "sync_overdue", message, next: "Look at the logs of the workers." },
    EXIT.unreachable,
  );
}
