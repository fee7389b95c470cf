import { PlatformError } from "../../errors.ts";
import { excerptOf, type RequestContext } from "../http/errors.ts";
import { isPlain } from "./a2a-calls.ts";

/** Codes of JSON-RPC 2.0 and of A2A (Agent server in docs/platform.md). */
export const RPC = {
  methodNotFound: -32601,
  invalidParams: -32602,
  taskNotFound: -32001,
  unsupported: -32004,
} as const;

/** What is known of the request that was answered with an error. */
export interface Sent {
  /** The task that a message named. */
  readonly taskId?: string | undefined;
  /** Said in place of advice once the message has arrived: an earlier event of the stream tells. */
  readonly arrived?: string | undefined;
}

/** The error of a JSON-RPC response. */
export class RpcError extends PlatformError {
  /** Undefined for anything but a number. */
  readonly rpcCode: number | undefined;

  constructor(error: unknown, { method, url, redact, effect }: RequestContext, { taskId, arrived }: Sent) {
    const { code } = error as { code?: unknown };
    const rpcCode = typeof code === "number" ? code : undefined;
    // Only the codes of a refusal say that nothing was done, and only as the first answer.
    const refusal = arrived === undefined ? nextOf(rpcCode, taskId) : undefined;
    const next = refusal ?? ["Read the error above.", arrived ?? effect].join(" ").trim();
    super({
      code: "rpc_error",
      message: `${method} ${url} answered with JSON-RPC error ${excerptOf(describe(error), redact)}`,
      next,
      method,
      url,
    });
    this.rpcCode = rpcCode;
  }
}

function nextOf(code: number | undefined, taskId: string | undefined): string | undefined {
  switch (code) {
    case RPC.taskNotFound:
      return taskId !== undefined
        ? "The assistant has no such task: the id is wrong, or the task is another assistant's. Send the message again without --task; --context continues the conversation."
        : "The assistant has no such task. Check the id, --assistant, and --context, which some servers ask for.";
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

/** Only an id that a shell takes as it is. */
function howToSee(taskId: string): string {
  if (!isPlain(taskId)) return "";
  return ` \`usage-etl platform a2a task ${taskId}\` shows its context.`;
}

function describe(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return typeof message === "string" ? `${code ?? "without a code"}: ${message}` : JSON.stringify(error);
}
