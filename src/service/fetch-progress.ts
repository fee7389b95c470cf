import type { Queue } from "bullmq";
import type { Clock } from "../clock.ts";

/**
 * Whether the fetch tasks of one source move in this process. Every job that is taken or ends is a move, whatever came of
 * it: a platform that is down, refuses the key or limits requests ends jobs all the time.
 */
export interface FetchProgress {
  /** A fetch job has begun. Returns what to call when it has ended. */
  readonly begin: () => () => void;
  /** Whether messages wait in the queue that a worker may take now. */
  readonly noteWaiting: (isWaiting: boolean) => void;
  /** How long nothing has moved although something is due, milliseconds; 0 if nothing is. */
  readonly standsStillMs: () => number;
}

export function createFetchProgress({ now }: Pick<Clock, "now">): FetchProgress {
  let running = 0;
  let isWaiting = false;
  let movedAt = now();
  const isDue = () => running > 0 || isWaiting;
  return {
    begin: () => {
      running++;
      movedAt = now();
      return () => {
        running--;
        movedAt = now();
      };
    },
    noteWaiting: (waiting) => {
      // What becomes due only now has not stood still before.
      if (waiting && !isDue()) movedAt = now();
      isWaiting = waiting;
    },
    standsStillMs: () => (isDue() ? now() - movedAt : 0),
  };
}

const LOOK_EVERY_MS = 20_000;

/**
 * Tells `progress` every 20 s what waits in the queue. Nothing is known to wait where Redis does not say, and nothing may be
 * taken while this process is held back.
 */
export function watchQueue(queue: Queue, { noteWaiting }: FetchProgress, isHeld: () => boolean): () => void {
  const timer = setInterval(() => {
    isFetchWaiting(queue).then(
      (isWaiting) => noteWaiting(isWaiting && !isHeld()),
      () => noteWaiting(false),
    );
  }, LOOK_EVERY_MS).unref();
  return () => clearInterval(timer);
}

/** Whether messages wait and nothing holds them back: no pause, no limit of requests. */
export async function isFetchWaiting(queue: Queue): Promise<boolean> {
  if ((await queue.getJobCountByTypes("waiting", "prioritized")) === 0) return false;
  const [isPaused, limitedForMs] = await Promise.all([queue.isPaused(), queue.getRateLimitTtl()]);
  return !isPaused && limitedForMs <= 0;
}
