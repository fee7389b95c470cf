import { z } from "zod";
import { type Clock, systemClock } from "../../core/base/clock.ts";
import { PlatformError } from "../../core/base/errors.ts";
import { orAbsent } from "../../core/platform/http/errors.ts";
import type { PlatformHttp, RequestOptions } from "../../core/platform/http/http.ts";
import { getJson, sendJson } from "../../core/platform/http/read-body.ts";
import { textOf } from "./a2a-responses.ts";
import { pollUntil } from "./poll.ts";

export const STRATEGIES = ["reject", "enqueue", "interrupt", "rollback"] as const;
export type Strategy = (typeof STRATEGIES)[number];

interface Run {
  readonly runId: string;
  readonly threadId: string;
  /**
   * The platform's status, or our own: `rolled_back` (a newer run deleted this one), `input_required` (the run waits for an
   * answer), `unknown` (the run ended, the server does not say how).
   */
  readonly status: string;
}

interface RunOf {
  readonly threadId: string;
  readonly runId: string;
}

interface NewRun {
  readonly threadId: string;
  readonly assistantId: string;
  readonly text: string;
  readonly strategy?: Strategy | undefined;
}

type Waiting = RequestOptions & { readonly withinMs: number };

const id = z.string().min(1);
const threadSchema = z.object({ thread_id: id });
const runSchema = z.object({ run_id: id, thread_id: id.nullish(), status: z.string().default("pending") });

interface Message {
  readonly type: string;
  readonly content: string;
}

/** Only the texts of parts are used. Other content is shown as JSON. */
const part = z.union([
  z.string(),
  z.looseObject({ text: z.string() }).transform(({ text }) => text),
  z.unknown().transform(() => ""),
]);
const content = z.union([
  z.string(),
  z.array(part).transform((texts) => texts.join("")),
  z.unknown().transform((other) => (other == null ? "" : JSON.stringify(other))),
]);
const message = z.object({ type: z.string().default(""), content });
/** A run that asks ends as `success`. Only the thread's state shows the question. */
const interrupt = z.object({ value: z.json() }).transform(({ value }) => textOf(value));
const stateSchema = z
  .object({
    values: z.object({ messages: z.array(message).nullish() }).nullish(),
    interrupts: z.array(interrupt).nullish(),
  })
  .transform(({ values, interrupts }) => {
    return { messages: (values?.messages ?? []) as Message[], questions: interrupts ?? [] };
  });

const LISTED = 100;

/** Sends a change once. Throws `PlatformError`, `DeadlineError` or the signal's reason. Closing the client closes `http`. */
export function createThreadsClient(http: PlatformHttp, clock: Clock = systemClock) {
  return {
    createThread: async (io?: RequestOptions) => {
      const effect = "A thread may have been created, which costs nothing. Run the command again.";
      const request = { method: "POST", path: "/threads", body: {}, effect, ...io } as const;
      return { threadId: (await sendJson(http, request, threadSchema)).thread_id };
    },
    createRun: async ({ threadId, assistantId, text, strategy }: NewRun, io?: RequestOptions) => {
      const body = {
        assistant_id: assistantId,
        input: { messages: [{ role: "user", content: text }] },
        ...(strategy === undefined ? {} : { multitask_strategy: strategy }),
      };
      const path = `${threadPath(threadId)}/runs`;
      const effect = `The run may have begun, and then costs a trace. Look at GET ${path} of the deployment before you send it again.`;
      const request = { method: "POST", path, body, secrets: text, effect, ...io } as const;
      return fromWireRun(await sendJson(http, request, runSchema), threadId);
    },
    /**
     * Returns the run once it has ended. Joins again after a lost connection. The body of a join is not specified, so the run
     * is read afterwards.
     */
    join: (of: RunOf, { withinMs, signal }: Waiting) =>
      pollUntil(`The end of run ${of.runId}`, { withinMs, clock, signal }, async ({ leftMs, signal }) => {
        const joined = await orAbsent(waitForResponse(http, { path: `${runPath(of)}/join`, signal, leftMs }));
        const found = await find(http, of, { signal });
        if (!(found instanceof PlatformError)) return isUnderWay(found) ? undefined : found;
        if (joined instanceof PlatformError) throw joined;
        return { runId: of.runId, threadId: of.threadId, status: "unknown" };
      }),
    waitForStart: (of: RunOf, { withinMs, signal }: Waiting) =>
      pollUntil(`The start of run ${of.runId}`, { withinMs, clock, signal }, async ({ signal }) => {
        const found = await find(http, of, { signal });
        if (found instanceof PlatformError) throw found;
        return found.status === "pending" ? undefined : found;
      }),
    state: (threadId: string, io?: RequestOptions) =>
      getJson(http, { path: `${threadPath(threadId)}/state`, ...io }, stateSchema),
    close: () => http.close(),
  };
}

function threadPath(threadId: string): string {
  return `/threads/${encodeURIComponent(threadId)}`;
}

function runPath({ threadId, runId }: RunOf): string {
  return `${threadPath(threadId)}/runs/${encodeURIComponent(runId)}`;
}

async function readRun(http: PlatformHttp, of: RunOf, { signal }: RequestOptions): Promise<Run> {
  return fromWireRun(await getJson(http, { path: runPath(of), signal }, runSchema), of.threadId);
}

async function listRuns(http: PlatformHttp, threadId: string, { signal }: RequestOptions): Promise<Run[]> {
  const path = `${threadPath(threadId)}/runs`;
  const query = new URLSearchParams({ limit: `${LISTED}` });
  const listed = await getJson(http, { path, query, signal }, z.array(runSchema));
  return listed.map((run) => fromWireRun(run, threadId));
}

/** If the server does not return the run itself, looks for it in the list. Returns the error if neither works. */
async function find(http: PlatformHttp, of: RunOf, io: RequestOptions): Promise<Run | PlatformError> {
  const found = await orAbsent(readRun(http, of, io));
  if (!(found instanceof PlatformError)) return found;
  const listed = await orAbsent(listRuns(http, of.threadId, io));
  if (listed instanceof PlatformError) return found;
  const isWhole = listed.length < LISTED;
  return (
    listed.find(({ runId }) => runId === of.runId) ??
    (isWhole ? { runId: of.runId, threadId: of.threadId, status: "rolled_back" } : found)
  );
}

async function waitForResponse(
  http: PlatformHttp,
  { path, signal, leftMs }: { path: string; signal: AbortSignal; leftMs: number },
): Promise<void> {
  const { body } = await http.get({ path, signal, headersMs: leftMs, mayBeEmpty: true });
  for await (const _piece of body.chunks());
}

function isUnderWay({ status }: Run): boolean {
  return status === "pending" || status === "running";
}

function fromWireRun(wire: z.output<typeof runSchema>, threadId: string): Run {
  return { runId: wire.run_id, threadId: wire.thread_id ?? threadId, status: wire.status };
}

/**
 * The response to the last message with this text, before the next human message, or null. If no message has this text, the
 * last message counts as the reply if the run succeeded.
 */
export function replyTo(
  text: string,
  messages: readonly Message[],
  { hasSucceeded = false } = {},
): string | null {
  const at = messages.findLastIndex((one) => isHuman(one) && one.content === text);
  if (at === -1 && !hasSucceeded) return null;
  const next = at === -1 ? -1 : messages.findIndex((one, index) => index > at && isHuman(one));
  const last = messages[(next === -1 ? messages.length : next) - 1];
  return last?.type === "ai" ? last.content : null;
}

function isHuman({ type }: Message): boolean {
  return type === "human";
}
