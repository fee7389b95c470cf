import { expect, onTestFinished, test } from "vitest";
import { Secret } from "../../src/config/secret.ts";
import { PlatformError } from "../../src/errors.ts";
import { deploymentClientsOf } from "../../src/platform/clients.ts";
import { officialServer } from "./official-server.ts";

/** Our A2A client on the protocol's own server, which nobody here wrote: it refuses ended tasks as live platforms do. */

const message = { assistantId: "agent", text: "hello" };

test.each([
  ["1.0", ["1.0"], ["SendMessage", "SendStreamingMessage", "GetTask"]],
  ["1.0 beside 0.3", ["0.3", "1.0"], ["SendMessage", "SendStreamingMessage", "GetTask"]],
  ["0.3 alone", ["0.3"], ["message/send", "message/stream", "tasks/get"]],
])("a conversation with a server of %s", async (_what, versions, [send, stream, get]) => {
  const server = await officialServer(versions);
  const { a2a, close } = deploymentClientsOf({
    ...{ apiKey: new Secret("lsv2_sk_1234567890"), organizationId: undefined },
    ...{ controlPlaneUrl: undefined, deploymentUrl: server.url },
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
    ...{ contextId: first.contextId, state: "completed", reply: "Echo: three" },
  });
  expect(server.bodies.map(({ method }) => method)).toEqual([send, get, send, send, stream]);
  expect(server.bodies.map(({ params }) => params.message?.taskId)).toEqual([
    ...[undefined, undefined, first.taskId, undefined, undefined],
  ]);
  // A stream is refused with a document in place of events.
  const other = await a2a.send(message);
  const again = { contextId: other.contextId, taskId: other.taskId };
  const states = [];
  for await (const { state } of a2a.stream({ ...message, ...again })) states.push(state);
  expect(states).toEqual(["submitted", "working", "working", "completed"]);
  const lost = await a2a.send({ ...message, taskId: "nobody" }).catch((error) => error);
  expect(lost).toBeInstanceOf(PlatformError);
  expect(lost.message).toContain("-32001");
});
