import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ASSISTANT, type Message, messagesOf, type Run, textOf } from "../engine/runs.ts";

/** JSON-RPC 2.0, and -32001 to -32005 of A2A. */
export const CODES = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  taskNotFound: -32001,
  notCancelable: -32002,
  unsupported: -32004,
  contentUnsupported: -32005,
} as const;

export class RpcRefusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = "RpcRefusal";
    this.code = code;
  }
}

/** The method's name selects the version. */
export interface Dialect {
  readonly version: "0.3" | "1.0";
  readonly isLive: boolean;
}

type Action = "send" | "stream" | "get" | "cancel" | "list" | "card";

const METHODS: Readonly<Record<Dialect["version"], Readonly<Record<string, Action>>>> = {
  "0.3": { "message/send": "send", "message/stream": "stream", "tasks/get": "get", "tasks/cancel": "cancel" },
  "1.0": {
    SendMessage: "send",
    SendStreamingMessage: "stream",
    GetTask: "get",
    CancelTask: "cancel",
    ListTasks: "list",
    GetExtendedAgentCard: "card",
  },
};

/** Undefined: the method is unknown. Only newer servers have the methods of A2A 1.0. */
export function actionOf(method: string, isLive: boolean): (Dialect & { readonly does: Action }) | undefined {
  for (const version of isLive ? (["0.3", "1.0"] as const) : (["0.3"] as const)) {
    const names = METHODS[version];
    if (Object.hasOwn(names, method)) return { does: names[method] as Action, version, isLive };
  }
  return undefined;
}

export type Id = string | number;

export const envelope = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
});

const message = z.looseObject({
  parts: z.array(z.looseObject({ kind: z.string().optional(), text: z.unknown().optional() })).min(1),
  messageId: z.string().optional(),
  contextId: z.guid().optional(),
  taskId: z.string().optional(),
});
const sending = z.looseObject({ message });
const getting = z.looseObject({
  id: z.string().min(1),
  contextId: z.string().optional(),
  historyLength: z.int().min(0).default(10),
});

/** A newer server keeps the last of several texts. Other parts add no text. Errors: -32602, -32005. */
export function sentMessage(params: unknown, isLive: boolean) {
  const { message: given } = read(sending, params);
  const { parts, messageId, contextId, taskId } = given;
  if (isLive && messageId === undefined) {
    throw new RpcRefusal(CODES.invalidParams, "Missing 'messageId' in message");
  }
  const texts = parts.flatMap(({ kind, text }) => {
    const isText = kind === "text" || (kind === undefined && typeof text === "string");
    if (isText ? typeof text === "string" : isLive || kind === "data") return isText ? [`${text}`] : [];
    throw new RpcRefusal(CODES.contentUnsupported, `Unsupported part '${kind}'`);
  });
  return { texts: isLive ? texts.slice(-1) : texts, contextId, taskId };
}

/** A server 0.4.21 needs the context, and takes the id of a run only. */
export function requestedTask(params: unknown, isLive: boolean): z.output<typeof getting> {
  const given = read(getting, params);
  if (
    isLive ? given.historyLength > 10 : given.contextId === undefined || !z.guid().safeParse(given.id).success
  ) {
    throw new RpcRefusal(
      CODES.invalidParams,
      isLive ? "historyLength is at most 10" : "Missing contextId, or wrong id",
    );
  }
  return given;
}

function read<T>(schema: z.ZodType<T>, params: unknown): T {
  const { success, data, error } = schema.safeParse(params);
  if (success) return data;
  const [issue] = error.issues;
  throw new RpcRefusal(CODES.invalidParams, `params.${issue?.path.join(".")}: ${issue?.message}`);
}

function taskIdOf({ thread, id, task }: Run, { isLive }: Dialect): string {
  return isLive ? `${thread.id}:${task}` : id;
}

/** How a run is shown as a task: only newer servers know questions and cancelled runs. */
function stateOf({ status, question }: Run, { isLive }: Dialect): string {
  if (status === "pending") return "submitted";
  if (status === "running") return "working";
  if (status === "interrupted" && isLive) return "canceled";
  if (status !== "success") return "failed";
  return isLive && question ? "input-required" : "completed";
}

/** The result of `message/send`. A run that somebody cancels is completed with an empty text on newer servers. */
export function responseOf(run: Run, dialect: Dialect): object {
  const { isLive } = dialect;
  const { status, error } = run;
  const isFailed = isLive ? status === "error" : status !== "success";
  const said = isFailed ? `Error executing assistant: ${error?.error}` : undefined;
  const state = isFailed ? "failed" : isLive && run.question ? "input-required" : "completed";
  return {
    ...named(run, dialect),
    history: isLive ? (isFailed ? [] : historyOf(run, dialect, 10)) : historyOf(run, dialect, 1),
    status: toWireStatus(run, dialect, { state, said }),
    ...(isFailed ? {} : { artifacts: [artifactOf(run, dialect)] }),
  };
}

/** The result of `tasks/get`, where a finished task has a sentence of the server. `said` replaces it. */
export function toWireTask(
  run: Run,
  dialect: Dialect,
  { historyLength = 10, said }: { readonly historyLength?: number; readonly said?: string | null },
): object {
  const state = stateOf(run, dialect);
  const sentence = {
    completed: "Task completed successfully",
    failed: `Task failed with status: ${run.status}`,
  };
  const history =
    dialect.isLive && historyLength > 0 ? { history: historyOf(run, dialect, historyLength) } : {};
  const shown = said === undefined ? sentence[state as keyof typeof sentence] : (said ?? undefined);
  return { ...named(run, dialect), status: toWireStatus(run, dialect, { state, said: shown }), ...history };
}

/** The results of `message/stream`. Older servers send the reply in a status only. */
export async function* updatesOf(run: Run, dialect: Dialect): AsyncGenerator<object> {
  const { isLive, version } = dialect;
  const ids = { taskId: taskIdOf(run, dialect), contextId: run.thread.id };
  const update = (
    state: string,
    { said, final = false }: { said?: string | undefined; final?: boolean } = {},
  ) => {
    return { ...ids, kind: "status-update", status: toWireStatus(run, dialect, { state, said }), final };
  };
  const history = sentOf(run).map((one) => toWireMessage(run, one, dialect));
  const task = {
    ...named(run, dialect),
    history,
    status: toWireStatus(run, dialect, { state: "submitted" }),
  };
  yield version === "1.0" ? { task } : task;
  await Promise.race([run.started.promise, run.ended.promise]);
  if (!isLive) yield update("working");
  await run.ended.promise;
  if (run.reply !== null) yield update("working", { said: textOf(run.reply.content) });
  if (isLive && (run.reply ?? run.question) !== null) {
    const chunk = run.question === null ? { append: false, lastChunk: true } : {};
    yield { ...ids, kind: "artifact-update", artifact: artifactOf(run, dialect), ...chunk };
  }
  const isFailed = run.status === "error" || (!isLive && run.status === "interrupted");
  const state = isFailed ? "failed" : isLive && run.question ? "input-required" : "completed";
  yield update(state, { said: isFailed ? run.error?.message : undefined, final: true });
}

function named(run: Run, dialect: Dialect): object {
  return { kind: "task", id: taskIdOf(run, dialect), contextId: run.thread.id };
}

function artifactOf({ reply, question }: Run, { isLive }: Dialect): object {
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
  return (run.request.input ?? []).map((one) => ({ ...one, id: randomUUID(), run }));
}

/** The newest messages of the context; on older servers, what was sent. */
function historyOf(run: Run, dialect: Dialect, length: number): object[] {
  const messages = dialect.isLive ? messagesOf(run.thread) : sentOf(run);
  return messages.slice(-length).map((one) => toWireMessage(run, one, dialect));
}

function toWireStatus(
  run: Run,
  dialect: Dialect,
  { state, said }: { readonly state: string; readonly said?: string | undefined },
): object {
  const message = said === undefined ? undefined : { id: randomUUID(), type: "ai", content: said, run };
  return {
    state: spelled("TASK_STATE", state, dialect),
    timestamp: new Date(run.updatedAt).toISOString(),
    message: message && toWireMessage(run, message, dialect),
  };
}

/** Only the enums of the versions differ. */
function spelled(prefix: "ROLE" | "TASK_STATE", value: string, { version }: Dialect): string {
  return version === "0.3" ? value : `${prefix}_${value.replaceAll("-", "_").toUpperCase()}`;
}

function toWireMessage(run: Run, { id, type, content, run: of = run }: Message, dialect: Dialect): object {
  return {
    kind: "message",
    role: spelled("ROLE", type === "human" ? "user" : "agent", dialect),
    parts: [textPart(textOf(content))],
    messageId: id,
    taskId: taskIdOf(of, dialect),
    contextId: run.thread.id,
  };
}

function textPart(text: string): object {
  return { kind: "text", text };
}
