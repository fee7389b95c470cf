import { z } from "zod";

/** JSON-RPC 2.0 codes (docs/platform.md, Agent server); -32001 to -32005 are the A2A protocol's own (documented). */
export const CODES = {
  methodNotFound: -32601,
  invalidParams: -32602,
  taskNotFound: -32001,
  pushUnsupported: -32003,
  unsupported: -32004,
  contentUnsupported: -32005,
} as const;

/** Thrown while a request is answered; becomes the `error` of its response, and starts no run. */
export class RpcRefusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = "RpcRefusal";
    this.code = code;
  }
}

export type Id = string | number;

/** The protocol's own clients send numbers as id, so both strings and numbers are accepted. */
export const envelope = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
});

/** docs/platform.md, Agent server. Fields that only the protocol documents are accepted and ignored. */
const message = z.strictObject({
  role: z.literal("user"),
  parts: z.array(z.looseObject({ kind: z.string() })).min(1),
  messageId: z.string().min(1),
  contextId: z.guid().optional(),
  taskId: z.string().optional(),
  kind: z.literal("message").optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  extensions: z.array(z.string()).optional(),
  referenceTaskIds: z.array(z.string()).optional(),
});
const configuration = z.strictObject({
  blocking: z.boolean().default(true),
  acceptedOutputModes: z.array(z.string()).default([]),
  historyLength: z.int().min(0).optional(),
  pushNotificationConfig: z.unknown().optional(),
});
const sending = z.strictObject({
  message,
  configuration: configuration.prefault({}),
  metadata: z.record(z.string(), z.unknown()).optional(),
});
/** At most ten messages of history (seen). */
const getting = z.strictObject({
  id: z.string().min(1),
  contextId: z.string().optional(),
  historyLength: z.int().min(0).max(10).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
});

export type Sent = z.output<typeof message> & { readonly text: string };

/** The message of `message/send` and `message/stream`. Errors: -32602, -32003, -32004, -32005. */
export function sentMessage(params: unknown): Sent {
  const given = read(sending, params);
  const { blocking, acceptedOutputModes: modes, pushNotificationConfig } = given.configuration;
  if (pushNotificationConfig !== undefined && pushNotificationConfig !== null) {
    throw new RpcRefusal(CODES.pushUnsupported, "Push notifications are not supported");
  }
  // message/send returns a complete response, so nothing else is supported (our guess).
  if (!blocking)
    throw new RpcRefusal(CODES.unsupported, "Sending without waiting for the response is not supported");
  if (modes.length > 0 && !modes.some((mode) => ["text/plain", "text/*", "*/*", "text"].includes(mode))) {
    throw new RpcRefusal(CODES.contentUnsupported, `Only text/plain is produced, not ${modes.join(", ")}`);
  }
  const texts = given.message.parts.map((part) => {
    // Text parts alone (docs/platform.md, Agent server).
    if (part.kind !== "text") {
      throw new RpcRefusal(CODES.contentUnsupported, `Unsupported part kind '${part.kind}': only 'text' is`);
    }
    if (typeof part.text !== "string") throw new RpcRefusal(CODES.invalidParams, "A text part has no 'text'");
    return part.text;
  });
  return { ...given.message, text: texts.join("\n") };
}

export function askedTask(params: unknown): z.output<typeof getting> {
  return read(getting, params);
}

function read<T>(schema: z.ZodType<T>, params: unknown): T {
  const { success, data, error } = schema.safeParse(params);
  if (success) return data;
  const [issue] = error.issues;
  throw new RpcRefusal(CODES.invalidParams, `params.${issue?.path.join(".")}: ${issue?.message}`);
}
