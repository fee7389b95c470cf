import { z } from "zod";
import { checked, noRoute } from "../engine/refusal.ts";
import type { Run, RunEngine } from "../engine/runs.ts";
import { ASSISTANT } from "../engine/runs.ts";
import type { World } from "../engine/world.ts";
import { type Exchange, json, MOST_BODY, type Route } from "../http/route.ts";
import type { Response } from "../http/wire.ts";
import {
  actionOf,
  CODES,
  type Dialect,
  envelope,
  type Id,
  isOver,
  RpcRefusal,
  requestedTask,
  type Sent,
  sentMessage,
  toWireTask,
  toWireUpdate,
} from "./a2a-wire.ts";

/**
 * docs/platform.md, Agent server: a contextId is a thread, and a task is a run. A `live` server refuses a message to an ended
 * task. A missing key is accepted (our guess).
 */
export function agentToAgent(world: World, engine: RunEngine): Route[] {
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
      // The setting also removes the cards (documented).
      if (world.settings.http.disable_a2a) throw noRoute(method, path);
      return response(exchange);
    },
  });
  const isLive = () => world.settings.a2a === "live";
  return [
    route("POST", "/a2a/:assistant", (exchange) => post(engine, exchange, isLive())),
    // Only POST is allowed (seen).
    route("GET", "/a2a/:assistant", () => json({ error: "Method Not Allowed" }, 405)),
    route("GET", "/.well-known/agent-card.json", (exchange) => card(exchange, isLive())),
  ];
}

/** The refusals of a text that is no JSON-RPC request are seen. */
async function post(
  engine: RunEngine,
  { body, headers, params }: Exchange,
  isLive: boolean,
): Promise<Response> {
  const text = body as string;
  if (Buffer.byteLength(text) > MOST_BODY) return refused(413, `The body is larger than ${MOST_BODY} bytes`);
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return refused(400, "Invalid JSON payload");
  }
  const { success, data: rpc } = envelope.safeParse(given);
  if (!success) return refused(400, "Invalid JSON-RPC message");
  const { id, method } = rpc;
  const action = actionOf(method ?? "", isLive);
  const streams = action?.does === "stream";
  const wanted = streams ? "text/event-stream" : "application/json";
  // A missing or wildcard Accept header is refused (seen).
  if (!String(headers.accept).includes(wanted)) return refused(400, `Accept header must include ${wanted}`);
  if (id === undefined || method === undefined) {
    // A JSON-RPC notification or response is ignored.
    if (id === undefined && method === undefined)
      return refused(400, "Neither request, response nor notification");
    return { status: 202, type: "application/json", body: "" };
  }
  try {
    if (action === undefined) throw new RpcRefusal(CODES.methodNotFound, `Method not found: ${method}`);
    const call = { engine, assistant: params.assistant ?? "", params: rpc.params, id, ...action };
    if (streams) return stream(call, begin(call));
    return json({ jsonrpc: "2.0", id, result: await result(call) });
  } catch (error) {
    if (!(error instanceof RpcRefusal)) throw error;
    const failed = { jsonrpc: "2.0", id, error: { code: error.code, message: error.message } };
    return streams ? events([failed]) : json(failed);
  }
}

interface Call extends NonNullable<ReturnType<typeof actionOf>> {
  readonly engine: RunEngine;
  readonly assistant: string;
  readonly params: unknown;
  readonly id: Id;
}

async function result(call: Call): Promise<object> {
  const { does, version } = call;
  if (does === "get") return getTask(call);
  if (does === "cancel")
    throw new RpcRefusal(CODES.unsupported, "Task cancellation is not currently supported");
  const run = begin(call);
  const task = toWireTask(run, { version, status: await run.ended.promise });
  // Only this response of A2A 1.0 is wrapped (docs/platform.md, Agent server).
  return version === "1.0" ? { task } : task;
}

function begin(call: Call): Run {
  const { engine, assistant, params } = call;
  const sent = sentMessage(params);
  if (assistant !== ASSISTANT.id)
    throw new RpcRefusal(CODES.invalidParams, `Assistant '${assistant}' not found`);
  const thread = threadOf(engine, sent, call);
  return engine.start({ thread, input: [{ type: "human", content: sent.text }], strategy: "enqueue" });
}

/** A new contextId begins a conversation (seen). */
function threadOf(engine: RunEngine, { contextId, taskId }: Sent, { isLive }: Dialect) {
  if (taskId === undefined) return engine.find(contextId ?? "") ?? engine.createThread(contextId);
  const task = engine.runById(taskId);
  if (task === undefined) throw new RpcRefusal(CODES.taskNotFound, `Task '${taskId}' not found`);
  if (contextId !== undefined && contextId !== task.thread.id) {
    throw new RpcRefusal(CODES.invalidParams, `Task '${taskId}' is not of context '${contextId}'`);
  }
  if (isLive && isOver(task)) {
    const why = "is in a terminal state and takes no further message";
    throw new RpcRefusal(CODES.unsupported, `Task '${taskId}' ${why}`);
  }
  return task.thread;
}

function getTask({ engine, params, version }: Call): object {
  const { id, contextId, historyLength } = requestedTask(params);
  const run = engine.runById(id);
  if (run === undefined || (contextId !== undefined && contextId !== run.thread.id)) {
    throw new RpcRefusal(CODES.taskNotFound, `Task '${id}' not found`);
  }
  return toWireTask(run, { version, historyLength });
}

/** If the client disconnects, the run continues. */
function stream({ id, version }: Call, run: Run): Response {
  const wrap = (result: object) => ({ jsonrpc: "2.0", id, result });
  const progress = async function* () {
    yield wrap(toWireTask(run, { version }));
    await Promise.race([run.started.promise, run.ended.promise]);
    yield wrap(toWireUpdate(run, "running", { final: false, version }));
    const end = await run.ended.promise;
    yield wrap(toWireUpdate(run, end, { final: true, version }));
  };
  return events(progress());
}

function events(of: Iterable<object> | AsyncIterable<object>): Response {
  const lines = async function* () {
    for await (const one of of) yield `event: message\ndata: ${JSON.stringify(one)}\n\n`;
  };
  return {
    status: 200,
    type: "text/event-stream; charset=utf-8",
    headers: { "cache-control": "no-store" },
    body: lines(),
  };
}

function card({ query, origin }: Exchange, isLive: boolean): Response {
  const { assistant_id: assistant } = checked(
    z.strictObject({ assistant_id: z.string().optional() }),
    query,
    "query",
  );
  const wrong = (message: string) => json({ error: { code: CODES.invalidParams, message } }, 400);
  if (assistant === undefined) return wrong("Missing required query parameter: assistant_id");
  if (assistant !== ASSISTANT.id) return wrong(`Assistant '${assistant}' not found`);
  const modes = ["text/plain"];
  const url = `${origin}/a2a/${assistant}`;
  const supportedInterfaces = ["1.0", "0.3"].map((protocolVersion) => {
    return { url, protocolBinding: "JSONRPC", protocolVersion };
  });
  return json({
    protocolVersion: "0.3.0",
    name: ASSISTANT.name,
    description: ASSISTANT.description,
    url,
    preferredTransport: "JSONRPC",
    ...(isLive ? { supportedInterfaces } : {}),
    capabilities: { streaming: true, pushNotifications: false, stateTransitionHistory: false },
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [
      {
        id: `${assistant}-main`,
        name: `${ASSISTANT.name} capabilities`,
        description: ASSISTANT.description,
        tags: ["assistant"],
        examples: [],
        inputModes: modes,
        outputModes: modes,
      },
    ],
    version: "0.0.0-standin",
  });
}

function refused(status: number, error: string): Response {
  return json({ error }, status);
}
