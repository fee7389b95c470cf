import { PlatformError, UnreachableError } from "../../base/errors.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import { isKeyRefused } from "../source/refused-key.ts";
import type { OpenSource } from "../source/source.ts";

export type OnProgress = (progress: { done: number; total: number }) => void;

interface Failed<T> {
  readonly one: T;
  readonly code: string;
  readonly message: string;
}

/**
 * Works on each item in turn, with fresh proof of access. Returns the items whose requests failed. Throws if the whole source
 * must stop: the key is refused, the platform is down, or the error is not the platform's.
 */
export async function sequentially<T extends { readonly meter: Meter }>(
  source: OpenSource,
  all: readonly T[],
  { work, onProgress = () => {} }: { work: (one: T) => Promise<void>; onProgress?: OnProgress | undefined },
): Promise<Failed<T>[]> {
  const failed: Failed<T>[] = [];
  const noteGivenUp = createDownDetector();
  let done = 0;
  for (const one of all) {
    await source.access.fresh();
    try {
      await work(one);
      noteGivenUp(undefined);
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      if (isKeyRefused(error, one.meter)) throw error;
      failed.push({ one, code: error.code, message: error.message });
      noteGivenUp(error.retryable ? error : undefined);
    }
    onProgress({ done: ++done, total: all.length });
  }
  return failed;
}

/** The platform counts as down after this many consecutive requests failed on every attempt. More would make it worse. */
const GIVE_UP_AFTER = 3;

/** Throws `platform_unreachable` at the third consecutive transient failure. */
export function createDownDetector(): (gaveUp: PlatformError | undefined) => void {
  let inARow = 0;
  return (gaveUp) => {
    inARow = gaveUp === undefined ? 0 : inARow + 1;
    if (gaveUp === undefined || inARow < GIVE_UP_AFTER) return;
    throw new UnreachableError({
      code: "platform_unreachable",
      message: `${GIVE_UP_AFTER} fetch tasks in a row failed after every attempt, the last with: ${gaveUp.message}`,
      next: "Check whether the platform is up. Loaded days are kept, and the next sync continues.",
      retryable: true,
      cause: gaveUp,
    });
  };
}
