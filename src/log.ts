import { type Logger, pino } from "pino";

export type { Logger };

/** Paths that never reach a line, whoever passes them. */
const REDACTED = ["apiKey", "*.apiKey", "headers", "*.headers", "password", "*.password", "url", "*.url"];

/** JSON lines on stderr: stdout is for data. `level` as pino's, `silent` for none. */
export function createLogger(level: string): Logger {
  return pino(
    { level, base: null, redact: REDACTED, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
}
