import { describe, expect, test } from "vitest";
import { agentServer, events, json } from "../../../support/agent-server.ts";
import { KEY } from "../../core/platform/http/raw-server.ts";
import { deploymentOf, refused } from "./clients.ts";

const message = { assistantId: "agent", text: "hello" };
const ids = { taskId: "t", contextId: "c" };
const part = (text: string) => ({ kind: "text", text });
const state = (name: string, more: object = {}) => ({
  kind: "status-update",
  ...ids,
  status: { state: name, ...more },
});
const said = (text: string) => ({ message: { parts: [part(text)] } });
const task = (name: string, more: object = {}) => ({
  kind: "task",
  id: "t",
  contextId: "c",
  status: { state: name },
  ...more,
});
const artifact = (text: string, more: object = {}) => ({
  kind: "artifact-update",
  ...ids,
  artifact: { artifactId: "a", parts: [part(text)] },
  ...more,
});

async function streamOf(results: readonly unknown[]) {
  const server = await agentServer((response, requested) => events(response, requested, results));
  const seen = [];
  for await (const event of deploymentOf(server.url).a2a.stream(message)) seen.push(event);
  return seen;
}

async function sent(sending: object) {
  const server = await agentServer((response, { id }) => json(response, { jsonrpc: "2.0", id, ...sending }));
  return deploymentOf(server.url).a2a.send(message);
}

describe("a stream", () => {
  const completed = { ...state("completed"), final: true };
  test.each([
    ["one artifact", [artifact("hi"), completed], "hi"],
    ["an earlier status", [state("working", said("one")), state("working", said("two")), completed], "two"],
    ["pieces that are appended", [artifact("he"), artifact("llo", { append: true }), completed], "hello"],
    ["an artifact that is replaced", [artifact("draft"), artifact("hello"), completed], "hello"],
    [
      "two artifacts",
      [artifact("one"), artifact("two", { artifact: { artifactId: "b", parts: [part("two")] } }), completed],
      "one\ntwo",
    ],
    [
      "a final status with a text of its own",
      [artifact("x"), { ...state("completed", said("y")), final: true }],
      "y",
    ],
  ])("replies with the text of %s", async (_what, results, reply) => {
    expect((await streamOf(results)).at(-1)).toMatchObject({
      ...ids,
      state: "completed",
      reply,
      final: true,
    });
  });

  test("that ends while its task works is cut, and the error names the task", async () => {
    const error = await refused(streamOf([task("working")]));
    expect(error.code).toBe("response_cut");
    expect(error.next).toContain("platform a2a task t --context c");
    const { next } = await refused(streamOf([{ ...task("working"), id: "t`; reboot`" }]));
    expect(next).toContain("The message has arrived.");
    expect(next).not.toContain("reboot");
  });
});

describe("a response", () => {
  test("is read once more if it has no text: its reply is in the history, unless the run was cancelled", async () => {
    const agent = (text: string, taskId: string) => ({ role: "agent", taskId, parts: [part(text)] });
    const history = [agent("hi", "t"), agent("later", "t2")];
    const status = { state: "completed", ...said("Task completed successfully") };
    for (const [second, expected] of [
      [task("completed", { status, history }), { state: "completed", reply: "hi" }],
      [task("completed", { status }), { state: "completed", reply: null }],
      [task("canceled"), { state: "canceled", reply: null }],
    ] as const) {
      let responded = 0;
      const server = await agentServer((response, { id }) =>
        json(response, { jsonrpc: "2.0", id, result: responded++ === 0 ? task("completed") : second }),
      );
      expect(await deploymentOf(server.url).a2a.send(message)).toEqual({ ...ids, ...expected });
      expect(responded).toBe(2);
    }
  });

  test("to another request is refused, with an error too", async () => {
    for (const sending of [{ result: task("completed") }, { error: { code: -32603, message: "x" } }]) {
      const error = await refused(sent({ id: "another", ...sending }));
      expect([error.code, error.message]).toEqual([
        "response_invalid",
        expect.stringContaining('the id "another"'),
      ]);
      expect(error.next).toContain("The message may have arrived");
    }
    await expect(refused(streamOf([]))).resolves.toMatchObject({ code: "response_cut" });
  });

  test("never has the key in its error", async () => {
    const error = await refused(sent({ error: { code: -32603, message: `bad key ${KEY}` } }));
    expect(error.message).toContain("bad key");
    expect(error.message).not.toContain(KEY);
  });
});
