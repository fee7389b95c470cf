import { z } from "zod";
import { type Clock, systemClock } from "../../clock.ts";
import { PlatformError } from "../../errors.ts";
import type { Asking, PlatformHttp } from "../http/http.ts";
import { getJson, sendJson } from "../http/json-document.ts";
import { pollUntil } from "../http/poll.ts";

/** What a new run does where one is under way (Agent server in docs/platform.md). */
export const STRATEGIES = ["reject", "enqueue", "interrupt", "rollback"] as const;
export type Strategy = (typeof STRATEGIES)[number];

interface Message {
  /** `human`, `ai` and others. */
  readonly type: string;
  /** Its text; parts of other kinds are left out. */
  readonly content: string;
}

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

/**
 * Threads and runs of one deployment. It never sends a change twice. Every method throws `PlatformError`, or the signal's reason
 * unchanged.
 */
export interface ThreadsClient {
  createThread(io?: Asking): Promise<{ readonly threadId: string }>;
  createRun(run: NewRun, io?: Asking): Promise<Run>;
  /** Undefined if there is none, as after a rollback. */
  run(of: RunOf, io?: Asking): Promise<Run | undefined>;
  runs(threadId: string, io?: Asking): Promise<Run[]>;
  cancel(of: RunOf, io?: Asking): Promise<void>;
  /** The run once it has ended. Throws `DeadlineError` if it has not in time. Joins again after a lost connection. */
  join(of: RunOf, io: Asking & { readonly withinMs: number }): Promise<Run>;
  /** The run once it has begun, else as `join`. */
  waitForStart(of: RunOf, io: Asking & { readonly withinMs: number }): Promise<Run>;
  state(threadId: string, io?: Asking): Promise<{ readonly messages: readonly Message[] }>;
  close(): Promise<void>;
}

interface NewRun {
  readonly threadId: string;
  /** Name or id. */
  readonly assistantId: string;
  /** Sent as one user message. */
  readonly text: string;
  readonly strategy?: Strategy | undefined;
}

const id = z.string().min(1);
const threadSchema = z.object({ thread_id: id });
const runSchema = z.object({ run_id: id, thread_id: id.nullish(), status: z.string().default("pending") });
/** A text, or parts of which the texts count. */
const content = z.union([
  z.string(),
  z
    .array(z.looseObject({ text: z.string().optional() }))
    .transform((parts) => parts.map((one) => one.text ?? "").join("")),
  z.null().transform(() => ""),
]);
const stateSchema = z.object({
  values: z
    .object({ messages: z.array(z.object({ type: z.string(), content })).default([]) })
    .nullish()
    .transform((values) => values ?? { messages: [] }),
});

/** The client owns `http`: closing one closes the other. */
export function createThreadsClient(http: PlatformHttp, clock: Clock = systemClock): ThreadsClient {
  const threadPath = (threadId: string) => `/threads/${encodeURIComponent(threadId)}`;
  const runPath = ({ threadId, runId }: RunOf) => `${threadPath(threadId)}/runs/${encodeURIComponent(runId)}`;
  const requireRun = async (of: RunOf, { signal }: Asking): Promise<Run> =>
    fromWireRun(await getJson(http, { path: runPath(of), signal }, runSchema), of.threadId);

  return {
    createThread: async (io) => {
      const request = { method: "POST", path: "/threads", body: {}, ...io } as const;
      return { threadId: (await sendJson(http, request, threadSchema)).thread_id };
    },
    createRun: async ({ threadId, assistantId, text, strategy }, io) => {
      const body = {
        assistant_id: assistantId,
        input: { messages: [{ role: "user", content: text }] },
        ...(strategy === undefined ? {} : { multitask_strategy: strategy }),
      };
      const request = { method: "POST", path: `${threadPath(threadId)}/runs`, body, ...io } as const;
      return fromWireRun(await sendJson(http, request, runSchema), threadId);
    },
    run: async (of, io = {}) => {
      try {
        return await requireRun(of, io);
      } catch (error) {
        if (error instanceof PlatformError && error.status === 404) return undefined;
        throw error;
      }
    },
    runs: async (threadId, io) => {
      const listed = await getJson(http, { path: `${threadPath(threadId)}/runs`, ...io }, z.array(runSchema));
      return listed.map((run) => fromWireRun(run, threadId));
    },
    cancel: async (of, io) => {
      const { body } = await http.send({ method: "POST", path: `${runPath(of)}/cancel`, body: {}, ...io });
      body.discard();
    },
    // The specification does not describe a join's body, so the run is read after it.
    join: (of, { withinMs, signal }) =>
      pollUntil(`The end of run ${of.runId}`, { withinMs, clock, signal }, async (leftMs) => {
        await getJson(http, { path: `${runPath(of)}/join`, signal, headersMs: leftMs }, z.unknown());
        const run = await requireRun(of, { signal });
        return isUnderWay(run) ? undefined : run;
      }),
    waitForStart: (of, { withinMs, signal }) =>
      pollUntil(`The start of run ${of.runId}`, { withinMs, clock, signal }, async () => {
        const run = await requireRun(of, { signal });
        return run.status === "pending" ? undefined : run;
      }),
    state: async (threadId, io) =>
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
