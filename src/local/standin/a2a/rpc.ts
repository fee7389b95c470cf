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

/** How a server was addressed. The name of the method selects the version (docs/platform.md, Agent server). */
export interface Dialect {
  readonly version: "0.3" | "1.0";
  /** Whether it speaks as newer servers do. */
  readonly isLive: boolean;
}

type Action = "send" | "stream" | "get" | "cancel" | "list";

const METHODS: Readonly<Record<Dialect["version"], Readonly<Record<string, Action>>>> = {
  "0.3": { "message/send": "send", "message/stream": "stream", "tasks/get": "get", "tasks/cancel": "cancel" },
  "1.0": {
    SendMessage: "send",
    SendStreamingMessage: "stream",
    GetTask: "get",
    CancelTask: "cancel",
    ListTasks: "list",
  },
};

/** Undefined for a method that is not there: the names of A2A 1.0 are newer servers' alone. */
export function actionOf(method: string, isLive: boolean): (Dialect & { readonly does: Action }) | undefined {
  for (const version of isLive ? (["0.3", "1.0"] as const) : (["0.3"] as const)) {
    const names = METHODS[version];
    if (Object.hasOwn(names, method)) return { does: names[method] as Action, version, isLive };
  }
  return undefined;
}

export type Id = string | number;

const MOST_HISTORY = 10;

/** The protocol's own clients send numbers as id, so both strings and numbers are accepted. */
export const envelope = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.unknown().optional(),
});

/** docs/platform.md, Agent server. Fields that only the protocol documents are accepted and ignored. */
const message = z.strictObject({
  role: z.enum(["user", "ROLE_USER"]),
  parts: z.array(z.looseObject({ kind: z.string().optional() })).min(1),
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
  /** In A2A 1.0 the opposite of `blocking` (documented). */
  returnImmediately: z.boolean().default(false),
  acceptedOutputModes: z.array(z.string()).default([]),
  historyLength: z.int().min(0).optional(),
  pushNotificationConfig: z.unknown().optional(),
  taskPushNotificationConfig: z.unknown().optional(),
});
const sending = z.strictObject({
  message,
  configuration: configuration.prefault({}),
  metadata: z.record(z.string(), z.unknown()).optional(),
  tenant: z.string().optional(),
});
/** At most ten messages of history (seen). */
const getting = z.strictObject({
  id: z.string().min(1),
  contextId: z.string().optional(),
  historyLength: z.int().min(0).max(MOST_HISTORY).optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  tenant: z.string().optional(),
});
const listing = z.strictObject({
  contextId: z.string().optional(),
  pageSize: z.int().min(1).max(100).default(50),
  historyLength: z.int().min(0).max(MOST_HISTORY).default(0),
  tenant: z.string().optional(),
});

export type Sent = z.output<typeof message> & { readonly text: string };

/** The message of `message/send` and `message/stream`. Errors: -32601, -32602, -32003, -32004, -32005. */
export function sentMessage(params: unknown, { version, isLive }: Dialect): Sent {
  const given = read(sending, params);
  if (version === "0.3") refuseSpelling(given);
  const { blocking, returnImmediately, acceptedOutputModes: modes, historyLength } = given.configuration;
  const { pushNotificationConfig, taskPushNotificationConfig } = given.configuration;
  if ((pushNotificationConfig ?? taskPushNotificationConfig ?? null) !== null) {
    // The code of live servers: docs/platform.md, Agent server. The other one is the protocol's (documented).
    const code = isLive ? CODES.methodNotFound : CODES.pushUnsupported;
    throw new RpcRefusal(code, "Push notifications are not supported");
  }
  // docs/platform.md, Agent server.
  if (isLive && (historyLength ?? 0) > MOST_HISTORY) {
    throw new RpcRefusal(CODES.invalidParams, `historyLength must be ${MOST_HISTORY} or less`);
  }
  // message/send returns a complete response, so nothing else is supported (our guess).
  if (!blocking || returnImmediately)
    throw new RpcRefusal(CODES.unsupported, "Sending without waiting for the response is not supported");
  if (modes.length > 0 && !modes.some((mode) => ["text/plain", "text/*", "*/*", "text"].includes(mode))) {
    throw new RpcRefusal(CODES.contentUnsupported, `Only text/plain is produced, not ${modes.join(", ")}`);
  }
  const texts = given.message.parts.map((part) => {
    // Text parts alone (docs/platform.md, Agent server). In A2A 1.0 a part has no kind (documented).
    const kind = part.kind ?? (typeof part.text === "string" ? "text" : "other");
    if (kind !== "text") {
      throw new RpcRefusal(CODES.contentUnsupported, `Unsupported part kind '${kind}': only 'text' is`);
    }
    if (typeof part.text !== "string") throw new RpcRefusal(CODES.invalidParams, "A text part has no 'text'");
    return part.text;
  });
  return { ...given.message, text: texts.join("\n") };
}

/** The names of A2A 0.3 take its own spelling only (our guess). */
function refuseSpelling({ message: { role, parts } }: z.output<typeof sending>): void {
  if (role !== "user") throw new RpcRefusal(CODES.invalidParams, "params.message.role: it must be 'user'");
  const at = parts.findIndex(({ kind }) => kind === undefined);
  if (at === -1) return;
  throw new RpcRefusal(CODES.invalidParams, `params.message.parts.${at}.kind: it is missing`);
}

export function askedTasks(params: unknown): z.output<typeof listing> {
  return read(listing, params);
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
