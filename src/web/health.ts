import { monitorEventLoopDelay } from "node:perf_hooks";
import { CLOCK_TOLERANCE_MS, describeDuration } from "../core/base/clock.ts";
import type { Database } from "../core/store/db/database.ts";
import { pendingMigrations } from "../core/store/db/schema-version.ts";

export interface ProcessState {
  /** Epoch ms. */
  startedAt: number;
  takesJobs: boolean;
  /** Time of the last response of the control queue, with or without a job; epoch ms. Undefined: none yet. */
  lastJobAt: number | undefined;
  /** Keys are slugs. Empty if this process fetches nothing. */
  readonly fetching: Map<string, { readonly standsStillMs: () => number }>;
  /** Keys are slugs. A value returns why Postgres cannot write, so that nothing is fetched; else undefined. */
  readonly storeFaults: Map<string, () => string | undefined>;
  draining: boolean;
}

export interface Health {
  readonly ok: boolean;
  readonly draining?: boolean;
  /** Keys are names of checks. Values are `ok` or the problem. */
  readonly checks: Readonly<Record<string, string>>;
}

export function processState(startedAt: number): ProcessState {
  return {
    startedAt,
    takesJobs: false,
    lastJobAt: undefined,
    fetching: new Map(),
    storeFaults: new Map(),
    draining: false,
  };
}

/** A worker polls every 10 s. Without a response for this long, the worker or Redis hangs. */
const HUNG_AFTER_MS = 120_000;
/**
 * A process that begins and ends no fetch task for this long, although one is due, needs a restart. A task may take minutes
 * for its request and up to 15 for its load.
 */
const STANDS_STILL_AFTER_MS = 20 * 60_000;
const SLOW_LOOP_MS = 5_000;

const loop = monitorEventLoopDelay({ resolution: 20 });
loop.enable();
/** The monitor records a delay after the waiting requests ran, so the time since the last tick counts too. */
const TICK_MS = 500;
let tickedAt = performance.now();
setInterval(() => {
  tickedAt = performance.now();
}, TICK_MS).unref();

/** Returns whether the process works. No server is checked, because a restart would not bring a database back. */
export function liveness(state: ProcessState, now: number): Health {
  const lag = Math.max(loop.max / 1e6, performance.now() - tickedAt - TICK_MS);
  loop.reset();
  const idle = now - (state.lastJobAt ?? state.startedAt);
  const isHung = state.takesJobs && !state.draining && idle > HUNG_AFTER_MS;
  const stuck = [...state.fetching].filter(
    ([, { standsStillMs }]) => standsStillMs() > STANDS_STILL_AFTER_MS,
  );
  const minutes = STANDS_STILL_AFTER_MS / 60_000;
  return toHealth({
    event_loop: lag > SLOW_LOOP_MS ? `blocked for ${describeDuration(lag)}` : undefined,
    jobs: isHung ? `no worker asked for a job for ${Math.round(idle / 1000)} s` : undefined,
    fetching:
      stuck.length > 0 && !state.draining
        ? `no fetch task of ${stuck.map(([slug]) => slug).join(", ")} was taken or ended for ${minutes} min, although some are due`
        : undefined,
  });
}

interface ReadinessInput {
  readonly state: ProcessState;
  readonly reader: Database;
  /** Returns Redis's clock, epoch ms. Rejects if Redis does not respond or refuses a write. */
  readonly redisTime: () => Promise<number>;
  readonly now: () => number;
}

export async function readiness({ state, reader, redisTime, now }: ReadinessInput): Promise<Health> {
  const [postgres, redis] = await Promise.all([
    within(pendingMigrations(reader)).then(
      (pending) => (pending.length > 0 ? `lacks migrations: ${pending.join(", ")}` : undefined),
      (error: Error) => error.message,
    ),
    within(redisTime()).then(
      (time) => {
        const off = Math.abs(time - now());
        return off > CLOCK_TOLERANCE_MS ? `the clock is ${describeDuration(off)} off Redis's` : undefined;
      },
      (error: Error) => error.message,
    ),
  ]);
  const store = [...state.storeFaults.values()].map((fault) => fault()).find((fault) => fault !== undefined);
  const { ok, checks } = toHealth({ postgres, store, redis });
  return { ok: ok && !state.draining, draining: state.draining, checks };
}

function toHealth(problems: Readonly<Record<string, string | undefined>>): Health {
  const checks = Object.fromEntries(
    Object.entries(problems).map(([name, problem]) => [name, problem ?? "ok"]),
  );
  return { ok: Object.values(problems).every((problem) => problem === undefined), checks };
}

const CHECK_WITHIN_MS = 3_000;

export class LateError extends Error {}

/** Rejects with a `LateError` if the work takes longer than `ms` (three seconds). The work is not stopped. */
export async function within<T>(work: Promise<T>, ms = CHECK_WITHIN_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LateError(`no response within ${ms} ms`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
