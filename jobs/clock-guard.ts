import { type Clock, describeDuration } from "../src/clock.ts";
import type { Logger } from "../src/log.ts";
import { createHold, type Hold } from "./hold.ts";

/** Hosts whose clocks differ by more would schedule the same job at different times. */
const TOLERANCE_MS = 2_000;
/** Asks Redis so often. A clock that somebody sets, or that is off, is compared within a second. */
export const ASK_EVERY_MS = 10_000;
const LOOK_EVERY_MS = 1_000;
/** By how much a clock has jumped if nobody corrects it little by little. */
const JUMP_MS = 250;

interface GuardInput {
  /** Redis's clock, epoch milliseconds. */
  readonly redisTime: () => Promise<number>;
  readonly clock: Pick<Clock, "now" | "wait">;
  /** Milliseconds since some instant, by a clock that nobody sets: it shows that `clock` was set, without asking Redis. */
  readonly elapsed?: () => number;
  readonly log: Logger;
  /** Ends the guard. */
  readonly signal: AbortSignal;
}

/**
 * Holds while this process's clock is off Redis's, and until it was compared for the first time. BullMQ computes the next
 * run of a schedule by the clock of whoever takes a job: one host that is an hour ahead would stop all others for an hour.
 */
export async function startClockGuard({
  redisTime,
  clock,
  elapsed = () => performance.now(),
  log,
  signal,
}: GuardInput): Promise<Hold> {
  const { set, ...hold } = createHold({ held: true });
  let isOff = false;
  let asked = { at: Number.NEGATIVE_INFINITY, ahead: 0 };
  const look = async () => {
    const before = clock.now();
    const time = await redisTime();
    const after = clock.now();
    // Redis read its clock at some instant in between.
    const offMs = Math.round(Math.max(before - time, time - after, 0));
    const wasOff = isOff;
    isOff = offMs > TOLERANCE_MS;
    if (isOff && !wasOff) {
      const reason = `The clock is ${describeDuration(offMs)} off Redis's. This process takes no jobs until it is right.`;
      log.error({ code: "clock_off", reason, offMs }, "clock");
    }
    if (wasOff && !isOff) log.info({ offMs }, "clock is right again");
    set(isOff);
    asked = { at: elapsed(), ahead: clock.now() - elapsed() };
  };
  const mustAsk = () => {
    const hasJumped = Math.abs(clock.now() - elapsed() - asked.ahead) > JUMP_MS;
    return hold.isHeld() || hasJumped || elapsed() - asked.at >= ASK_EVERY_MS;
  };
  // A Redis that does not answer says nothing about the clock. It gives no jobs either.
  const tryLook = () => look().catch(() => {});
  const goOn = async () => {
    for (;;) {
      await clock.wait(LOOK_EVERY_MS, signal);
      if (mustAsk()) await tryLook();
    }
  };
  await tryLook();
  // It only ends with the process.
  goOn().catch(() => {});
  return hold;
}
