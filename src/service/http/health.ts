import { monitorEventLoopDelay } from "node:perf_hooks";
import { checkSchema, type Reader } from "../../store/report/overview.ts";

/** What the pages know of the process they speak for. */
export interface ProcessState {
  /** Epoch milliseconds of start. */
  readonly startedAt: number;
  /** Whether this process takes jobs: then it must have taken one lately. */
  readonly takesJobs: boolean;
  lastJobAt(): number | undefined;
  readonly draining: boolean;
  /** Resolves to Redis's clock, epoch milliseconds; rejects where it does not answer. */
  redisTime(): Promise<number>;
}

export interface Health {
  readonly ok: boolean;
  /** What was looked at, and what is wrong with it. */
  readonly checks: Readonly<Record<string, string>>;
}

/** The feed comes every 5 s: a process that took nothing for so long is wedged, or its Redis is. */
const WEDGED_AFTER_MS = 120_000;
const SLOW_LOOP_MS = 5_000;
/** A clock further off than this schedules the next tick wrongly for every host. */
const CLOCK_TOLERANCE_MS = 2_000;
const CHECK_WITHIN_MS = 3_000;

const loop = monitorEventLoopDelay({ resolution: 20 });
loop.enable();

/** Whether the process is worth keeping. Depends on nothing outside: a database that is down must not restart it. */
export function liveness(state: ProcessState, now: number): Health {
  const lag = loop.max / 1e6;
  loop.reset();
  const idle = now - (state.lastJobAt() ?? state.startedAt);
  const isWedged = state.takesJobs && !state.draining && idle > WEDGED_AFTER_MS;
  return toHealth({
    event_loop: lag > SLOW_LOOP_MS ? `blocked for ${Math.round(lag)} ms` : undefined,
    jobs: isWedged ? `no job was taken for ${Math.round(idle / 1000)} s` : undefined,
  });
}

/** Whether the process can work now. */
export async function readiness(state: ProcessState, reader: Reader, now: () => number): Promise<Health> {
  const [postgres, redis] = await Promise.all([
    within(checkSchema(reader)).then(
      (pending) => (pending.length > 0 ? `lacks migrations: ${pending.join(", ")}` : undefined),
      (error: Error) => error.message,
    ),
    within(state.redisTime()).then(
      (time) => {
        const off = Math.abs(time - now());
        return off > CLOCK_TOLERANCE_MS ? `clock is ${off} ms off Redis's` : undefined;
      },
      (error: Error) => error.message,
    ),
  ]);
  return toHealth({ postgres, redis, draining: state.draining ? "the process ends" : undefined });
}

function toHealth(problems: Readonly<Record<string, string | undefined>>): Health {
  const checks = Object.fromEntries(
    Object.entries(problems).map(([name, problem]) => [name, problem ?? "ok"]),
  );
  return { ok: Object.values(problems).every((problem) => problem === undefined), checks };
}

async function within<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_WITHIN_MS} ms`)), CHECK_WITHIN_MS);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
