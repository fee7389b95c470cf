import { RateLimitError, UnrecoverableError } from "bullmq";
import { z } from "zod";
import { PlatformError } from "../src/core/base/errors.ts";
import { returnMessages, workMessage } from "../src/core/pipeline/extract/work-task.ts";
import { isKeyRefused } from "../src/core/pipeline/source/refused-key.ts";
import { pauseOf } from "../src/core/pipeline/source/retries.ts";
import { defineJob, type JobContext } from "./job.ts";

const ATTEMPTS = 8;

export const extractJob = defineJob({
  name: "extract",
  queue: "fetch",
  payload: z.strictObject({ taskId: z.int().positive(), generation: z.int().positive().max(2_147_483_647) }),
  options: {
    attempts: ATTEMPTS,
    backoff: { type: "custom" },
    removeOnComplete: true,
    removeOnFail: { count: 500 },
  },
  handle: async (context, { taskId, generation }, job) => {
    const isLastAttempt = job.attemptsMade + 1 >= ATTEMPTS;
    try {
      // The job's signal is also aborted when another worker takes the job.
      const source = { ...(await context.source.open()), signal: context.signal };
      const result = await workMessage(source, { taskId, generation, isLastAttempt });
      if ("created" in result && result.created > 0) await context.enqueueSoon();
      if (!("rows" in result)) return { outcome: result.outcome };
      const { outcome, requests, rows, followUps, created } = result;
      return { outcome, requests, ...rows, followUps: followUps.length, created };
    } catch (error) {
      return retryLater(context, error, { taskId, taken: job.attemptsStarted });
    }
  },
});

/** The task stays in Postgres in any case. */
async function retryLater(
  { holdBack, source, log }: JobContext,
  error: unknown,
  { taskId, taken }: { taskId: number; taken: number },
): Promise<never> {
  if (isKeyRefused(error)) {
    await returnMessages((await source.known()).store, [taskId]);
    throw Object.assign(new UnrecoverableError(error.message), { cause: error });
  }
  if (error instanceof PlatformError && error.status === 429) {
    // The platform limits the key, so all hosts wait. The job uses no attempt.
    const waitMs = pauseOf(error, taken);
    log.warn({ code: error.code, reason: error.message, waitMs }, "held back");
    await holdBack(waitMs);
    throw new RateLimitError();
  }
  throw error;
}
