import { CommanderError } from "commander";
import { DeadlineError, EtlError, PlatformError, UnreachableError, UsageError } from "../../errors.ts";

/** Exit codes of every command; where several apply, the first of this order. */
export const EXIT = {
  usage: 2,
  refused: 5,
  unreachable: 6,
  partlyFailed: 3,
  mismatch: 4,
  unexpected: 1,
  done: 0,
} as const;

/** Of several exit codes the one that stands first in the table above. */
export function firstExit(exits: readonly number[]): number {
  return Object.values(EXIT).find((code) => exits.includes(code)) ?? EXIT.done;
}

/** The exit code that says what kind of failure an error is. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof UnreachableError) return EXIT.unreachable;
  if (error instanceof DeadlineError) return EXIT.partlyFailed;
  if (error instanceof PlatformError) {
    if (error.status === 401 || error.status === 403) return EXIT.refused;
    // What is worth trying again has been, to the last attempt: a gateway's 502 is a server out of reach too.
    return error.retryable ? EXIT.unreachable : EXIT.unexpected;
  }
  return EXIT.unexpected;
}

/** What a person reads of an error: what is wrong, then the next step. An unexpected one shows where it arose. */
export function describeError(error: unknown): string {
  if (error instanceof EtlError) return `${error.message}\n  ${error.next} [${error.code}]`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
