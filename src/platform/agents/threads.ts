import { z } from "zod";
import { type Clock, systemClock } from "../../clock.ts";
import { PlatformError } from "../../errors.ts";
import type { PlatformHttp } from "../http/http.ts";
import { readJson } from "../http/json-document.ts";
import { pollUntil } from "../http/poll.ts";

interface Asking {
  readonly signal?: AbortSignal | undefined;
}

/** `rollback` is platform-api.md's; the others are documented elsewhere. */
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
 * Threads and runs of one deployment. Nothing that changes something is sent twice. Every method throws `PlatformError`,
 * or the signal's reason unchanged.
 */
export interface ThreadsClient {
  createThread(io?: Asking): Promise<{ readonly threadId: string }>;
  createRun(run: NewRun, io?: Asking): Promise<Run>;
  /** Undefined where there is none, as after a rollback. */
  run(of: RunOf, io?: Asking): Promise<Run | undefined>;
  runs(threadId: string, io?: Asking): Promise<Run[]>;
  cancel(of: RunOf, io?: Asking): Promise<void>;
  /** The run once it has ended; throws `DeadlineError` where it has not in time. A lost connection is joined again. */
  join(of: RunOf, io: Asking & { readonly withinMs: number }): Promise<Run>;
  /** The run once it has begun; the same otherwise. */
  waitForStart(of: RunOf, io: Asking & { readonly withinMs: number }): Promise<Run>;
  state(threadId: string, io?: Asking): Promise<{ readonly messages: readonly Message[] }>;
  close(): Promise<void>;
}

interface NewRun {
  readonly threadId: string;
  /** Name or id. */
  readonly assistantId: string;
  /** Sent as one message of the user. */
  readonly text: string;
  readonly strategy?: Strategy | undefined;
}

const id = z.string().min(1);
const threadSchema = z.object({ thread_id: id });
const runSchema = z.object({ run_id: id, thread_id: id.nullish(), status: z.string().default("pending") });
/** Content is a text, or parts of which the texts count (documented elsewhere). */
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
const anything = z.unknown();

/** The client owns `http`: closing one closes the other. */
export function createThreadsClient(http: PlatformHttp, clock: Clock = systemClock): ThreadsClient {
  const get = async <T>(
    path: string,
    schema: z.ZodType<T>,
    io: Asking & { headersMs?: number },
  ): Promise<T> => readJson(await http.get({ path, accept: "application/json", ...io }), schema);
  const send = async <T>(path: string, body: unknown, schema: z.ZodType<T>, { signal }: Asking): Promise<T> =>
    readJson(await http.send({ method: "POST", path, body, accept: "application/json", signal }), schema);
  const threadPath = (threadId: string) => `/threads/${encodeURIComponent(threadId)}`;
  const runPath = ({ threadId, runId }: RunOf) => `${threadPath(threadId)}/runs/${encodeURIComponent(runId)}`;
  const requireRun = async (of: RunOf, { signal }: Asking): Promise<Run> =>
    fromWireRun(await get(runPath(of), runSchema, { signal }), of.threadId);

  return {
    createThread: async (io = {}) => {
      const { thread_id } = await send("/threads", {}, threadSchema, io);
      return { threadId: thread_id };
    },
    createRun: async ({ threadId, assistantId, text, strategy }, io = {}) => {
      const body = {
        assistant_id: assistantId,
        input: { messages: [{ role: "user", content: text }] },
        ...(strategy === undefined ? {} : { multitask_strategy: strategy }),
      };
      return fromWireRun(await send(`${threadPath(threadId)}/runs`, body, runSchema, io), threadId);
    },
    run: async (of, io = {}) => {
      try {
        return await requireRun(of, io);
      } catch (error) {
        if (error instanceof PlatformError && error.status === 404) return undefined;
        throw error;
      }
    },
    runs: async (threadId, { signal } = {}) => {
      const listed = await get(`${threadPath(threadId)}/runs`, z.array(runSchema), { signal });
      return listed.map((run) => fromWireRun(run, threadId));
    },
    cancel: async (of, { signal } = {}) => {
      const path = `${runPath(of)}/cancel`;
      const { body } = await http.send({
        method: "POST",
        path,
        body: {},
        accept: "application/json",
        signal,
      });
      body.discard();
    },
    // What a join answers with is not in the specification; that it answers is what counts, and the run tells the rest.
    join: (of, { withinMs, signal }) =>
      pollUntil(`The end of run ${of.runId}`, { withinMs, clock, signal }, async (leftMs) => {
        await get(`${runPath(of)}/join`, anything, { signal, headersMs: leftMs });
        const run = await requireRun(of, { signal });
        return isUnderWay(run) ? undefined : run;
      }),
    waitForStart: (of, { withinMs, signal }) =>
      pollUntil(`The start of run ${of.runId}`, { withinMs, clock, signal }, async () => {
        const run = await requireRun(of, { signal });
        return run.status === "pending" ? undefined : run;
      }),
    state: async (threadId, { signal } = {}) => {
      const { values } = await get(`${threadPath(threadId)}/state`, stateSchema, { signal });
      return values;
    },
    close: () => http.close(),
  };
}

function isUnderWay({ status }: Run): boolean {
  return status === "pending" || status === "running";
}

function fromWireRun(wire: z.output<typeof runSchema>, threadId: string): Run {
  return { runId: wire.run_id, threadId: wire.thread_id ?? threadId, status: wire.status };
}
