import { type Logger, pino } from "pino";
import { systemClock } from "./clock.ts";
import { printable } from "./printable.ts";

export type { Logger };

/** Fields that are never logged. */
const REDACTED = ["apiKey", "*.apiKey", "headers", "*.headers", "password", "*.password", "url", "*.url"];

/** JSON lines. A command logs to stderr, because its stdout is for data; the service logs to stdout. */
export function createLogger(level: string, to: "stderr" | "stdout" = "stderr"): Logger {
  return pino(
    {
      level,
      base: null,
      redact: REDACTED,
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: { streamWrite: printable },
    },
    pino.destination({ fd: to === "stdout" ? 1 : 2, sync: true }),
  );
}

const REPEAT_AFTER_MS = 30_000;

export type WarnSparingly = (about: { code: string; at: string; reason: string }) => void;

/** Logs a code once in 30 s: a Redis that is down or demoted raises thousands of errors a second. */
export function sparingly(log: Logger): WarnSparingly {
  const loggedAt = new Map<string, number>();
  return (about) => {
    const now = systemClock.now();
    if (now - (loggedAt.get(about.code) ?? 0) < REPEAT_AFTER_MS) return;
    loggedAt.set(about.code, now);
    log.warn(about, "connection");
  };
}
