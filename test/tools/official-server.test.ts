import { once } from "node:events";
import { createServer } from "node:http";
import * as old from "a2a-sdk-1/compat/v0_3/server";
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
  validateVersion,
} from "a2a-sdk-1/server";
import { expect, onTestFinished, test } from "vitest";
import { PlatformError } from "../../src/core/base/errors.ts";
import { Secret } from "../../src/core/base/secret.ts";
import { deploymentClientsOf } from "../../src/features/agents/clients.ts";
import { listen } from "../support/listen.ts";

const message = { assistantId: "agent", text: "hello" };

test.each([
  ["1.0", ["1.0"], ["SendMessage", "SendStreamingMessage", "GetTask"]],
  ["1.0 beside 0.3", ["0.3", "1.0"], ["SendMessage", "SendStreamingMessage", "GetTask"]],
  ["0.3 alone", ["0.3"], ["message/send", "message/stream", "tasks/get"]],
])("a conversation with a server of %s", async (_what, versions, [send, stream, get]) => {
  const server = await officialServer(versions);
  const { a2a, close } = deploymentClientsOf({
    apiKey: new Secret("lsv2_sk_1234567890"),
    organizationId: undefined,
    controlPlaneUrl: undefined,
    deploymentUrl: server.url,
  });
  onTestFinished(async () => {
    await close();
    await server.close();
  });
  const first = await a2a.send(message);
  expect(first).toMatchObject({ state: "completed", reply: "Echo: hello" });
  expect(await a2a.task({ assistantId: "agent", taskId: `${first.taskId}` })).toEqual(first);
  const ids = { contextId: first.contextId, taskId: first.taskId };
  const second = await a2a.send({ ...message, ...ids, text: "two" });
  expect(second).toMatchObject({ contextId: first.contextId, reply: "Echo: two" });
  const events = [];
  for await (const event of a2a.stream({ ...message, ...ids, text: "three" })) events.push(event);
  expect(events.at(-1)).toMatchObject({
    contextId: first.contextId,
    state: "completed",
    reply: "Echo: three",
  });
  expect(server.bodies.map(({ method }) => method)).toEqual([send, get, send, send, stream]);
  expect(server.bodies.map(({ params }) => params.message?.taskId)).toEqual([
    undefined,
    undefined,
    first.taskId,
    undefined,
    undefined,
  ]);
  const other = await a2a.send(message);
  const again = { contextId: other.contextId, taskId: other.taskId };
  const states = [];
  for await (const { state } of a2a.stream({ ...message, ...again })) states.push(state);
  expect(states).toEqual(["submitted", "working", "working", "completed"]);
  const lost = await a2a.send({ ...message, taskId: "nobody" }).catch((error) => error);
  expect(lost).toBeInstanceOf(PlatformError);
  expect(lost.message).toContain("-32001");
});

async function officialServer(versions: readonly string[]) {
  const bodies: { method: string; params: { message?: Record<string, unknown> } }[] = [];
  let url = "";
  const cardOf = () => ({
    name: "agent",
    description: "Echoes the text it gets.",
    version: "1",
    skills: [],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    capabilities: { streaming: true, extensions: [] },
    supportedInterfaces: versions.map((protocolVersion) => {
      return { url: `${url}/a2a/agent`, protocolBinding: "JSONRPC", tenant: "", protocolVersion };
    }),
  });
  const handlers: Record<string, { handle: JsonRpcTransportHandler["handle"] }> = {};
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const send = (body: unknown) =>
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.method === "GET") return send(cardOf());
    // The protocol has no search, so the client keeps the name.
    if (request.url === "/assistants/search") return response.writeHead(404).end();
    const body = JSON.parse(text);
    bodies.push(body);
    const requestedVersion = `${request.headers["a2a-version"] ?? "0.3"}`;
    try {
      validateVersion(requestedVersion, cardOf() as never, "JSONRPC");
      const made = await handlers[requestedVersion === "0.3" ? "0.3" : "1.0"]?.handle(
        body,
        new ServerCallContext({ requestedVersion }),
      );
      if (made === undefined || !(Symbol.asyncIterator in made)) return send(made);
      const events = made[Symbol.asyncIterator]();
      // Until its first event a stream is responded with a document.
      const first = await events.next();
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (let event = first; event.done !== true; event = await events.next())
        response.write(`data: ${JSON.stringify(event.value)}\n\n`);
      return response.end();
    } catch (error) {
      return send({ jsonrpc: "2.0", id: body.id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) });
    }
  });
  url = `http://127.0.0.1:${await listen(server)}`;
  const handler = new DefaultRequestHandler(cardOf() as never, new InMemoryTaskStore(), echo);
  handlers["1.0"] = new JsonRpcTransportHandler(handler);
  handlers["0.3"] = new old.LegacyJsonRpcTransportHandler(handler) as never;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url, bodies, close };
}

const [SUBMITTED, WORKING, COMPLETED] = [1, 2, 3];
type Event = Parameters<typeof AgentEvent.task>[0];

const echo: AgentExecutor = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const said = userMessage.parts.map(({ content }) => (content?.$case === "text" ? content.value : ""));
    const status = (state: number | undefined) => ({ state, timestamp: undefined, message: undefined });
    const part = { content: { $case: "text", value: `Echo: ${said.join("")}` }, filename: "", mediaType: "" };
    const ids = { taskId, contextId, metadata: undefined };
    const task = { id: taskId, contextId, status: status(SUBMITTED), artifacts: [], history: [userMessage] };
    const artifact = { artifactId: "a", name: "reply", description: "", parts: [part], extensions: [] };
    bus.publish(AgentEvent.task({ ...task, metadata: undefined } as unknown as Event));
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(WORKING) } as never));
    bus.publish(AgentEvent.artifactUpdate({ ...ids, artifact, append: false, lastChunk: true } as never));
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(COMPLETED) } as never));
    bus.finished();
  },
  async cancelTask() {},
};
