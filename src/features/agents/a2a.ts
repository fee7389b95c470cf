import { randomUUID } from "node:crypto";
import { z } from "zod";
import { EtlError, PlatformError, UsageError } from "../../core/base/errors.ts";
import { parseJson } from "../../core/base/json.ts";
import { orAbsent } from "../../core/platform/http/errors.ts";
import type { PlatformHttp, PlatformResponse, RequestOptions } from "../../core/platform/http/http.ts";
import {
  checkedJson,
  cutStream,
  eventData,
  getJson,
  readJson,
  responseError,
  sendJson,
} from "../../core/platform/http/read-body.ts";
import { foreignError } from "../../core/platform/parse/response-error.ts";
import {
  type Call,
  lookAgain,
  messageCall,
  RPC,
  RpcError,
  refuseContext,
  type Sending,
  type Sent,
  taskCall,
  UUID,
} from "./a2a-calls.ts";
import {
  type AgentCard,
  type Check,
  cardSchema,
  createEventReader,
  hasEnded,
  type Protocol,
  readTask,
  type Task,
} from "./a2a-responses.ts";
import { deadlineSignal } from "./poll.ts";

/** Limit for the whole response, in ms. Default: the client's limits of a request. */
type Waiting = RequestOptions & {
  readonly withinMs?: number | undefined;
  /** Called when the server refuses an ended task, before the message is sent again with its context only. */
  readonly onContextAlone?: () => void;
};

const responseSchema = z.object({
  id: z.union([z.string(), z.number()]).nullish(),
  result: z.unknown().optional(),
  error: z.unknown().optional(),
});

/** A card is requested only for the names of methods, and a task again only for a missing text. */
const CARD_MS = 10_000;

interface Message extends Sending {
  readonly messageId: string;
}

interface Called extends PlatformResponse, Sent {
  readonly id: string;
}

/**
 * Uses the names of A2A 1.0 if the agent card lists this version. A message costs a trace, so it is sent again only if the
 * server refused its `taskId` with -32004. Throws `PlatformError` (`RpcError` for a JSON-RPC error), `DeadlineError`,
 * `UsageError` (`context_invalid`, `assistant_unknown`) or the signal's reason. Closing the client closes `http`.
 */
export function createA2aClient(http: PlatformHttp, { cardMs = CARD_MS } = {}) {
  const idOf = createAssistants(http);
  const { card, protocolOf } = createCards(http, cardMs);
  const { begin, again } = createConversations();
  const readAgain = async (assistantId: string, task: Task, { signal }: RequestOptions): Promise<Task> => {
    const { taskId, contextId, state, reply } = task;
    if (state !== "completed" || reply !== null || taskId === null) return task;
    const of = { taskId, contextId: contextId ?? undefined };
    const within = deadlineSignal("The task", { withinMs: cardMs, signal });
    // The message has arrived, so a server that does not return the task is no failure.
    return lookUp(assistantId, of, { signal: within }).catch((error: unknown) => {
      if (signal?.aborted || !(error instanceof EtlError)) throw error;
      return task;
    });
  };
  const lookUp = async (
    assistantId: string,
    of: { taskId: string; contextId?: string | undefined },
    { signal }: RequestOptions,
  ): Promise<Task> => {
    const call = taskCall(of, await protocolOf(assistantId, signal));
    return read(await post(http, assistantId, call, { signal }));
  };
  return {
    card: async (assistant: string, { signal }: RequestOptions = {}) =>
      card(await idOf(assistant, signal), { signal }),
    send: async (given: Sending, { signal: ended, withinMs, onContextAlone }: Waiting = {}) => {
      const first = begin(given);
      let sent: Call | undefined;
      const next = () => sent?.effect ?? NOTHING_SENT;
      const signal = limited("The reply", { signal: ended, withinMs, next });
      const assistantId = await idOf(given.assistantId, signal);
      const protocol = await protocolOf(assistantId, signal);
      const attempt = async (message: Message): Promise<Task> => {
        sent = messageCall(message, "send", protocol);
        return read(await post(http, assistantId, sent, { signal, withinMs }));
      };
      const task = await attempt(first).catch((error) => attempt(again(first, error, onContextAlone)));
      // A run that is cancelled meanwhile is returned as completed without a text.
      return readAgain(assistantId, task, { signal });
    },
    /** Throws `response_cut` if the stream ends before the task. Leaving the loop early closes the connection. */
    stream: async function* (given: Sending, { signal: ended, withinMs, onContextAlone }: Waiting = {}) {
      const first = begin(given);
      let last: Task | undefined;
      let sent: Call | undefined;
      const next = () => (last?.taskId == null ? (sent?.effect ?? NOTHING_SENT) : lookAgain(last));
      const signal = limited("The end of the stream", { signal: ended, withinMs, next });
      const assistantId = await idOf(given.assistantId, signal);
      const protocol = await protocolOf(assistantId, signal);
      const attempt = async function* (message: Message) {
        sent = messageCall(message, "stream", protocol);
        const called = await post(http, assistantId, sent, { signal, withinMs });
        const check = checkOf(called);
        const readEvent = createEventReader(check);
        for await (const data of eventData(called)) {
          const arrived = last === undefined ? undefined : next();
          const event = readEvent(resultOf({ ...called, arrived }, check(parse(data), responseSchema)));
          if (event === undefined) continue;
          last = event;
          yield event.final ? { ...event, ...(await readAgain(assistantId, event, { signal })) } : event;
          if (event.final) return;
        }
        if (last === undefined || !hasEnded(last)) throw cutStream(called, next());
      };
      try {
        yield* attempt(first);
      } catch (error) {
        // The message has arrived if there was an event.
        if (last !== undefined) throw error;
        yield* attempt(again(first, error, onContextAlone));
      }
    },
    task: async (
      { assistantId, ...of }: { assistantId: string; taskId: string; contextId?: string | undefined },
      { signal }: RequestOptions = {},
    ) => lookUp(await idOf(assistantId, signal), of, { signal }),
    close: () => http.close(),
  };
}

const found = z.array(z.object({ assistant_id: z.string().min(1) }));

/** A2A takes an assistant's id only. A graph's name stands for the assistant that the server created for the graph. */
function createAssistants(http: PlatformHttp) {
  const ids = new Map<string, string>();
  return async (assistant: string, signal: AbortSignal | undefined): Promise<string> => {
    const known = UUID.test(assistant) ? assistant : ids.get(assistant);
    if (known !== undefined) return known;
    const body = { graph_id: assistant, metadata: { created_by: "system" }, limit: 1 };
    const effect = "It changes nothing: run the command again.";
    const request = { method: "POST", path: "/assistants/search", body, effect, signal } as const;
    const searched = await orAbsent(sendJson(http, request, found));
    // A server without this search may know the name.
    if (searched instanceof PlatformError && !/^Graph .* not found/.test(searched.words)) return assistant;
    const [id] = searched instanceof PlatformError ? [] : searched.map((one) => one.assistant_id);
    if (id === undefined) {
      const reason = searched instanceof PlatformError ? `: ${searched.words}` : ".";
      throw new UsageError({
        code: "assistant_unknown",
        message: `The deployment has no assistant ${JSON.stringify(assistant.slice(0, 80).toWellFormed())}${reason}`,
        next: "Set --assistant to the name of one of the deployment's graphs, or to the id of an assistant.",
      });
    }
    ids.set(assistant, id);
    return id;
  };
}

function createCards(http: PlatformHttp, cardMs: number) {
  const protocols = new Map<string, Protocol>();
  const card = async (assistantId: string, { signal }: RequestOptions = {}): Promise<AgentCard> => {
    const query = new URLSearchParams({ assistant_id: assistantId });
    const path = "/.well-known/agent-card.json";
    const read = await getJson(http, { path, query, signal }, cardSchema).catch(explainAbsence);
    protocols.set(assistantId, read.protocol);
    return read;
  };
  const protocolOf = async (assistantId: string, signal: AbortSignal | undefined): Promise<Protocol> => {
    const known = protocols.get(assistantId);
    if (known !== undefined) return known;
    try {
      const within = deadlineSignal("The agent card", { withinMs: cardMs, signal });
      return (await card(assistantId, { signal: within })).protocol;
    } catch (error) {
      if (signal?.aborted || !(error instanceof EtlError)) throw error;
      // Every server knows the names of 0.3, and the call itself reports a failure.
      protocols.set(assistantId, "0.3");
      return "0.3";
    }
  };
  return { card, protocolOf };
}

function createConversations() {
  const byContextAlone = new Set<string>();
  return {
    begin: (given: Sending): Message => {
      refuseContext(given.contextId);
      // Server 0.4.21 forgets a conversation whose first message has no context.
      const contextId = given.contextId ?? (given.taskId == null ? randomUUID() : undefined);
      const message = { ...given, contextId, messageId: randomUUID() };
      const isAlone = given.contextId != null && byContextAlone.has(given.contextId);
      return isAlone ? { ...message, taskId: null } : message;
    },
    /** The message with its context only. Throws `error` if that would not help. */
    again: (sent: Message, error: unknown, onContextAlone: (() => void) | undefined): Message => {
      const isRefused = error instanceof RpcError && error.rpcCode === RPC.unsupported;
      if (!isRefused || sent.taskId == null || sent.contextId == null) throw error;
      byContextAlone.add(sent.contextId);
      onContextAlone?.();
      return { ...sent, taskId: null };
    },
  };
}

async function post(
  http: PlatformHttp,
  assistantId: string,
  { taskId, method, params, headers, accept = "application/json", secrets = "", effect }: Call,
  { signal, withinMs }: Waiting,
): Promise<Called> {
  const id = randomUUID();
  const response = await http
    .send({
      method: "POST",
      path: `/a2a/${encodeURIComponent(assistantId)}`,
      body: { jsonrpc: "2.0", id, method, params },
      secrets,
      effect,
      headers,
      accept,
      signal,
      headersMs: withinMs,
    })
    .catch(explainAbsence);
  return { ...response, id, taskId };
}

function explainAbsence(error: unknown): never {
  if (!(error instanceof PlatformError) || error.status !== 404) throw error;
  const next =
    "A2A may be switched off (`http.disable_a2a` in langgraph.json), or the server is older than 0.4.21. Use `usage-etl platform run`, or check --assistant and the path of USAGE_DEPLOYMENT_URL.";
  const { code, message, method, url, status, words } = error;
  throw new PlatformError({ code, message, next, method, url, status, words });
}

async function read(called: Called): Promise<Task> {
  return readTask(resultOf(called, await readJson(called, responseSchema)), checkOf(called));
}

const NOTHING_SENT = "Nothing was sent: the server did not respond for the agent card.";

function limited(what: string, { signal, withinMs, next }: Waiting & { next: () => string }) {
  return withinMs === undefined ? signal : deadlineSignal(what, { withinMs, signal, next });
}

function checkOf(response: PlatformResponse): Check {
  return (value, schema) => checkedJson(value, schema, (fault) => responseError(fault, response));
}

/** Errors: `rpc_error`; `response_invalid` for a response to another request. */
function resultOf(
  called: Called,
  { id: responded, error, result }: z.output<typeof responseSchema>,
): unknown {
  const { id, taskId, arrived, context } = called;
  if (responded !== undefined && responded !== null && responded !== id) {
    const fault = foreignError(`the response has the id ${JSON.stringify(responded)}, the request ${id}`);
    throw responseError(fault, called);
  }
  if (error === undefined || error === null) return result;
  throw new RpcError(error, context, { taskId, arrived });
}

/** Returns undefined if `data` is not JSON; the schema then refuses it. */
function parse(data: string): unknown {
  try {
    return parseJson(data);
  } catch {
    return undefined;
  }
}
