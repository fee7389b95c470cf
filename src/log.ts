import { type Logger, pino } from "pino";
import { systemClock } from "./clock.ts";

export type { Logger };

/** Paths that never reach a line, whoever passes them. */
const REDACTED = ["apiKey", "*.apiKey", "headers", "*.headers", "password", "*.password", "url", "*.url"];

/**
 * JSON lines: of a command on stderr, since its stdout is for data; of the service on stdout. `level` as pino's,
 * `silent` for none.
 */
export function createLogger(level: string, to: "stderr" | "stdout" = "stderr"): Logger {
  return pino(
    { level, base: null, redact: REDACTED, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: to === "stdout" ? 1 : 2, sync: true }),
  );
}

const SAY_AGAIN_AFTER_MS = 30_000;

export type WarnSparingly = (about: { code: string; at: string; reason: string }) => void;

/** Says the same thing once in 30 s: a Redis that is away or demoted raises thousands of errors a second. */
export function sparingly(log: Logger): WarnSparingly {
  const saidAt = new Map<string, number>();
  return (about) => {
    const now = systemClock.now();
    if (now - (saidAt.get(about.code) ?? 0) < SAY_AGAIN_AFTER_MS) return;
    saidAt.set(about.code, now);
    log.warn(about, "connection");
  };
}
