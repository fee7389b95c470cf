import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as protocol03 from "@a2a-js/sdk/client";
import { Client } from "@langchain/langgraph-sdk";
import * as protocol1 from "a2a-sdk-1/client";
import { describe, expect, test } from "vitest";
import { startStandin } from "../../../src/features/standin/server.ts";
import { AGENT, normal } from "./rules.ts";
import { startServer, VERSIONS } from "./servers.ts";

type Script = (url: string, apiKey: string, bin: string) => Promise<unknown>;
const HERE = fileURLToPath(new URL("./", import.meta.url));

const python =
  (script: string): Script =>
  async (url, apiKey, bin) => {
    const { stdout } = await promisify(execFile)(join(bin, "python"), [join(HERE, script), url, apiKey]);
    return stdout.trim().split("\n");
  };

const said = (content: string) => ({ input: { messages: [{ role: "user", content }] } });

const threadsAndRuns: Script = async (apiUrl, apiKey) => {
  const client = new Client({ apiUrl, apiKey, callerOptions: { maxRetries: 0 } });
  const shown: unknown[] = [];
  const messages = (values: unknown) =>
    (values as { messages: { type: string; content: string }[] }).messages.map((one) => [
      one.type,
      one.content,
    ]);
  const failure = (requested: Promise<unknown>) => requested.catch(({ status }) => status);
  const { thread_id: id } = await client.threads.create({ metadata: { mark: randomUUID() } });
  const run = await client.runs.create(id, "agent", said("hello"));
  shown.push(
    run.status,
    messages(await client.runs.join(id, run.run_id)),
    (await client.runs.get(id, run.run_id)).status,
  );
  shown.push(messages(await client.runs.wait(id, "agent", said("two"))));
  for (const streamMode of ["values", "updates", "messages-tuple"] as const)
    for await (const { event } of client.runs.stream(id, "agent", { ...said(streamMode), streamMode }))
      shown.push(event);
  const slow = await client.runs.create(id, "agent", said("delay=20000 slow"));
  shown.push(await failure(client.runs.create(id, "agent", { ...said("x"), multitaskStrategy: "reject" })));
  const later = await client.runs.create(id, "agent", { ...said("later"), multitaskStrategy: "rollback" });
  await client.runs.join(id, later.run_id);
  shown.push(
    await failure(client.runs.get(id, slow.run_id)),
    messages((await client.threads.getState(id)).values).length,
  );
  shown.push(
    (await client.threads.getHistory(id, { limit: 3 })).length,
    (await client.threads.search({ ids: [id] })).length,
  );
  const copied = await client.threads.copy(id);
  shown.push(messages((await client.threads.getState(copied.thread_id)).values).length);
  await client.threads.delete(id);
  shown.push(await failure(client.threads.get(id)));
  shown.push(
    (await client.assistants.search()).map(({ name }) => name),
    Object.keys(await client.assistants.getSchemas(AGENT)),
  );
  return shown;
};

const CARD = `/.well-known/agent-card.json?assistant_id=${AGENT}`;
/** A user of a server 0.4.21 sets this header, since it refuses wildcards. */
const headed =
  (apiKey: string): typeof fetch =>
  (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("x-api-key", apiKey);
    return fetch(input, { ...init, headers });
  };
const outcome = (requested: Promise<unknown>) =>
  requested.catch((error: Error) => `${error.name}: ${error.message}`.slice(0, 60));
const all = async (events: AsyncIterable<unknown>) => {
  const seen: unknown[] = [];
  for await (const event of events) seen.push(event);
  return seen;
};
const TEXTS = ["hello", "fail", "question"];

const a2a03: Script = async (url, apiKey) => {
  const fetchImpl = headed(apiKey);
  const factory = new protocol03.ClientFactory({
    transports: [new protocol03.JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new protocol03.DefaultAgentCardResolver({ fetchImpl }),
  });
  const client = await factory.createFromUrl(url, CARD);
  const contextId = randomUUID();
  const message = (text: string) => {
    const parts = [{ kind: "text" as const, text }];
    return {
      message: { kind: "message" as const, role: "user" as const, messageId: randomUUID(), contextId, parts },
    };
  };
  const shown: unknown[] = [];
  for (const text of TEXTS) shown.push(await outcome(client.sendMessage(message(text))));
  for (const text of TEXTS) shown.push(await outcome(all(client.sendMessageStream(message(text)))));
  return shown;
};

const a2a1: Script = async (url, apiKey) => {
  const fetchImpl = headed(apiKey);
  const factory = new protocol1.ClientFactory({
    transports: [new protocol1.JsonRpcTransportFactory({ fetchImpl, legacyCompat: { enabled: true } })],
    cardResolver: new protocol1.DefaultAgentCardResolver({ fetchImpl, legacyCompat: { enabled: true } }),
  });
  const client = await factory.createFromUrl(url, CARD);
  const contextId = randomUUID();
  const message = (text: string) => ({
    tenant: "",
    configuration: undefined,
    metadata: undefined,
    message: {
      messageId: randomUUID(),
      role: 1,
      contextId,
      taskId: "",
      parts: [
        {
          content: { $case: "text" as const, value: text },
          metadata: undefined,
          filename: "",
          mediaType: "",
        },
      ],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
  });
  const shown: unknown[] = [];
  for (const text of TEXTS) shown.push(await outcome(client.sendMessage(message(text))));
  for (const text of TEXTS) shown.push(await outcome(all(client.sendMessageStream(message(text)))));
  return shown;
};

const SCRIPTS: Readonly<Record<string, Script>> = {
  "langgraph-sdk for Python": python("sdk_langgraph.py"),
  "a2a-sdk for Python": python("sdk_a2a.py"),
  "@langchain/langgraph-sdk": threadsAndRuns,
  "@a2a-js/sdk 0.3": a2a03,
  "@a2a-js/sdk 1.x": a2a1,
};

describe.each(VERSIONS)("as server %s", (version) => {
  test("each SDK returns the same", async ({ skip }) => {
    const server = await startServer(version).catch((error) =>
      skip(`No agent server here: ${error.message}`),
    );
    const standin = await startStandin({ a2a: version === "0.16.7" ? "live" : "specified" });
    try {
      for (const [name, script] of Object.entries(SCRIPTS)) {
        const [real, ours] = await Promise.all(
          [server.url, standin.url].map((url) => script(url, standin.apiKey, server.bin)),
        );
        expect(lines(ours), name).toEqual(lines(real));
      }
    } finally {
      await server.close();
      await standin.close();
    }
  });
});

function lines(shown: unknown): string[] {
  return (shown as unknown[]).map((one) => normal(sorted(one)));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([key, of]) => key !== "timestamp" && of !== undefined);
  return Object.fromEntries(
    fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, of]) => [key, sorted(of)]),
  );
}
