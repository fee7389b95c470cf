import { randomUUID } from "node:crypto";
import { z } from "zod";
import { ASSISTANT, type Message, type Run, type RunStatus } from "../engine/runs.ts";

/** JSON-RPC 2.0 (docs/platform.md, Agent server); -32001 to -32005: A2A (documented). */
export const CODES = {
  methodNotFound: -32601,
  invalidParams: -32602,
  taskNotFound: -32001,
  unsupported: -32004,
  contentUnsupported: -32005,
} as const;

/** Becomes the `error` of a response. No run starts. */
export class RpcRefusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = "RpcRefusal";
    this.code = code;
  }
}

/** The method's name selects the version (docs/platform.md, Agent server). */
export interface Dialect {
  readonly version: "0.3" | "1.0";
  readonly isLive: boolean;
}

type Action = "send" | "stream" | "get" | "cancel";

const METHODS: Readonly<Record<Dialect["version"], Readonly<Record<string, Action>>>> = {
  "0.3": { "message/send": "send", "message/stream": "stream", "tasks/get": "get", "tasks/cancel": "cancel" },
  "1.0": {
    SendMessage: "send",
    SendStreamingMessage: "stream",
    GetTask: "get",
    CancelTask: "cancel",
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

/** The protocol's own clients use numbers as ids. */
export const envelope = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
});

/** docs/platform.md, Agent server. Other fields of the protocol are ignored. */
const message = z.looseObject({
  role: z.enum(["user", "ROLE_USER"]),
  parts: z.array(z.looseObject({ kind: z.string().optional() })).min(1),
  messageId: z.string().min(1),
  contextId: z.guid().optional(),
  taskId: z.string().optional(),
});
/** message/send returns a complete response (our guess). */
const configuration = z.looseObject({ blocking: z.literal(true).optional() });
const sending = z.looseObject({ message, configuration: configuration.optional() });
/** At most ten messages of history (seen). */
const getting = z.looseObject({
  id: z.string().min(1),
  contextId: z.string().optional(),
  historyLength: z.int().min(0).max(10).default(10),
});

export type Sent = z.output<typeof message> & { readonly text: string };

/** Errors: -32602, -32005. */
export function sentMessage(params: unknown): Sent {
  const given = read(sending, params);
  const texts = given.message.parts.map((part) => {
    // Text parts only (docs/platform.md, Agent server). Parts of A2A 1.0 have no kind (documented).
    const kind = part.kind ?? (typeof part.text === "string" ? "text" : "other");
    if (kind !== "text") {
      throw new RpcRefusal(CODES.contentUnsupported, `Unsupported part kind '${kind}': only 'text' is`);
    }
    if (typeof part.text !== "string") throw new RpcRefusal(CODES.invalidParams, "A text part has no 'text'");
    return part.text;
  });
  return { ...given.message, text: texts.join("\n") };
}

export function requestedTask(params: unknown): z.output<typeof getting> {
  return read(getting, params);
}

function read<T>(schema: z.ZodType<T>, params: unknown): T {
  const { success, data, error } = schema.safeParse(params);
  if (success) return data;
  const [issue] = error.issues;
  throw new RpcRefusal(CODES.invalidParams, `params.${issue?.path.join(".")}: ${issue?.message}`);
}

type Version = Dialect["version"];

/** The protocol's names (seen). */
const STATES: Readonly<Record<RunStatus | "deleted", string>> = {
  pending: "submitted",
  running: "working",
  success: "completed",
  error: "failed",
  interrupted: "input-required",
  deleted: "canceled",
};

interface TaskForm {
  readonly version: Version;
  readonly status?: RunStatus | "deleted";
  readonly historyLength?: number;
}

export function isOver({ status }: Run): boolean {
  return status === "success" || status === "error";
}

/**
 * `id`, `contextId`, `artifacts`, `status`: docs/platform.md, Agent server. Other fields, and `canceled` after a rollback:
 * documented.
 */
export function toWireTask(run: Run, { version, status = run.status, historyLength = 10 }: TaskForm): object {
  const reply = replyOf(run);
  const messages = run.after.length > 0 ? run.after : [...run.before, ...run.input];
  return {
    kind: "task",
    id: run.id,
    contextId: run.thread.id,
    status: statusOf(run, status, { withReply: false, version }),
    artifacts: reply && [
      {
        artifactId: reply.id,
        name: "Assistant Response",
        description: `Response from assistant ${ASSISTANT.name}`,
        parts: [textPart(reply.content)],
      },
    ],
    history: messages
      .slice(Math.max(0, messages.length - historyLength))
      .map((one) => toWireMessage(run, one, version)),
  };
}

export function toWireUpdate(
  run: Run,
  status: RunStatus | "deleted",
  { final, version }: { final: boolean; version: Version },
): object {
  return {
    kind: "status-update",
    taskId: run.id,
    contextId: run.thread.id,
    status: statusOf(run, status, { withReply: final, version }),
    final,
  };
}

function statusOf(
  run: Run,
  status: RunStatus | "deleted",
  { withReply, version }: { withReply: boolean; version: Version },
): object {
  const reply = withReply ? replyOf(run) : undefined;
  const failure: Message | undefined =
    run.error === null ? undefined : { id: `${run.id}-error`, type: "ai", content: run.error };
  const said = reply ?? failure;
  return {
    state: spelled("TASK_STATE", STATES[status], version),
    timestamp: new Date(run.updatedAt).toISOString(),
    message: said && toWireMessage(run, said, version),
  };
}

function replyOf(run: Run): Message | undefined {
  const last = run.status === "success" ? run.after.at(-1) : undefined;
  return last?.type === "ai" ? last : undefined;
}

/** Only the enums of the versions differ (docs/platform.md, Agent server). */
function spelled(prefix: "ROLE" | "TASK_STATE", value: string, version: Version): string {
  return version === "0.3" ? value : `${prefix}_${value.replaceAll("-", "_").toUpperCase()}`;
}

function toWireMessage(run: Run, { id, type, content }: Message, version: Version): object {
  return {
    kind: "message",
    role: spelled("ROLE", type === "human" ? "user" : "agent", version),
    parts: [textPart(content)],
    messageId: id || randomUUID(),
    taskId: run.id,
    contextId: run.thread.id,
  };
}

function textPart(text: string): object {
  return { kind: "text", text };
}
