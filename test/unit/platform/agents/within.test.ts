import { expect, test } from "vitest";
import { DeadlineError } from "../../../../src/errors.ts";
import { createControlPlaneClient } from "../../../../src/platform/agents/control-plane.ts";
import { agentServer, drip, eventOf } from "../../../support/agent-server.ts";
import { rejection } from "../http/raw-server.ts";
import { deploymentOf, httpOf } from "./clients.ts";

/** A wait ends when its caller says, whatever the server keeps sending. */

const withinMs = 150;
const message = { assistantId: "agent", text: "hello" };
const run = { threadId: "t", runId: "r" };
const COMMENTS = { piece: ": still here\n\n", type: "text/event-stream" };

type Deployment = ReturnType<typeof deploymentOf>;
const listen = async ({ a2a }: Deployment) => {
  for await (const _event of a2a.stream(message, { withinMs }));
};

test.each([
  ["a join", {}, ({ threads }: Deployment) => threads.join(run, { withinMs })],
  ["the status of a run", {}, ({ threads }: Deployment) => threads.waitForStart(run, { withinMs })],
  ["a reply", {}, ({ a2a }: Deployment) => a2a.send(message, { withinMs })],
  ["a stream of comments", COMMENTS, listen],
  ["a stream of half an event", { type: "text/event-stream", begin: "data: {" }, listen],
])("%s that drips ends at the deadline", async (_what, how, ask) => {
  const server = await agentServer((response) => drip(response, how));
  const error = await rejection(ask(deploymentOf(server.url)));
  expect(error).toBeInstanceOf(DeadlineError);
  expect(error).toMatchObject({ code: "deadline_passed", message: expect.stringContaining("within 0.15 s") });
});

test("the status of a revision that drips ends at the deadline", async () => {
  const server = await agentServer((response) => drip(response));
  const plane = createControlPlaneClient(httpOf(server.url));
  const of = { deploymentId: "d", revisionId: "r" };
  expect(await rejection(plane.waitForRevision(of, { withinMs }))).toMatchObject({ code: "deadline_passed" });
});

test("the deadline of a stream names the task that has begun", async () => {
  const begun = { kind: "task", id: "t1", contextId: "c1", status: { state: "working" } };
  const server = await agentServer((response, { id }) =>
    drip(response, { ...COMMENTS, begin: eventOf(id, begun) }),
  );
  const error = await rejection(listen(deploymentOf(server.url)));
  expect(error).toMatchObject({ next: expect.stringContaining("platform a2a task t1 --context c1") });
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
