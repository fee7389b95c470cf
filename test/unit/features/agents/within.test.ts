import { expect, onTestFinished, test } from "vitest";
import { DeadlineError } from "../../../../src/core/base/errors.ts";
import { PlatformHttp } from "../../../../src/core/platform/http/http.ts";
import { createA2aClient } from "../../../../src/features/agents/a2a.ts";
import { agentServer, drip, eventOf } from "../../../support/agent-server.ts";
import { KEY, rejection } from "../../core/platform/http/raw-server.ts";
import { deploymentOf } from "./clients.ts";

const withinMs = 150;
const message = { assistantId: "agent", text: "hello" };
const run = { threadId: "t", runId: "r" };
const artifacts = [{ parts: ["hi"] }];
const ENDED = { kind: "task", id: "t1", contextId: "c1", status: { state: "completed" }, artifacts };
const COMMENTS = { piece: ": still here\n\n", type: "text/event-stream" };

type Deployment = ReturnType<typeof deploymentOf>;
const listen = async ({ a2a }: Deployment, within = withinMs) => {
  for await (const _event of a2a.stream(message, { withinMs: within }));
};

test.each([
  ["a join", {}, ({ threads }: Deployment) => threads.join(run, { withinMs })],
  ["the status of a run", {}, ({ threads }: Deployment) => threads.waitForStart(run, { withinMs })],
  ["a reply", {}, ({ a2a }: Deployment) => a2a.send(message, { withinMs })],
  ["a stream of comments", COMMENTS, listen],
  ["a stream of half an event", { type: "text/event-stream", begin: "data: {" }, listen],
])("%s that drips ends at the deadline", async (_what, how, request) => {
  const server = await agentServer((response) => drip(response, how));
  const error = await rejection(request(deploymentOf(server.url)));
  expect(error).toBeInstanceOf(DeadlineError);
  expect(error).toMatchObject({ code: "deadline_passed", message: expect.stringContaining("within 0.15 s") });
});

test("a server that is silent for longer than usual is waited for", async () => {
  const server = await agentServer((response, { id }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": working\n\n");
    setTimeout(() => response.end(eventOf(id, ENDED)), 1500);
  });
  const http = new PlatformHttp({
    baseUrl: server.url,
    apiKey: KEY,
    timeouts: { headersMs: 100, bodyMs: 100 },
  });
  onTestFinished(() => http.close());
  const seen = [];
  for await (const { state } of createA2aClient(http).stream(message, { withinMs: 10_000 })) seen.push(state);
  expect(seen).toEqual(["completed"]);
});

test("an ended task ends a stream that the server keeps open", async () => {
  const server = await agentServer((response, { id }) =>
    drip(response, { ...COMMENTS, begin: eventOf(id, ENDED) }),
  );
  const seen = [];
  const { a2a } = deploymentOf(server.url);
  for await (const event of a2a.stream(message, { withinMs: 60_000 })) seen.push(event.final);
  expect(seen).toEqual([true]);
});

test("a caller's abort during a wait is not a deadline", async () => {
  const stop = new AbortController();
  const server = await agentServer((response) => {
    drip(response);
    stop.abort(new Error("stop"));
  });
  const waiting = deploymentOf(server.url).threads.join(run, { withinMs: 60_000, signal: stop.signal });
  await expect(waiting).rejects.toThrow("stop");
});
