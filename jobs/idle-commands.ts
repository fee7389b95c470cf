import { ASK_EVERY_MS } from "./clock-guard.ts";
import { READ_EVERY_MS, REQUEUE_EVERY_MS, RESTORE_EVERY_MS } from "./schedule.ts";
import { STALLED_CHECK_MS, WAIT_FOR_JOB_S } from "./workers.ts";

/** What a job costs from its schedule to its end, as `npm run bench:idle` counted it with BullMQ 6.7. */
const COMMANDS_OF_A_JOB = 9;
/** How often a process looks whether fetch tasks wait (src/service/fetch-progress.ts). */
const LOOK_AT_QUEUE_MS = 20_000;

/**
 * Commands an hour that one process with all roles sends to Redis while nothing is to do; scripts count as one. Each further
 * worker adds what it asks by itself. Probes of `/readyz` and scrapes of `/metrics` come on top.
 */
export function idleCommandsPerHour(sources: readonly { schedules: number }[], syncEveryMs: number): number {
  const times = (everyMs: number) => 3_600_000 / everyMs;
  const ofSource = ({ schedules }: { schedules: number }) =>
    times(RESTORE_EVERY_MS) +
    (schedules + 1) * times(READ_EVERY_MS) +
    // A worker waits, then asks. That of the control queue is woken by its jobs.
    2 * times(WAIT_FOR_JOB_S * 1000) +
    2 * times(STALLED_CHECK_MS) +
    times(LOOK_AT_QUEUE_MS) +
    COMMANDS_OF_A_JOB * (times(REQUEUE_EVERY_MS) + times(syncEveryMs));
  return Math.round(sources.reduce((all, source) => all + ofSource(source), times(ASK_EVERY_MS)));
}
