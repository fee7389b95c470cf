import { z } from "zod";
import { type Clock, systemClock } from "../../clock.ts";
import { PlatformError } from "../../errors.ts";
import type { Asking, PlatformHttp } from "../http/http.ts";
import { getJson, sendJson } from "../http/json-document.ts";
import { pollUntil } from "../http/poll.ts";

/** What a new run does where one is under way (Agent server in docs/platform.md). */
export const STRATEGIES = ["reject", "enqueue", "interrupt", "rollback"] as const;
export type Strategy = (typeof STRATEGIES)[number];

interface Run {
  readonly runId: string;
  readonly threadId: string;
  /** `pending`, `running`, `success`, `error`, `timeout`, `interrupted` or another. */
  readonly status: string;
}

interface RunOf {
  readonly threadId: string;
  readonly runId: string;
}

interface NewRun {
  readonly threadId: string;
  /** Name or id. */
  readonly assistantId: string;
  /** Sent as one user message. */
  readonly text: string;
  readonly strategy?: Strategy | undefined;
}

type Waiting = Asking & { readonly withinMs: number };

const id = z.string().min(1);
const threadSchema = z.object({ thread_id: id });
const runSchema = z.object({ run_id: id, thread_id: id.nullish(), status: z.string().default("pending") });
/** A text, or parts: the texts count, parts of other kinds are left out. */
const content = z.union([
  z.string(),
  z
    .array(z.looseObject({ text: z.string().optional() }))
    .transform((parts) => parts.map((one) => one.text ?? "").join("")),
  z.null().transform(() => ""),
]);
const stateSchema = z.object({
  values: z
    /** `type`: `human`, `ai` and others. */
    .object({ messages: z.array(z.object({ type: z.string(), content })).default([]) })
    .nullish()
    .transform((values) => values ?? { messages: [] }),
});

/**
 * Threads and runs of one deployment. It never sends a change twice. Every method throws `PlatformError`, or the signal's
 * reason unchanged. The client owns `http`: closing one closes the other.
 */
export function createThreadsClient(http: PlatformHttp, clock: Clock = systemClock) {
  const threadPath = (threadId: string) => `/threads/${encodeURIComponent(threadId)}`;
  const runPath = ({ threadId, runId }: RunOf) => `${threadPath(threadId)}/runs/${encodeURIComponent(runId)}`;
  const requireRun = async (of: RunOf, { signal }: Asking): Promise<Run> =>
    fromWireRun(await getJson(http, { path: runPath(of), signal }, runSchema), of.threadId);

  return {
    createThread: async (io?: Asking) => {
      const request = { method: "POST", path: "/threads", body: {}, ...io } as const;
      return { threadId: (await sendJson(http, request, threadSchema)).thread_id };
    },
    createRun: async ({ threadId, assistantId, text, strategy }: NewRun, io?: Asking) => {
      const body = {
        assistant_id: assistantId,
        input: { messages: [{ role: "user", content: text }] },
        ...(strategy === undefined ? {} : { multitask_strategy: strategy }),
      };
      const request = { method: "POST", path: `${threadPath(threadId)}/runs`, body, ...io } as const;
      return fromWireRun(await sendJson(http, request, runSchema), threadId);
    },
    /** Undefined if there is none, as after a rollback. */
    run: async (of: RunOf, io: Asking = {}) => {
      try {
        return await requireRun(of, io);
      } catch (error) {
        if (error instanceof PlatformError && error.status === 404) return undefined;
        throw error;
      }
    },
    runs: async (threadId: string, io?: Asking) => {
      const listed = await getJson(http, { path: `${threadPath(threadId)}/runs`, ...io }, z.array(runSchema));
      return listed.map((run) => fromWireRun(run, threadId));
    },
    cancel: async (of: RunOf, io?: Asking) => {
      const { body } = await http.send({ method: "POST", path: `${runPath(of)}/cancel`, body: {}, ...io });
      body.discard();
    },
    /**
     * The run once it has ended. Throws `DeadlineError` if it has not in time. Joins again after a lost connection. The
     * specification does not describe a join's body, so the run is read after it.
     */
    join: (of: RunOf, { withinMs, signal }: Waiting) =>
      pollUntil(`The end of run ${of.runId}`, { withinMs, clock, signal }, async (leftMs) => {
        await getJson(http, { path: `${runPath(of)}/join`, signal, headersMs: leftMs }, z.unknown());
        const run = await requireRun(of, { signal });
        return isUnderWay(run) ? undefined : run;
      }),
    /** The run once it has begun, else as `join`. */
    waitForStart: (of: RunOf, { withinMs, signal }: Waiting) =>
      pollUntil(`The start of run ${of.runId}`, { withinMs, clock, signal }, async () => {
        const run = await requireRun(of, { signal });
        return run.status === "pending" ? undefined : run;
      }),
    state: async (threadId: string, io?: Asking) =>
      (await getJson(http, { path: `${threadPath(threadId)}/state`, ...io }, stateSchema)).values,
    close: () => http.close(),
  };
}

function isUnderWay({ status }: Run): boolean {
  return status === "pending" || status === "running";
}

function fromWireRun(wire: z.output<typeof runSchema>, threadId: string): Run {
  return { runId: wire.run_id, threadId: wire.thread_id ?? threadId, status: wire.status };
}
