import { randomUUID } from "node:crypto";
import * as protocol03 from "@a2a-js/sdk/client";
import * as protocol1 from "a2a-sdk-1/client";

/** What the suite uses of both clients of the protocol, and of their responses. */
export interface Conversation {
  /** An empty id of the prior response is not sent. */
  send(text: string, prior?: Prior): Promise<TaskResponse>;
  stream(text: string, prior?: Prior): AsyncIterable<TaskResponse & { final: boolean }>;
  task(of: TaskResponse): Promise<TaskResponse>;
  cancel(of: TaskResponse): Promise<unknown>;
}

interface TaskResponse {
  readonly id: string;
  readonly contextId: string;
  readonly state: string;
  readonly reply: string | undefined;
}

type Prior = Pick<TaskResponse, "id" | "contextId">;

interface Server {
  readonly url: string;
  readonly apiKey: string;
  readonly assistant: string;
}

export const CLIENTS: Record<string, (server: Server) => Promise<Conversation>> = {
  "@a2a-js/sdk 0.3": with03,
  /** In its 0.3 mode, unless the card lists 1.0. */
  "@a2a-js/sdk 1.x": with1,
};

const CARD = "/.well-known/agent-card.json";
/** Neither client sends the platform's key by itself. */
const keyed =
  (apiKey: string): typeof fetch =>
  (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("x-api-key", apiKey);
    return fetch(input, { ...init, headers });
  };

async function with03({ url, apiKey, assistant }: Server): Promise<Conversation> {
  const fetchImpl = keyed(apiKey);
  const factory = new protocol03.ClientFactory({
    transports: [new protocol03.JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new protocol03.DefaultAgentCardResolver({ fetchImpl }),
  });
  const client = await factory.createFromUrl(url, `${CARD}?assistant_id=${assistant}`);
  const params = (text: string, prior?: Prior) => ({
    message: {
      kind: "message" as const,
      role: "user" as const,
      messageId: randomUUID(),
      parts: [{ kind: "text" as const, text }],
      ...(prior && { contextId: prior.contextId }),
      ...(prior?.id && { taskId: prior.id }),
    },
  });
  return {
    send: async (text, prior) => fromTask(await client.sendMessage(params(text, prior))),
    stream: async function* (text, prior) {
      for await (const event of client.sendMessageStream(params(text, prior))) yield fromEvent(event);
    },
    // Some servers need the context as well, which the protocol's parameters cannot carry.
    task: async ({ id, contextId }) => fromTask(await client.getTask({ id, contextId } as { id: string })),
    cancel: ({ id }) => client.cancelTask({ id }),
  };
}

interface Wire03 {
  kind: string;
  id?: string;
  taskId?: string;
  contextId?: string;
  status?: { state: string; message?: { parts: unknown[] } };
  artifacts?: { parts: unknown[] }[];
  final?: boolean;
}

function fromTask(response: unknown): TaskResponse {
  const { id, taskId, contextId, status, artifacts } = response as Wire03;
  const parts = (artifacts?.[0]?.parts ?? status?.message?.parts ?? []) as { kind: string; text?: string }[];
  return {
    id: `${id ?? taskId}`,
    contextId: `${contextId}`,
    state: `${status?.state}`,
    reply: parts.find((part) => part.kind === "text")?.text,
  };
}

function fromEvent(event: unknown): TaskResponse & { final: boolean } {
  return { ...fromTask(event), final: (event as Wire03).final ?? false };
}

async function with1({ url, apiKey, assistant }: Server): Promise<Conversation> {
  const fetchImpl = keyed(apiKey);
  const legacyCompat = { enabled: true };
  const factory = new protocol1.ClientFactory({
    transports: [new protocol1.JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
    cardResolver: new protocol1.DefaultAgentCardResolver({ fetchImpl, legacyCompat }),
  });
  const client = await factory.createFromUrl(url, `${CARD}?assistant_id=${assistant}`);
  type Request = Parameters<typeof client.sendMessage>[0];
  const USER = 1;
  const params = (text: string, prior?: Prior): Request => ({
    tenant: "",
    configuration: undefined,
    metadata: undefined,
    message: {
      messageId: randomUUID(),
      role: USER,
      contextId: prior?.contextId ?? "",
      taskId: prior?.id ?? "",
      parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
  });
  return {
    send: async (text, prior) => from1(await client.sendMessage(params(text, prior))),
    stream: async function* (text, prior) {
      for await (const { payload } of client.sendMessageStream(params(text, prior))) {
        const responded = from1(payload?.value);
        // Version 1 has no `final`: the last state is final.
        yield { ...responded, final: payload?.$case === "statusUpdate" && responded.state === "completed" };
      }
    },
    task: async ({ id }) => from1(await client.getTask({ id, tenant: "", historyLength: undefined })),
    cancel: ({ id }) => client.cancelTask({ id, tenant: "", metadata: undefined }),
  };
}

const STATES_1 = ["unspecified", "submitted", "working", "completed", "failed"];

interface Wire1 {
  id?: string;
  taskId?: string;
  contextId?: string;
  status?: { state: number; message?: { parts: Part1[] } };
  artifacts?: { parts: Part1[] }[];
}
interface Part1 {
  content?: { $case: string; value: unknown };
}

function from1(response: unknown): TaskResponse {
  const { id, taskId, contextId, status, artifacts } = response as Wire1;
  const parts = artifacts?.[0]?.parts ?? status?.message?.parts ?? [];
  const text = parts.find((part) => part.content?.$case === "text")?.content?.value;
  return {
    id: `${id ?? taskId}`,
    contextId: `${contextId}`,
    state: STATES_1[status?.state ?? 0] ?? "other",
    reply: text === undefined ? undefined : `${text}`,
  };
}
