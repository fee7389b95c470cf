import { PlatformError, UsageError } from "../../core/base/errors.ts";
import { excerptOf, type RequestContext } from "../../core/platform/http/errors.ts";
import type { Protocol, Task } from "./a2a-responses.ts";

/** `contextId` and `taskId` come from the previous response; the first message has neither. */
export interface Sending {
  readonly assistantId: string;
  readonly text: string;
  readonly contextId?: string | null | undefined;
  readonly taskId?: string | null | undefined;
}

export interface Call {
  readonly method: string;
  readonly params: object;
  readonly headers: Readonly<Record<string, string>>;
  readonly taskId?: string | undefined;
  readonly accept?: string;
  /** Hidden in errors. */
  readonly secrets?: string;
  readonly effect: string;
}

/** Without this header, a server of A2A 1.0 treats a request as 0.3. */
const HEADERS: Readonly<Record<Protocol, Readonly<Record<string, string>>>> = {
  "0.3": {},
  "1.0": { "a2a-version": "1.0" },
};

type Action = "send" | "stream" | "task";

const METHODS: Readonly<Record<Protocol, Readonly<Record<Action, string>>>> = {
  "0.3": { send: "message/send", stream: "message/stream", task: "tasks/get" },
  "1.0": { send: "SendMessage", stream: "SendStreamingMessage", task: "GetTask" },
};

/** Every attempt has the same id. In version 1.0, parts have no `kind`. */
export function messageCall(
  { text, contextId, taskId, messageId }: Sending & { readonly messageId: string },
  action: "send" | "stream",
  protocol: Protocol,
): Call {
  const message = {
    ...(protocol === "1.0" ? { role: "ROLE_USER" } : { kind: "message", role: "user" }),
    messageId,
    parts: [protocol === "1.0" ? { text } : { kind: "text", text }],
    ...(contextId == null ? {} : { contextId }),
    ...(taskId == null ? {} : { taskId }),
  };
  const accept = action === "stream" ? "text/event-stream" : "application/json";
  const effect = effectOfMessage(contextId);
  const headers = HEADERS[protocol];
  const params = { message };
  const method = METHODS[protocol][action];
  return { method, params, headers, taskId: taskId ?? undefined, accept, secrets: text, effect };
}

/** Some servers also require the context, for which version 1.0 has no field. */
export function taskCall(
  { taskId, contextId }: { readonly taskId: string; readonly contextId?: string | undefined },
  protocol: Protocol,
): Call {
  const params = { id: taskId, ...(contextId === undefined ? {} : { contextId }) };
  const effect = "It changes nothing: run the command again.";
  return { method: METHODS[protocol].task, params, headers: HEADERS[protocol], effect };
}

function effectOfMessage(contextId: string | null | undefined): string {
  const look =
    contextId == null
      ? "Look at the newest traces of the deployment's project"
      : `Look at GET /threads/${contextId}/state of the deployment`;
  return `The message may have arrived, and then costs a trace. ${look} before you send it again.`;
}

/** Advice puts a server's text into a command only if a shell would not change it. */
function isPlain(text: string): boolean {
  return /^\w[\w.:-]*$/.test(text);
}

export function lookAgain({ taskId, contextId }: Task): string {
  const arrived = "The message has arrived.";
  if (!isPlain(`${taskId}`) || !isPlain(`${contextId}`))
    return `${arrived} Look at its task before you send it again.`;
  return `${arrived} Run \`usage-etl platform a2a task ${taskId} --context ${contextId}\` to see how it ended.`;
}

/** The form of threads and assistants. Postgres accepts any hexadecimal digits in it. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Checked before a request is sent, because servers refuse any other text with -32602. Error: `context_invalid`. */
export function refuseContext(contextId: string | null | undefined): void {
  if (contextId == null || UUID.test(contextId)) return;
  throw new UsageError({
    code: "context_invalid",
    message: `${JSON.stringify(contextId.slice(0, 80).toWellFormed())} is not the id of a conversation: such an id is a UUID.`,
    next: "Give the context id of an earlier response, such as 4340c6dc-954e-4ef4-a1e8-f73cc1826017. To begin a new conversation, leave --context out.",
  });
}

export const RPC = {
  methodNotFound: -32601,
  invalidParams: -32602,
  taskNotFound: -32001,
  unsupported: -32004,
} as const;

export interface Sent {
  readonly taskId?: string | undefined;
  /** Replaces the advice after an event of the stream: then the message has arrived. */
  readonly arrived?: string | undefined;
}

export class RpcError extends PlatformError {
  /** Undefined if the code is not a number. */
  readonly rpcCode: number | undefined;
  /** True if nothing was done. */
  readonly isRefusal: boolean;

  constructor(error: unknown, { method, url, redact, effect }: RequestContext, { taskId, arrived }: Sent) {
    const { code } = error as { code?: unknown };
    const rpcCode = typeof code === "number" ? code : undefined;
    // Only the code of a refusal in the first response proves that nothing was done.
    const refusal = arrived === undefined ? nextOf(rpcCode, taskId) : undefined;
    const next = refusal ?? ["Read the error above.", arrived ?? effect].join(" ").trim();
    super({
      code: "rpc_error",
      message: `${method} ${url} responded with JSON-RPC error ${excerptOf(describe(error), redact)}`,
      next,
      method,
      url,
    });
    this.rpcCode = rpcCode;
    this.isRefusal = refusal !== undefined;
  }
}

function nextOf(code: number | undefined, taskId: string | undefined): string | undefined {
  switch (code) {
    case RPC.taskNotFound:
      return taskId !== undefined
        ? "The assistant has no such task: the id is wrong, or the task is another assistant's. Send the message again without --task; --context continues the conversation."
        : "The assistant has no such task. Check the id, --assistant, and --context, which some servers require.";
    case RPC.unsupported:
      if (taskId === undefined) return "The server does not support this. Read the error above.";
      return `If the task has ended, send the message again with --context and without --task.${howToSee(taskId)}`;
    case RPC.invalidParams:
      return "A parameter is wrong: read the error above. Check --assistant, --context (a UUID) and --task.";
    case RPC.methodNotFound:
      return "The server does not have this method. Run `usage-etl platform a2a card` to see what it speaks.";
    default:
      return undefined;
  }
}

function howToSee(taskId: string): string {
  if (!isPlain(taskId)) return "";
  return ` \`usage-etl platform a2a task ${taskId}\` shows its context.`;
}

function describe(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return typeof message === "string" ? `${code ?? "without a code"}: ${message}` : JSON.stringify(error);
}
