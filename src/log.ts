import { type Logger, pino } from "pino";

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
