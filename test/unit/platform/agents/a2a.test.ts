import { describe, expect, test } from "vitest";
import { KEY, rawServer } from "../http/raw-server.ts";
import { answered, deploymentOf, refused, setup } from "./clients.ts";

describe("A2A", () => {
  const message = { assistantId: "agent", text: "hello" };

  test("a stream ends on an abort", async () => {
    const { a2a } = await setup();
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
