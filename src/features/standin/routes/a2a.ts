import { z } from "zod";
import { checked, noRoute } from "../engine/refusal.ts";
import { ASSISTANT, isOpen, type Run, type RunEngine } from "../engine/runs.ts";
import type { World } from "../engine/world.ts";
import { type Exchange, json, type Route } from "../http/route.ts";
import { eventStream, type Response } from "../http/wire.ts";
import {
  actionOf,
  CODES,
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
    handle(exchange) {
      if (world.settings.http.disable_a2a) throw noRoute(method, path);
      return response(exchange);
    },
  });
  return [
    route("POST", "/a2a/:assistant", (exchange) => post(engine, exchange, isLive())),
    route("GET", "/.well-known/agent-card.json", (exchange) =>
      card(exchange, z.string().optional().parse(exchange.query.assistant_id), isLive()),
    ),
  ];
}

interface Call {
  readonly isLive: boolean;
  readonly engine: RunEngine;
  readonly exchange: Exchange;
  readonly params: unknown;
  readonly id: Id;
}

async function post(engine: RunEngine, exchange: Exchange, isLive: boolean): Promise<Response> {
  const { id, method, params } = checked(envelope, exchange.body);
  const action = actionOf(method);
  const streams = action === "stream";
  const wanted = streams ? "text/event-stream" : "application/json";
  if (!`${exchange.headers.accept ?? ""}`.includes(wanted))
    return json({ error: `Accept header must include ${wanted}` }, 400);
  const failed = ({ code, message }: RpcRefusal) => ({ jsonrpc: "2.0", id, error: { code, message } });
  try {
    if (action === undefined) throw new RpcRefusal(CODES.methodNotFound, `Method not found: ${method}`);
    const call = { engine, exchange, params, id, isLive };
    if (action === "stream") return stream(call, begin(call));
    return json({ jsonrpc: "2.0", id, result: await RESULTS[action](call) });
  } catch (error) {
    if (!(error instanceof RpcRefusal)) throw error;
    return streams ? events([["message", failed(error)]]) : json(failed(error));
  }
}

const RESULTS = {
  send: async (call: Call) => {
    const run = begin(call);
    await run.ended.promise;
    return responseOf(run, call.isLive);
  },
  get: async (call: Call) => toWireTask(taskOf(call, requestedTask(call.params, call.isLive)), call.isLive),
};

function begin({ engine, exchange, params, isLive }: Call): Run {
  const { text, contextId, taskId } = sentMessage(params);
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
  const input = [{ type: "human", content: text }];
  const resume = earlier?.question ? text : undefined;
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
    for await (const result of updatesOf(run, call.isLive)) {
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
