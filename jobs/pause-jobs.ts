import { CLOCK_TOLERANCE_MS, type Clock, describeDuration } from "../src/core/base/clock.ts";
import type { EtlError } from "../src/core/base/errors.ts";
import { faultOf, stopsWrites } from "../src/core/base/faults.ts";
import type { Logger } from "../src/core/base/log.ts";

export interface Pause {
  isPaused(): boolean;
  onChange(listener: () => void): void;
}

export function createPause({ paused = false } = {}): Pause & { set(paused: boolean): void } {
  const listeners: (() => void)[] = [];
  let isPaused = paused;
  return {
    isPaused: () => isPaused,
    onChange: (listener) => void listeners.push(listener),
    set: (now) => {
      if (now === isPaused) return;
      isPaused = now;
      for (const listener of listeners) listener();
    },
  };
}

/** Time between comparisons with Redis's clock. They run every second after a jump or while the clock is off. */
const REQUEST_EVERY_MS = 10_000;
const LOOK_EVERY_MS = 1_000;
/** A smaller change may be a gradual correction; a larger one means that somebody set the clock. */
const JUMP_MS = 250;

interface GuardInput {
  /** Redis's clock, epoch milliseconds. */
  readonly redisTime: () => Promise<number>;
  readonly clock: Pick<Clock, "now" | "wait">;
  /** Milliseconds of a monotonic clock. It shows a jump of `clock` without Redis. */
  readonly elapsed?: () => number;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Paused while this host's clock differs from Redis's. BullMQ schedules by the clock of the host that takes a job: a host
 * that is an hour ahead would stop all others for an hour.
 */
export async function startClockGuard({
  redisTime,
  clock,
  elapsed = () => performance.now(),
  log,
  signal,
}: GuardInput): Promise<Pause> {
  const { set, ...pause } = createPause({ paused: true });
  let isOff = false;
  let requested = { at: Number.NEGATIVE_INFINITY, ahead: 0 };
  const look = async () => {
    const before = clock.now();
    const time = await redisTime();
    const after = clock.now();
    // Redis read its clock between `before` and `after`.
    const offMs = Math.round(Math.max(before - time, time - after, 0));
    const wasOff = isOff;
    isOff = offMs > CLOCK_TOLERANCE_MS;
    if (isOff && !wasOff) {
      const reason = `The clocks of this host and Redis differ by ${describeDuration(offMs)}. This process takes no jobs until they agree.`;
      log.error({ code: "clock_off", reason, offMs }, "clock");
    }
    if (wasOff && !isOff) log.info({ offMs }, "clock is right again");
    set(isOff);
    requested = { at: elapsed(), ahead: clock.now() - elapsed() };
  };
  const mustRequest = () => {
    const hasJumped = Math.abs(clock.now() - elapsed() - requested.ahead) > JUMP_MS;
    return pause.isPaused() || hasJumped || elapsed() - requested.at >= REQUEST_EVERY_MS;
  };
  // Without a response nothing changes: a Redis that is away gives no jobs either.
  const tryLook = () => look().catch(() => {});
  const goOn = async () => {
    for (;;) {
      await clock.wait(LOOK_EVERY_MS, signal);
      if (mustRequest()) await tryLook();
    }
  };
  await tryLook();
  // The loop ends only with the process.
  goOn().catch(() => {});
  return pause;
}

const CAP_MS = 5_000;
/** A gate that closes again sooner keeps its pauses: a load may need more space than the test write. */
const RELAPSE_MS = 60_000;

export interface StoreGate extends Pause {
  fault(): EtlError | undefined;
  check(): void;
  note(error: unknown): boolean;
  onceWritable(write: () => Promise<void>): Promise<void>;
}

interface GateInput {
  readonly tryWrite: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export function createStoreGate({ tryWrite, clock, log, signal }: GateInput): StoreGate {
  const { set, ...pause } = createPause();
  const owed: (() => Promise<void>)[] = [];
  let fault: EtlError | undefined;
  let attempt = 0;
  let openedAt = Number.NEGATIVE_INFINITY;

  const stopOf = (error: unknown) => {
    const found = faultOf(error);
    return found !== undefined && stopsWrites(found.code) ? found : undefined;
  };
  const say = ({ code, message }: EtlError) => {
    log.warn({ code, reason: message }, "store does not write: no fetch task is taken");
  };
  const write = async () => {
    await tryWrite();
    for (let next = owed[0]; next !== undefined; next = owed[0]) {
      await next();
      owed.shift();
    }
  };
  /** Full jitter keeps processes from returning to Postgres at the same instant. */
  const reopen = async (closedAt: number) => {
    for (;;) {
      await clock.wait(Math.random() * Math.min(CAP_MS, 1000 * 2 ** attempt++), signal);
      const stop = await write().then(() => undefined, stopOf);
      if (stop === undefined) break;
      if (stop.code !== fault?.code) say(stop);
      fault = stop;
    }
    openedAt = clock.now();
    // Without a code, this line is never dropped as a repetition.
    log.info({ fault: fault?.code, backedOffMs: openedAt - closedAt }, "store writes again");
    fault = undefined;
    set(false);
  };
  const note = (error: unknown) => {
    const stop = stopOf(error);
    if (stop === undefined) return false;
    if (fault !== undefined) return true;
    fault = stop;
    const closedAt = clock.now();
    if (closedAt - openedAt > RELAPSE_MS) attempt = 0;
    say(stop);
    set(true);
    // The attempts end early only with the process.
    reopen(closedAt).catch(() => {});
    return true;
  };
  return {
    ...pause,
    note,
    fault: () => fault,
    check: () => {
      if (fault !== undefined) throw fault;
    },
    onceWritable: async (later) => {
      try {
        if (fault === undefined) return await later();
      } catch (error) {
        if (!note(error)) throw error;
      }
      owed.push(later);
    },
  };
}
