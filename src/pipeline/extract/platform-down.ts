import { type PlatformError, UnreachableError } from "../../errors.ts";

/** Requests in a row that failed after every attempt: the platform is down, and more requests only make it worse. */
const GIVE_UP_AFTER = 3;

/** Counts passing failures in a row. Throws `platform_unreachable` at the third. */
export function createDownDetector(): (gaveUp: PlatformError | undefined) => void {
  let inARow = 0;
  return (gaveUp) => {
    inARow = gaveUp === undefined ? 0 : inARow + 1;
    if (gaveUp === undefined || inARow < GIVE_UP_AFTER) return;
    throw new UnreachableError({
      code: "platform_unreachable",
      message: `${GIVE_UP_AFTER} fetch tasks in a row failed after every attempt, the last with: ${gaveUp.message}`,
      next: "See whether the platform is up. What was loaded stays, and the next sync goes on from there.",
      retryable: true,
      cause: gaveUp,
    });
  };
}
