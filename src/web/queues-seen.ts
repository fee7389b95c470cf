import { reasonOf } from "../core/base/errors.ts";
import { LateError, within } from "./health.ts";
import type { Context, QueueSight } from "./routes.ts";

/** Short, because a person waits for the page. */
const REDIS_WITHIN_MS = 1_000;

export interface QueuesSeen {
  readonly sources?: ReadonlyMap<string, QueueSight>;
  /** Null: Redis was read, or is not used. `late`: Redis may only be slow. */
  readonly unseen: null | { readonly why: "late" | "away"; readonly message: string };
}

export async function seeQueues({ lookAtQueues }: Pick<Context, "lookAtQueues">): Promise<QueuesSeen> {
  if (lookAtQueues === undefined) return { unseen: null };
  try {
    return { sources: (await within(lookAtQueues(), REDIS_WITHIN_MS)).sources, unseen: null };
  } catch (error) {
    if (error instanceof LateError) {
      const message =
        "Redis has not responded within a second. What it shows of the service is left out here.";
      return { unseen: { why: "late", message } };
    }
    const reason = reasonOf(error).replace(/\.$/, "");
    return { unseen: { why: "away", message: `Redis cannot be read now: ${reason}.` } };
  }
}
