import { CommanderError } from "commander";
import {
  DeadlineError,
  InterruptedError,
  PlatformError,
  UnreachableError,
  UsageError,
} from "../core/base/errors.ts";
import { knownError } from "./error.ts";

/** Exit codes. If several apply, the first in this list is used. */
export const EXIT = {
  /** 128 and the number of SIGINT, as in a shell. */
  interrupted: 130,
  usage: 2,
  refused: 5,
  unreachable: 6,
  partlyFailed: 3,
  mismatch: 4,
  unexpected: 1,
  done: 0,
} as const;

export function firstExit(exits: readonly number[]): number {
  return Object.values(EXIT).find((code) => exits.includes(code)) ?? EXIT.done;
}

export function exitCodeOf(given: unknown): number {
  if (given instanceof CommanderError) return given.exitCode === 0 ? EXIT.done : EXIT.usage;
  const error = knownError(given);
  if (error instanceof InterruptedError) return EXIT.interrupted;
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof UnreachableError) return EXIT.unreachable;
  if (error instanceof DeadlineError) return EXIT.partlyFailed;
  if (error instanceof PlatformError) {
    // Every attempt has failed by now, so a gateway's 502 counts as unreachable.
    if (error.retryable) return EXIT.unreachable;
    const { code, status = 0 } = error;
    // The platform does not redirect, so a redirect counts as refused.
    return code === "rpc_error" || (status >= 300 && status < 500) ? EXIT.refused : EXIT.unexpected;
  }
  return EXIT.unexpected;
}
