import { randomUUID } from "node:crypto";
import { z } from "zod";
import { PlatformError } from "../../errors.ts";
import { excerptOf, faultError } from "../http/errors.ts";
import { cutError, eventData } from "../http/events.ts";
import type { Asking, PlatformAnswer, PlatformHttp } from "../http/http.ts";
import { checkedJson, getJson, readJson } from "../http/json-document.ts";
import { deadlineSignal } from "../http/poll.ts";
import { foreignFault } from "../parse/answer-fault.ts";
import { type Check, createEventReader, hasEnded, readTask, type Task } from "./a2a-answers.ts";

export type AgentCard = Readonly<z.output<typeof cardSchema>>;

/** A message. `contextId` and `taskId` are from the previous answer; the first message has none. */
interface Sending {
  readonly assistantId: string;
  readonly text: string;
  readonly contextId?: string | null | undefined;
  readonly taskId?: string | null | undefined;
}

/** Milliseconds, for the whole answer. Default: the client's own limits of a request. */
type Waiting = Asking & { readonly withinMs?: number | undefined };

const orNull = z
  .string()
  .nullish()
  .transform((text) => text ?? null);
const modes = z
  .array(z.string())
  .nullish()
  .transform((all) => all ?? []);
const cardSchema = z
  .object({
    name: z.string(),
    description: orNull,
    url: orNull,
    skills: z
      .array(z.object({ name: z.string() }))
      .nullish()
      .transform((all) => (all ?? []).map(({ name }) => name)),
    defaultInputModes: modes,
    defaultOutputModes: modes,
  })
  .transform(({ defaultInputModes: inputModes, defaultOutputModes: outputModes, ...card }) => {
    return { ...card, inputModes, outputModes };
  });
const responseSchema = z.object({
  id: z.union([z.string(), z.number()]).nullish(),
  result: z.unknown().optional(),
  /** Null where there is none. */
  error: z.unknown().optional(),
});

interface Called extends PlatformAnswer {
  /** Of the JSON-RPC request. */
  readonly id: string;
}

interface Call {
  readonly method: string;
  readonly params: object;
  readonly accept?: string;
  /** Hidden in errors. */
  readonly secrets?: string;
  /** `SendRequest.effect`. */
  readonly effect: string;
}

/**
 * The A2A endpoint of one deployment. It sends a message once. Every method throws `PlatformError` (`rpc_error` for an error
 * in a JSON-RPC response), or the signal's reason unchanged; those that wait throw `DeadlineError`. The client owns `http`:
 * closing one closes the other.
 */
export function createA2aClient(http: PlatformHttp) {
  const post = async (
    assistantId: string,
    { method, params, accept = "application/json", secrets = "", effect }: Call,
    { signal, withinMs }: Waiting,
  ): Promise<Called> => {
    const id = randomUUID();
    const body = { jsonrpc: "2.0", id, method, params };
    const path = `/a2a/${encodeURIComponent(assistantId)}`;
    const sent = {
      method: "POST",
      path,
      body,
      secrets,
      effect,
      accept,
      signal,
      headersMs: withinMs,
    } as const;
    return { ...(await http.send(sent)), id };
  };
  const read = async (called: Called): Promise<Task> =>
    readTask(resultOf(called, await readJson(called, responseSchema)), checkOf(called));
  return {
    card: async (assistantId: string, { signal }: Asking = {}) => {
      const query = new URLSearchParams({ assistant_id: assistantId });
      return getJson(http, { path: "/.well-known/agent-card.json", query, signal }, cardSchema);
    },
    send: async (message: Sending, { signal, withinMs }: Waiting = {}) => {
      const call = callOf(message, "message/send");
      const io = { signal: limited("The reply", { signal, withinMs, next: () => call.effect }), withinMs };
      return read(await post(message.assistantId, call, io));
    },
    /**
     * Ends after the final event, or where the server ends it and the task has ended. Throws `answer_cut` if the stream ends
     * before that. Leaving the loop early closes the connection.
     */
    stream: async function* (message: Sending, { signal, withinMs }: Waiting = {}) {
      const call = { ...callOf(message, "message/stream"), accept: "text/event-stream" };
      let last: Task | undefined;
      const next = () => (last?.taskId == null ? call.effect : lookAgain(last));
      const io = { signal: limited("The end of the stream", { signal, withinMs, next }), withinMs };
      const called = await post(message.assistantId, call, io);
      const check = checkOf(called);
      const readEvent = createEventReader(check);
      for await (const data of eventData(called)) {
        const event = readEvent(resultOf(called, check(parse(data), responseSchema)));
        if (event === undefined) continue;
        last = event;
        yield event;
        if (event.final) return;
      }
      if (last === undefined || !hasEnded(last)) throw cutError(called, next());
    },
    task: async (
      of: { assistantId: string; taskId: string; contextId?: string | undefined },
      { signal }: Asking = {},
    ) => {
      const { assistantId, taskId, contextId } = of;
      const params = { id: taskId, ...(contextId === undefined ? {} : { contextId }) };
      const effect = "It changes nothing: run the command again.";
      return read(await post(assistantId, { method: "tasks/get", params, effect }, { signal }));
    },
    close: () => http.close(),
  };
}

function limited(what: string, { signal, withinMs, next }: Waiting & { next: () => string }) {
  return withinMs === undefined ? signal : deadlineSignal(what, { withinMs, signal, next });
}

function callOf({ text, contextId, taskId }: Sending, method: string): Call {
  const message = {
    kind: "message",
    role: "user",
    messageId: randomUUID(),
    parts: [{ kind: "text", text }],
    ...(contextId == null ? {} : { contextId }),
    ...(taskId == null ? {} : { taskId }),
  };
  // A context is a thread (Agent server in docs/platform.md).
  const look =
    contextId == null
      ? "Look at the newest traces of the deployment's project"
      : `Look at GET /threads/${contextId}/state of the deployment`;
  const effect = `The message may have arrived, and then costs a trace. ${look} before you send it again.`;
  return { method, params: { message }, secrets: text, effect };
}

/** A shell takes these as they are. Nobody is told to run a command with anything else that a server sent. */
const PLAIN = /^[\w.:-]+$/;

function lookAgain({ taskId, contextId }: Task): string {
  const arrived = "The message has arrived.";
  if (!PLAIN.test(`${taskId}${contextId}`)) return `${arrived} Look at its task before you send it again.`;
  return `${arrived} Run \`usage-etl platform a2a task ${taskId} --context ${contextId}\` to see how it ended.`;
}

function checkOf({ body, context }: PlatformAnswer): Check {
  return (value, schema) => checkedJson(value, schema, (fault) => faultError(fault, body.status, context));
}

/** The result of a JSON-RPC response. Errors: `rpc_error`, and `answer_invalid` for an answer to another request. */
function resultOf(
  { id, body, context }: Called,
  { id: answered, error, result }: z.output<typeof responseSchema>,
): unknown {
  if (answered !== undefined && answered !== null && answered !== id) {
    const fault = foreignFault(`the answer has the id ${JSON.stringify(answered)}, the request ${id}`);
    throw faultError(fault, body.status, context);
  }
  if (error === undefined || error === null) return result;
  const { method, url } = context;
  throw new PlatformError({
    code: "rpc_error",
    message: `${method} ${url} answered with JSON-RPC error ${excerptOf(describeRpcError(error), context.redact)}`,
    next: "Read the error above. -32001: no such task; -32602: a parameter is wrong; -32601, -32004: the server does not support it.",
    method,
    url,
  });
}

function describeRpcError(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return typeof message === "string" ? `${code ?? "without a code"}: ${message}` : JSON.stringify(error);
}

/** Undefined for anything but JSON, which the schema then refuses. */
function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
