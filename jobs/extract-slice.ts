import { RateLimitError, UnrecoverableError } from "bullmq";
import { z } from "zod";
import { PlatformError } from "../src/errors.ts";
import { returnMessages, workMessage } from "../src/pipeline/extract/work-slice.ts";
import { isKeyRefused } from "../src/pipeline/source/refusal.ts";
import { pauseOf } from "../src/pipeline/source/retry.ts";
import { defineJob, type JobContext } from "./job.ts";

/** How often a request is tried before its slice is kept as a failure. */
const ATTEMPTS = 8;

/** Fetches one slice and replaces its window. */
export const extractSliceJob = defineJob({
  name: "extract-slice",
  queue: "fetch",
  payload: z.strictObject({ sliceId: z.int().positive(), generation: z.int().positive() }),
  options: {
    attempts: ATTEMPTS,
    backoff: { type: "custom" },
    removeOnComplete: true,
    removeOnFail: { count: 500 },
  },
  handle: async (context, { sliceId, generation }, job) => {
    const isLastAttempt = job.attemptsMade + 1 >= ATTEMPTS;
    try {
      // A job's own signal: it ends where the job has become another worker's, and the process goes on.
      const source = { ...(await context.source.open()), signal: context.signal };
      const result = await workMessage(source, { sliceId, generation, isLastAttempt });
      return "rows" in result
        ? {
            outcome: result.outcome,
            requests: result.requests,
            ...result.rows,
            followUps: result.followUps.length,
          }
        : { outcome: result.outcome };
    } catch (error) {
      return handBack(context, error, sliceId);
    }
  },
});

/** Decides what becomes of a ticket whose work threw: nothing of the slice is lost in any of these ways. */
async function handBack({ holdBack, source }: JobContext, error: unknown, sliceId: number): Promise<never> {
  if (isKeyRefused(error)) {
    await returnMessages((await source.known()).store, [sliceId]);
    throw new UnrecoverableError(error.message);
  }
  if (error instanceof PlatformError && error.status === 429) {
    // The limit is the whole key's: everybody waits, and no attempt is used.
    await holdBack(pauseOf(error, 1));
    throw new RateLimitError();
  }
  throw error;
}
