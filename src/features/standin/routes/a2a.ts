import { z } from "zod";
import { noRoute, Refusal } from "../engine/refusal.ts";
import { ASSISTANT, isOpen, type Run, type RunEngine } from "../engine/runs.ts";
import type { World } from "../engine/world.ts";
import { type Exchange, json, MOST_BODY, type Route } from "../http/route.ts";
import { eventStream, type Response } from "../http/wire.ts";
import {
  actionOf,
  CODES,
  type Dialect,
  envelope,
  type Id,
  RpcRefusal,
  requestedTask,
  responseOf,
  sentMessage,
  toWireTask,
  updatesOf,
} from "./a2a-wire.ts";

/** docs/platform.md, Agent server: `specified` is like server 0.4.21, `live` like 0.16.7. A context is a thread. */
export function agentToAgent(world: World, engine: RunEngine): Route[] {
  const isLive = () => world.settings.a2a === "live";
  const route = (
    method: Route["method"],
    path: string,
    response: (exchange: Exchange) => Response | Promise<Response>,
  ): Route => ({
    method,
    path,
    needs: "no wrong key",
    takes: "text",
    handle(exchange) {
      if (world.settings.http.disable_a2a) throw noRoute(method, path);
      return response(exchange);
    },
  });
  const ofPath = (exchange: Exchange) => card(exchange, exchange.params.assistant, isLive());
  const refused = () => json({ error: "Method Not Allowed" }, 405);
  return [
    route("POST", "/a2a/:assistant", (exchange) => post(engine, exchange, isLive())),
    route("GET", "/a2a/:assistant", (exchange) => (isLive() ? ofPath(exchange) : refused())),
    route("DELETE", "/a2a/:assistant", refused),
    route("GET", "/a2a/:assistant/.well-known/agent-card.json", (exchange) => {
      if (!isLive()) throw new Refusal(404, { detail: "Not Found" });
      return ofPath(exchange);
    }),
    route("GET", "/.well-known/agent-card.json", (exchange) =>
      card(exchange, z.string().optional().parse(exchange.query.assistant_id), isLive()),
    ),
  ];
}

interface Call extends Dialect {
  readonly engine: RunEngine;
  readonly exchange: Exchange;
  readonly params: unknown;
  readonly id: Id | null;
}

/** A broken envelope is an error of HTTP on 0.4.21, and one of JSON-RPC on 0.16.7. */
async function post(engine: RunEngine, exchange: Exchange, isLive: boolean): Promise<Response> {
  const text = exchange.body as string;
  const broken = (code: number, error: string) =>
    isLive ? json({ jsonrpc: "2.0", id: null, error: { code, message: error } }) : json({ error }, 400);
  if (Buffer.byteLength(text) > MOST_BODY) return json({ error: `More than ${MOST_BODY} bytes` }, 413);
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return broken(CODES.parse, "Invalid JSON payload");
  }
  const { success, data: rpc } = envelope.safeParse(given);
  if (!success) return broken(CODES.invalidRequest, "Invalid JSON-RPC message");
  const { id = null, method, params } = rpc;
  const accepted = { status: 202, type: "application/json", body: "" };
  if (method === undefined) {
    return id === null ? broken(CODES.invalidRequest, "Neither a request nor a response") : accepted;
  }
  const action = actionOf(method, isLive);
  const streams = action?.does === "stream";
  const wanted = streams ? "text/event-stream" : "application/json";
  if (!accepts(`${exchange.headers.accept ?? ""}`, wanted, isLive)) {
    return json({ error: `Accept header must include ${wanted}` }, 400);
  }
  if (id === null) return isLive ? broken(CODES.invalidRequest, "The request has no id") : accepted;
  const failed = ({ code, message }: RpcRefusal) => ({ jsonrpc: "2.0", id, error: { code, message } });
  try {
    if (action === undefined) throw new RpcRefusal(CODES.methodNotFound, `Method not found: ${method}`);
    const call = { engine, exchange, params, id, ...action };
    if (streams) return stream(call, begin(call));
    return json({ jsonrpc: "2.0", id, result: await RESULTS[action.does as keyof typeof RESULTS](call) });
  } catch (error) {
    if (!(error instanceof RpcRefusal)) throw error;
    return streams ? events([["message", failed(error)]]) : json(failed(error));
  }
}

/** Only newer servers accept wildcards, so the protocol's own client cannot send to others. */
function accepts(header: string, wanted: string, isLive: boolean): boolean {
  const wildcards = isLive ? ["*/*", `${wanted.split("/")[0]}/*`] : [];
  return [wanted, ...wildcards].some((type) => header.includes(type));
}

const RESULTS = {
  send: async (call: Call) => {
    const run = begin(call);
    await run.ended.promise;
    const task = responseOf(run, call);
    return call.version === "1.0" ? { task } : task;
  },
  get: (call: Call) => {
    const given = requestedTask(call.params, call.isLive);
    return toWireTask(taskOf(call, given), call, given);
  },
  cancel: (call: Call) => {
    if (!call.isLive) throw new RpcRefusal(CODES.unsupported, "Task cancellation is not currently supported");
    const given = requestedTask(call.params, call.isLive);
    const run = taskOf(call, given);
    if (!isOpen(run)) throw new RpcRefusal(CODES.notCancelable, `Task '${given.id}' has ended`);
    call.engine.cancel(run, "interrupt");
    return toWireTask(run, call, { said: "Task was canceled" });
  },
  list: (call: Call) => {
    const { contextId } = z.looseObject({ contextId: z.string().optional() }).parse(call.params ?? {});
    const threads = call.engine.threads.filter(({ id }) => contextId === undefined || id === contextId);
    const tasks = threads.flatMap(({ runs }) => runs.map((run) => toWireTask(run, call, { said: null })));
    return { tasks: tasks.reverse(), totalSize: tasks.length, pageSize: tasks.length, nextPageToken: "" };
  },
  card: ({ exchange, isLive }: Call) => cardOf(exchange, isLive),
};

function begin({ engine, exchange, params, isLive }: Call): Run {
  const { texts, contextId, taskId } = sentMessage(params, isLive);
  const { assistant } = exchange.params;
  if (assistant !== ASSISTANT.id) {
    throw new RpcRefusal(CODES.invalidParams, `Assistant '${assistant}' not found`);
  }
  const earlier =
    isLive && taskId !== undefined ? taskOf({ engine, isLive }, { id: taskId, contextId }) : undefined;
  if (earlier !== undefined && !isOpen(earlier) && earlier.question === null) {
    throw new RpcRefusal(CODES.unsupported, "A terminal task cannot accept another message");
  }
  const thread = earlier?.thread ?? engine.find(contextId ?? "") ?? engine.createThread(contextId);
  const input = texts.map((content) => ({ type: "human", content }));
  const resume = earlier?.question ? texts.join("\n") : undefined;
  return engine.start(thread, { input, strategy: "enqueue", resume });
}

function taskOf(
  { engine, isLive }: Pick<Call, "engine" | "isLive">,
  { id, contextId }: { readonly id: string; readonly contextId?: string | undefined },
): Run {
  const [run, context = contextId] = isLive ? id.split(":").reverse() : [id];
  const found = engine.find(context ?? "")?.runs.findLast((one) => (isLive ? one.task : one.id) === run);
  if (found === undefined || (contextId ?? context) !== context) {
    throw new RpcRefusal(CODES.taskNotFound, `Task '${id}' not found`);
  }
  return found;
}

/** If the client disconnects, the run continues. */
function stream(call: Call, run: Run): Response {
  const wrapped = async function* () {
    for await (const result of updatesOf(run, call)) {
      yield ["message", { jsonrpc: "2.0", id: call.id, result }] as const;
    }
  };
  return events(wrapped());
}

function events(of: Parameters<typeof eventStream>[0]): Response {
  return { ...eventStream(of), type: "text/event-stream" };
}

function card(exchange: Exchange, assistant: string | undefined, isLive: boolean): Response {
  if (assistant === ASSISTANT.id) return json(cardOf(exchange, isLive));
  const message =
    assistant === undefined
      ? "Missing required query parameter: assistant_id"
      : `Failed to get assistant '${assistant}': not found`;
  return json({ error: { code: CODES.invalidParams, message } }, 400);
}

function cardOf({ origin }: Exchange, isLive: boolean): object {
  const modes = ["application/json", "text/plain"];
  const url = `${origin}/a2a/${ASSISTANT.id}`;
  const description = `${ASSISTANT.name} assistant`;
  const capabilities = { streaming: true, pushNotifications: false, stateTransitionHistory: false };
  const supportedInterfaces = [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }];
  return {
    name: ASSISTANT.name,
    description,
    url,
    ...(isLive ? { supportedInterfaces } : { protocolVersion: "0.3.0", preferredTransport: "JSONRPC" }),
    capabilities: isLive ? { ...capabilities, extensions: [] } : capabilities,
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [
      {
        id: `${ASSISTANT.id}-main`,
        name: `${ASSISTANT.name} Capabilities`,
        description,
        tags: ["assistant", "langgraph"],
        examples: [],
        inputModes: modes,
        outputModes: modes,
      },
    ],
    version: "0.0.0-standin",
  };
}
