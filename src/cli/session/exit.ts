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

/** Of several exit codes the one that is first in `EXIT`. */
export function firstExit(exits: readonly number[]): number {
  return Object.values(EXIT).find((code) => exits.includes(code)) ?? EXIT.done;
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof UnreachableError) return EXIT.unreachable;
  if (error instanceof DeadlineError) return EXIT.partlyFailed;
  if (error instanceof PlatformError) {
    // Every attempt has failed by now: a gateway's 502 counts as unreachable too.
    if (error.retryable) return EXIT.unreachable;
    const { code, status = 0 } = error;
    return code === "rpc_error" || (status >= 400 && status < 500) ? EXIT.refused : EXIT.unexpected;
  }
  return EXIT.unexpected;
}

/** An error as text: what happened, then the next step. An unexpected error is shown with its stack. */
export function describeError(error: unknown): string {
  if (error instanceof EtlError) return `${error.message}\n  ${error.next} [${error.code}]`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
