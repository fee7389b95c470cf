import { type Logger, type LoggerOptions, pino } from "pino";
import { type Clock, systemClock } from "./clock.ts";
import { printable } from "./printable.ts";

export type { Logger };

const REDACTED = ["apiKey", "*.apiKey", "headers", "*.headers", "password", "*.password", "url", "*.url"];

/** A command's lines go to stderr, because its stdout is for data; the service's go to stdout. */
export type LogTarget = "stderr" | "stdout" | { write(line: string): void };

export function createLogger(level: string, to: LogTarget): Logger {
  const log = pino(
    {
      level,
      base: null,
      redact: REDACTED,
      timestamp: pino.stdTimeFunctions.isoTime,
      hooks: {
        streamWrite: printable,
        logMethod: limitLines(systemClock, (leftOut) => log.warn(leftOut, "lines left out")),
      },
    },
    typeof to === "object" ? to : openDestination(to === "stdout" ? 1 : 2),
  );
  return log;
}

/** Most characters that wait in memory while the disk is full. */
const MOST_WAITING = 1_048_576;

/** A log that cannot be written must not stop work. */
function openDestination(fd: number) {
  const destination = pino.destination({ fd, sync: true, maxLength: MOST_WAITING });
  destination.on("error", () => {});
  return destination;
}

export type Warn = (about: { code: string; at: string; reason: string }) => void;

/** The 20th line of a minute counts the lines left out. */
const LINES = 19;
const IN_MS = 60_000;

type LogMethod = NonNullable<NonNullable<LoggerOptions["hooks"]>["logMethod"]>;

/**
 * Logs at most 20 lines of a code a minute, over all loggers: a Redis that is down raises thousands of errors a second. `tell`
 * must log the number of lines left out. It is called a minute later, and at exit.
 */
export function limitLines(
  clock: Pick<Clock, "now">,
  tell: (about: { code: string; leftOut: number }) => void,
): LogMethod {
  const faults = new Map<string, { readonly loggedAt: number[]; leftOut: number }>();
  const tellOf = (code: string) => {
    const { leftOut = 0 } = faults.get(code) ?? {};
    if (leftOut > 0) tell({ code, leftOut });
  };
  process.once("exit", () => {
    for (const code of faults.keys()) tellOf(code);
  });
  return function limited(args, method) {
    const { code, leftOut } = Object(args[0]) as { code?: unknown; leftOut?: number };
    if (typeof code !== "string" || code === "") return method.apply(this, args);
    const now = clock.now();
    const fault = faults.get(code) ?? { loggedAt: [], leftOut: 0 };
    faults.set(code, fault);
    const { loggedAt } = fault;
    while (loggedAt[0] !== undefined && loggedAt[0] <= now - IN_MS) loggedAt.shift();
    if (leftOut !== undefined) fault.leftOut -= leftOut;
    else if (loggedAt.length >= LINES) {
      fault.leftOut++;
      if (fault.leftOut === 1) setTimeout(tellOf, IN_MS, code).unref();
      return;
    }
    loggedAt.push(now);
    method.apply(this, args);
  };
}
