import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ASSISTANT, type Message, type Run, textOf } from "../engine/runs.ts";

/** JSON-RPC 2.0, and -32001 and -32004 of A2A. */
export const CODES = {
  methodNotFound: -32601,
  invalidParams: -32602,
  taskNotFound: -32001,
  unsupported: -32004,
} as const;

export class RpcRefusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = "RpcRefusal";
    this.code = code;
  }
}

const METHODS = { "message/send": "send", "message/stream": "stream", "tasks/get": "get" } as const;

/** Undefined: the method is unknown. */
export function actionOf(method: string): "send" | "stream" | "get" | undefined {
  return Object.hasOwn(METHODS, method) ? METHODS[method as keyof typeof METHODS] : undefined;
}

export type Id = string | number;

export const envelope = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params: z.unknown().optional(),
});

const sending = z.looseObject({
  message: z.looseObject({
    parts: z.array(z.looseObject({ text: z.string() })).min(1),
    messageId: z.string(),
    contextId: z.guid().optional(),
    taskId: z.string().optional(),
  }),
});
const getting = z.looseObject({ id: z.string().min(1), contextId: z.string().optional() });

export function sentMessage(params: unknown) {
  const { parts, contextId, taskId } = read(sending, params).message;
  return { text: parts.map(({ text }) => text).join("\n"), contextId, taskId };
}

/** A server 0.4.21 needs the context, and takes the id of a run only. */
export function requestedTask(params: unknown, isLive: boolean): z.output<typeof getting> {
  const given = read(getting, params);
  if (isLive || (given.contextId !== undefined && z.guid().safeParse(given.id).success)) return given;
  throw new RpcRefusal(CODES.invalidParams, "Missing contextId, or wrong id");
}

function read<T>(schema: z.ZodType<T>, params: unknown): T {
  const { success, data, error } = schema.safeParse(params);
  if (success) return data;
  const [issue] = error.issues;
  throw new RpcRefusal(CODES.invalidParams, `params.${issue?.path.join(".")}: ${issue?.message}`);
}

function taskIdOf({ thread, id, task }: Run, isLive: boolean): string {
  return isLive ? `${thread.id}:${task}` : id;
}

/** How a run is shown as a task: only newer servers know questions and cancelled runs. */
function stateOf({ status, question }: Run, isLive: boolean): string {
  if (status === "pending") return "submitted";
  if (status === "running") return "working";
  if (status === "interrupted" && isLive) return "canceled";
  if (status !== "success") return "failed";
  return isLive && question ? "input-required" : "completed";
}

/** The result of `message/send`. A run that somebody cancels is completed with an empty text on newer servers. */
export function responseOf(run: Run, isLive: boolean): object {
  const { status, error } = run;
  const isFailed = isLive ? status === "error" : status !== "success";
  const said = isFailed ? `Error executing assistant: ${error?.error}` : undefined;
  const state = isFailed ? "failed" : isLive && run.question ? "input-required" : "completed";
  return {
    ...named(run, isLive),
    history: isLive ? (isFailed ? [] : historyOf(run, isLive, 10)) : historyOf(run, isLive, 1),
    status: toWireStatus(run, isLive, { state, said }),
    ...(isFailed ? {} : { artifacts: [artifactOf(run, isLive)] }),
  };
}

/** The result of `tasks/get`, where a finished task has a sentence of the server. */
export function toWireTask(run: Run, isLive: boolean): object {
  const state = stateOf(run, isLive);
  const sentence: Partial<Record<string, string>> = {
    completed: "Task completed successfully",
    failed: `Task failed with status: ${run.status}`,
  };
  const history = isLive ? { history: historyOf(run, isLive, 10) } : {};
  return {
    ...named(run, isLive),
    status: toWireStatus(run, isLive, { state, said: sentence[state] }),
    ...history,
  };
}

/** The results of `message/stream`. Older servers send the reply in a status only. */
export async function* updatesOf(run: Run, isLive: boolean): AsyncGenerator<object> {
  const ids = { taskId: taskIdOf(run, isLive), contextId: run.thread.id };
  const update = (
    state: string,
    { said, final = false }: { said?: string | undefined; final?: boolean } = {},
  ) => {
    return { ...ids, kind: "status-update", status: toWireStatus(run, isLive, { state, said }), final };
  };
  const history = sentOf(run).map((one) => toWireMessage(run, one, isLive));
  const task = {
    ...named(run, isLive),
    history,
    status: toWireStatus(run, isLive, { state: "submitted" }),
  };
  yield task;
  await Promise.race([run.started.promise, run.ended.promise]);
  if (!isLive) yield update("working");
  await run.ended.promise;
  if (run.reply !== null) yield update("working", { said: textOf(run.reply.content) });
  if (isLive && (run.reply ?? run.question) !== null) {
    const chunk = run.question === null ? { append: false, lastChunk: true } : {};
    yield { ...ids, kind: "artifact-update", artifact: artifactOf(run, isLive), ...chunk };
  }
  const isFailed = run.status === "error" || (!isLive && run.status === "interrupted");
  const state = isFailed ? "failed" : isLive && run.question ? "input-required" : "completed";
  yield update(state, { said: isFailed ? run.error?.message : undefined, final: true });
}

function named(run: Run, isLive: boolean): object {
  return { kind: "task", id: taskIdOf(run, isLive), contextId: run.thread.id };
}

function artifactOf({ reply, question }: Run, isLive: boolean): object {
  const artifactId = randomUUID();
  if (isLive && question) {
    const description = "Agent requires input to continue";
    return { artifactId, name: "Interrupt", description, parts: [{ kind: "data", data: question }] };
  }
  const asked = question && `{'__interrupt__': [{'value': '${question.value}', 'id': '${question.id}'}]}`;
  const description = `Response from assistant ${ASSISTANT.id}`;
  return {
    artifactId,
    name: "Assistant Response",
    description,
    parts: [textPart(asked ?? textOf(reply?.content ?? ""))],
  };
}

/** Returns the messages that the client sent. An answer is no message of the thread. */
function sentOf(run: Run): Message[] {
  return run.request.input.map((one) => ({ ...one, id: randomUUID(), run }));
}

/** The newest messages of the context; on older servers, what was sent. */
function historyOf(run: Run, isLive: boolean, length: number): object[] {
  const messages = isLive ? run.thread.messages : sentOf(run);
  return messages.slice(-length).map((one) => toWireMessage(run, one, isLive));
}

function toWireStatus(
  run: Run,
  isLive: boolean,
  { state, said }: { readonly state: string; readonly said?: string | undefined },
): object {
  const message = said === undefined ? undefined : { id: randomUUID(), type: "ai", content: said, run };
  return {
    state,
    timestamp: new Date(run.updatedAt).toISOString(),
    message: message && toWireMessage(run, message, isLive),
  };
}

function toWireMessage(run: Run, { id, type, content, run: of = run }: Message, isLive: boolean): object {
  return {
    kind: "message",
    role: type === "human" ? "user" : "agent",
    parts: [textPart(textOf(content))],
    messageId: id,
    taskId: taskIdOf(of, isLive),
    contextId: run.thread.id,
  };
}

function textPart(text: string): object {
  return { kind: "text", text };
}
