import { PlatformError } from "../../errors.ts";
import { excerptOf, type RequestContext } from "../http/errors.ts";

/** Codes of JSON-RPC 2.0 and of A2A (Agent server in docs/platform.md). */
export const RPC = {
  methodNotFound: -32601,
  invalidParams: -32602,
  taskNotFound: -32001,
  unsupported: -32004,
} as const;

/** The error of a JSON-RPC response. */
export class RpcError extends PlatformError {
  /** Undefined for anything but a number. */
  readonly rpcCode: number | undefined;

  /** `hasTask`: whether a message named one. */
  constructor(error: unknown, { method, url, redact, effect }: RequestContext, hasTask: boolean) {
    const { code } = error as { code?: unknown };
    const rpcCode = typeof code === "number" ? code : undefined;
    // Only the codes of a refusal say that nothing was done.
    const next = nextOf(rpcCode, hasTask) ?? ["Read the error above.", effect].join(" ").trim();
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

function nextOf(code: number | undefined, hasTask: boolean): string | undefined {
  switch (code) {
    case RPC.taskNotFound:
      return hasTask
        ? "The assistant has no such task: the id is wrong, or the task is another assistant's. Send the message again without --task; --context continues the conversation."
        : "The assistant has no such task. Check the id, --assistant, and --context, which some servers ask for.";
    case RPC.unsupported:
      return hasTask
        ? "The server does not support this. If the task has ended, send the message again with --context and without --task. `usage-etl platform a2a task ID` shows its context."
        : "The server does not support this. Read the error above.";
    case RPC.invalidParams:
      return "A parameter is wrong: read the error above. Check --assistant, --context (a UUID) and --task.";
    case RPC.methodNotFound:
      return "The server does not have this method. Run `usage-etl platform a2a card` to see what it speaks.";
    default:
      return undefined;
  }
}

function describe(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return typeof message === "string" ? `${code ?? "without a code"}: ${message}` : JSON.stringify(error);
}
