import { randomUUID } from "node:crypto";
import { z } from "zod";
import { PlatformError } from "../../errors.ts";
import { faultError } from "../http/errors.ts";
import { cutError, eventData } from "../http/events.ts";
import type { Asking, PlatformAnswer, PlatformHttp } from "../http/http.ts";
import { checkedJson, getJson, readJson } from "../http/json-document.ts";

export interface Task {
  readonly taskId: string;
  readonly contextId: string;
  /** `submitted`, `working`, `completed`, `failed`, `input-required` or another. */
  readonly state: string;
  /** The first text of the artifacts, else of the status message (Agent server in docs/platform.md). */
  readonly reply: string | null;
}

/** An event of a stream. The last one is final. */
interface TaskEvent extends Task {
  readonly final: boolean;
}

export type AgentCard = Readonly<z.output<typeof cardSchema>>;

/** A message. `contextId` and `taskId` are from the previous answer; the first message has none. */
interface Sending {
  readonly assistantId: string;
  readonly text: string;
  readonly contextId?: string | undefined;
  readonly taskId?: string | undefined;
}

const parts = z.array(z.looseObject({ kind: z.string(), text: z.string().optional() })).default([]);
const status = z.object({ state: z.string(), message: z.object({ parts }).nullish() });
const artifacts = z.array(z.object({ parts })).nullish();
const taskSchema = z
  .object({ id: z.string().min(1), contextId: z.string().min(1), status, artifacts })
  .transform((wire): Task => {
    const inArtifacts = (wire.artifacts ?? []).map((one) => textOf(one.parts)).find((text) => text !== null);
    return {
      taskId: wire.id,
      contextId: wire.contextId,
      state: wire.status.state,
      reply: inArtifacts ?? textOf(wire.status.message?.parts),
    };
  });
const updateSchema = z.object({
  taskId: z.string().min(1),
  contextId: z.string().min(1),
  status: status.optional(),
  artifact: z.object({ parts }).optional(),
  final: z.boolean().default(false),
});
const modes = z.array(z.string()).default([]);
const cardSchema = z
  .object({
    name: z.string(),
    description: z.string().nullable().default(null),
    url: z.string().nullable().default(null),
    skills: z.array(z.object({ name: z.string() }).transform(({ name }) => name)).default([]),
    defaultInputModes: modes,
    defaultOutputModes: modes,
  })
  .transform(({ defaultInputModes: inputModes, defaultOutputModes: outputModes, ...card }) => {
    return { ...card, inputModes, outputModes };
  });
const responseSchema = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.int(), message: z.string().default("") }).optional(),
});

/**
 * The A2A endpoint of one deployment. It sends a message once. Every method throws `PlatformError` (`rpc_error` for an error
 * in a JSON-RPC response), or the signal's reason unchanged. The client owns `http`: closing one closes the other.
 */
export function createA2aClient(http: PlatformHttp) {
  const post = (
    assistantId: string,
    call: { method: string; params: object; accept?: string },
    io: Asking & { headersMs?: number | undefined },
  ) => {
    const { accept, ...rpc } = call;
    const body = { jsonrpc: "2.0", id: randomUUID(), ...rpc };
    const path = `/a2a/${encodeURIComponent(assistantId)}`;
    return http.send({ method: "POST", path, body, ...(accept === undefined ? {} : { accept }), ...io });
  };
  return {
    card: async (assistantId: string, { signal }: Asking = {}) => {
      const query = new URLSearchParams({ assistant_id: assistantId });
      return getJson(http, { path: "/.well-known/agent-card.json", query, signal }, cardSchema);
    },
    send: async (message: Sending, { signal, withinMs }: Asking & { withinMs?: number | undefined } = {}) => {
      const call = { method: "message/send", params: toWireParams(message) };
      const answer = await post(message.assistantId, call, { signal, headersMs: withinMs });
      return resultOf(answer, await readJson(answer, responseSchema), taskSchema);
    },
    /** Throws `answer_cut` if the stream ends before its final event. Leaving the loop early closes the connection. */
    stream: async function* (message: Sending, { signal }: Asking = {}) {
      const call = { method: "message/stream", params: toWireParams(message), accept: "text/event-stream" };
      const answer = await post(message.assistantId, call, { signal });
      for await (const data of eventData(answer)) {
        const event = fromWireEvent(answer, data);
        if (event === undefined) continue;
        yield event;
        if (event.final) return;
      }
      throw cutError(answer);
    },
    task: async (
      of: { assistantId: string; taskId: string; contextId?: string | undefined },
      { signal }: Asking = {},
    ) => {
      const { assistantId, taskId, contextId } = of;
      const params = { id: taskId, ...(contextId === undefined ? {} : { contextId }) };
      const answer = await post(assistantId, { method: "tasks/get", params }, { signal });
      return resultOf(answer, await readJson(answer, responseSchema), taskSchema);
    },
    close: () => http.close(),
  };
}

function toWireParams({ text, contextId, taskId }: Sending): object {
  const message = {
    kind: "message",
    role: "user",
    messageId: randomUUID(),
    parts: [{ kind: "text", text }],
    ...(contextId === undefined ? {} : { contextId }),
    ...(taskId === undefined ? {} : { taskId }),
  };
  return { message };
}

function resultOf<T>(
  answer: PlatformAnswer,
  response: z.output<typeof responseSchema>,
  schema: z.ZodType<T>,
): T {
  const { error, result } = response;
  const { body, context } = answer;
  if (error === undefined) {
    return checkedJson(result, schema, (fault) => faultError(fault, body.status, context));
  }
  const { method, url } = context;
  const message = `${method} ${url} answered with JSON-RPC error ${error.code}: ${error.message}`;
  throw new PlatformError({
    code: "rpc_error",
    message: context.redact(message),
    next: "Read the error above. -32001: no such task; -32602: a parameter is wrong; -32601, -32004: the server does not support it.",
    method,
    url,
  });
}

/** Undefined for an event that is neither task, status nor artifact. */
function fromWireEvent(answer: PlatformAnswer, data: string): TaskEvent | undefined {
  const { body, context } = answer;
  const fail = (fault: Parameters<typeof faultError>[0]) => faultError(fault, body.status, context);
  const result = resultOf(
    answer,
    checkedJson(parse(data), responseSchema, fail),
    z.looseObject({ kind: z.string() }),
  );
  if (result.kind === "task") return { ...checkedJson(result, taskSchema, fail), final: false };
  if (result.kind !== "status-update" && result.kind !== "artifact-update") return undefined;
  const update = checkedJson(result, updateSchema, fail);
  return {
    taskId: update.taskId,
    contextId: update.contextId,
    state: update.status?.state ?? "working",
    reply: textOf(update.artifact?.parts) ?? textOf(update.status?.message?.parts),
    final: update.final,
  };
}

/** Undefined for anything but JSON, which the schema then refuses. */
function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function textOf(of: z.output<typeof parts> | undefined): string | null {
  return of?.find((part) => part.kind === "text")?.text ?? null;
}
