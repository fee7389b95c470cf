import { randomUUID } from "node:crypto";
import { z } from "zod";
import { EtlError } from "../../core/base/errors.ts";
import { parseJson } from "../../core/base/json.ts";
import type { PlatformHttp, PlatformResponse, RequestOptions } from "../../core/platform/http/http.ts";
import {
  checkedJson,
  cutStream,
  eventData,
  getJson,
  readJson,
  responseError,
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

/** A card is requested only for the names of methods. */
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
 * `UsageError` (`context_invalid`) or the signal's reason. Closing the client closes `http`.
 */
export function createA2aClient(http: PlatformHttp, { cardMs = CARD_MS } = {}) {
  const { card, protocolOf } = createCards(http, cardMs);
  const { begin, again } = createConversations();
  return {
    card,
    send: async (given: Sending, { signal: ended, withinMs, onContextAlone }: Waiting = {}) => {
      const first = begin(given);
      let sent: Call | undefined;
      const next = () => sent?.effect ?? NOTHING_SENT;
      const signal = limited("The reply", { signal: ended, withinMs, next });
      const protocol = await protocolOf(given.assistantId, signal);
      const attempt = async (message: Message): Promise<Task> => {
        sent = messageCall(message, "send", protocol);
        return read(await post(http, given.assistantId, sent, { signal, withinMs }));
      };
      try {
        return await attempt(first);
      } catch (error) {
        return attempt(again(first, error, onContextAlone));
      }
    },
    /** Throws `response_cut` if the stream ends before the task. Leaving the loop early closes the connection. */
    stream: async function* (given: Sending, { signal: ended, withinMs, onContextAlone }: Waiting = {}) {
      const first = begin(given);
      let last: Task | undefined;
      let sent: Call | undefined;
      const next = () => (last?.taskId == null ? (sent?.effect ?? NOTHING_SENT) : lookAgain(last));
      const signal = limited("The end of the stream", { signal: ended, withinMs, next });
      const protocol = await protocolOf(given.assistantId, signal);
      const attempt = async function* (message: Message) {
        sent = messageCall(message, "stream", protocol);
        const called = await post(http, given.assistantId, sent, { signal, withinMs });
        const check = checkOf(called);
        const readEvent = createEventReader(check);
        for await (const data of eventData(called)) {
          const arrived = last === undefined ? undefined : next();
          const event = readEvent(resultOf({ ...called, arrived }, check(parse(data), responseSchema)));
          if (event === undefined) continue;
          last = event;
          yield event;
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
      of: { assistantId: string; taskId: string; contextId?: string | undefined },
      { signal }: RequestOptions = {},
    ) => {
      const call = taskCall(of, await protocolOf(of.assistantId, signal));
      return read(await post(http, of.assistantId, call, { signal }));
    },
    close: () => http.close(),
  };
}

function createCards(http: PlatformHttp, cardMs: number) {
  const protocols = new Map<string, Protocol>();
  const card = async (assistantId: string, { signal }: RequestOptions = {}): Promise<AgentCard> => {
    const query = new URLSearchParams({ assistant_id: assistantId });
    const read = await getJson(http, { path: "/.well-known/agent-card.json", query, signal }, cardSchema);
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
      const message = { ...given, messageId: randomUUID() };
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
  const response = await http.send({
    method: "POST",
    path: `/a2a/${encodeURIComponent(assistantId)}`,
    body: { jsonrpc: "2.0", id, method, params },
    secrets,
    effect,
    headers,
    accept,
    signal,
    headersMs: withinMs,
  });
  return { ...response, id, taskId };
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
