import { describe, expect, test } from "vitest";
import { KEY, rawServer } from "../http/raw-server.ts";
import { answered, deploymentOf, refused, setup } from "./clients.ts";

describe("A2A", () => {
  const message = { assistantId: "agent", text: "hello" };

  test("the client sends, continues a conversation, reads a task and reads the card", async () => {
    const { a2a } = await setup();
    const first = await a2a.send(message);
    expect(first).toMatchObject({ state: "completed", reply: "Echo: hello" });
    const second = await a2a.send({
      ...message,
      text: "more",
      contextId: first.contextId,
      taskId: first.taskId,
    });
    expect(second.contextId).toBe(first.contextId);
    expect(await a2a.task({ assistantId: "agent", taskId: `${first.taskId}` })).toEqual(first);
    expect(await a2a.card("agent")).toMatchObject({ name: "agent", inputModes: ["text/plain"] });
    expect(await a2a.send({ ...message, text: "fail" })).toMatchObject({
      state: "failed",
      reply: "The input asks for a failure",
    });
  });

  test("a JSON-RPC error becomes rpc_error and is not retried", async () => {
    const { a2a } = await setup();
    const error = await refused(a2a.task({ assistantId: "agent", taskId: "nobody" }));
    expect(error).toMatchObject({ code: "rpc_error", retryable: false, status: undefined });
    expect(error.message).toContain("-32001");
    expect(await refused(a2a.send({ ...message, assistantId: "nobody" }))).toMatchObject({
      code: "rpc_error",
    });
  });

  test("a stream yields events as they come and ends on an abort", async () => {
    const { a2a } = await setup();
    const seen = [];
    for await (const { state, final } of a2a.stream({ ...message, text: "delay=50" }))
      seen.push([state, final]);
    expect(seen).toEqual([
      ["submitted", false],
      ["working", false],
      ["completed", true],
    ]);
    const stop = new AbortController();
    const listen = async () => {
      for await (const event of a2a.stream({ ...message, text: "delay=60000" }, stop)) {
        if (event.state === "working") stop.abort(new Error("stop"));
      }
    };
    await expect(listen()).rejects.toThrow("stop");
  });

  test.each(["length", "chunked", "close"] as const)(
    "a stream cut half way (%s) fails as cut",
    async (framing) => {
      const { a2a, standin } = await setup();
      standin.faults.script({ fault: { kind: "cut", framing, at: "half" }, match: { path: "/a2a/" } });
      const seen: string[] = [];
      const listen = async () => {
        for await (const { state } of a2a.stream(message)) seen.push(state);
      };
      expect(await refused(listen())).toMatchObject({ code: "answer_cut", retryable: true });
      expect(seen).not.toContain("completed");
    },
  );

  test("the key is in no error, whatever the server says", async () => {
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: null,
      error: { code: -32603, message: `bad key ${KEY}` },
    });
    const server = await rawServer(() => answered(body));
    expect((await refused(deploymentOf(server.url).a2a.send(message))).message).not.toContain(KEY);
  });
});
