import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLIENTS, type Conversation } from "./a2a-clients.ts";
import { ASSISTANT, LOCAL, type Reach, reach, untested } from "./reach.ts";

/** The A2A endpoint and the agent card (docs/platform.md, Agent server), for the protocol's own clients and on the wire. */

describe.skipIf(untested("DEPLOYMENT_URL"))("A2A", () => {
  let the: Reach;
  beforeAll(async () => {
    the = await reach("DEPLOYMENT_URL");
  });
  afterAll(() => the.close());

  describe.each(Object.entries(CLIENTS))("with %s", (name, connect) => {
    let client: Conversation;
    beforeAll(async () => {
      client = await connect({ ...the, assistant: ASSISTANT });
    });

    test("a message is sent, answered, and its task can be looked up", async () => {
      const answered = await client.send("hello there");
      expect(answered).toMatchObject({
        id: expect.stringMatching(/./),
        contextId: expect.stringMatching(/./),
      });
      expect(answered.state).toBe("completed");
      expect(answered.reply).toBeTruthy();
      if (the.local) expect(answered.reply).toContain("hello there");
      // Some live servers ask for the context as well, which the 1.x client does not send.
      if (the.local || !name.includes("1.x")) {
        expect(await client.task(answered)).toMatchObject({
          id: answered.id,
          contextId: answered.contextId,
          state: "completed",
        });
      }
    });

    test("a later message with the prior ids stays in the conversation, which is a thread", async () => {
      const first = await client.send("one");
      const second = await client.send("two", first);
      expect(second.contextId).toBe(first.contextId);
      expect(second.id).not.toBe(first.id);
      expect(second.state).toBe("completed");
      const response = await fetch(`${the.url}/threads/${first.contextId}/state`, {
        headers: { "x-api-key": the.apiKey },
      });
      const { values } = (await response.json()) as {
        values: { messages: { type: string; content: string }[] };
      };
      expect(values.messages.filter(({ type }) => type === "human").map(({ content }) => content)).toEqual([
        "one",
        "two",
      ]);
    });

    test("a stream sends the task, its start and its end", async () => {
      const events = [];
      for await (const event of client.stream("streamed delay=50")) events.push(event);
      expect(events[0]).toMatchObject({ state: "submitted", final: false });
      expect(events.slice(1, -1).every((event) => !event.final && event.state === "working")).toBe(true);
      expect(events.at(-1)).toMatchObject({
        id: events[0]?.id,
        contextId: events[0]?.contextId,
        state: "completed",
        final: true,
      });
      expect(events.at(-1)?.reply).toBeTruthy();
      const again = [];
      for await (const event of client.stream("and on", events[0])) again.push(event);
      expect(again.at(-1)).toMatchObject({ contextId: events[0]?.contextId, final: true });
    });

    test("a task cannot be cancelled, and an unknown one is not found", async () => {
      const answered = await client.send("hello");
      await expect(client.cancel(answered)).rejects.toThrow(/not (currently )?supported|operation/i);
      const nobody = { ...answered, id: "00000000-0000-4000-8000-000000000000" };
      await expect(client.task(nobody)).rejects.toThrow(/not found/i);
    });

    test.runIf(LOCAL)("a run that fails is a failed task", async () => {
      expect((await client.send("fail")).state).toBe("failed");
    });
  });

  const post = (
    body: unknown,
    headers: Record<string, string> = {},
    assistant = ASSISTANT,
  ): Promise<Response> =>
    fetch(`${the.url}/a2a/${assistant}`, {
      method: "POST",
      headers: {
        "x-api-key": the.apiKey,
        "content-type": "application/json",
        accept: "application/json",
        ...headers,
      },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const call = (method: string, params: unknown) => ({ jsonrpc: "2.0", id: "7", method, params });
  const message = (more: object = {}) => ({
    role: "user",
    messageId: "m1",
    parts: [{ kind: "text", text: "hello" }],
    ...more,
  });
  const code = async (body: unknown, assistant?: string): Promise<unknown> => {
    const response = await post(body, {}, assistant);
    const { id, error } = (await response.json()) as { id: string; error?: { code: number } };
    return [response.status, id, error?.code];
  };

  test.each([
    ["a method that is not there", -32601, call("message/shout", {})],
    ["no message", -32602, call("message/send", {})],
    ["a message without parts", -32602, call("message/send", { message: message({ parts: [] }) })],
    ["a task without id", -32602, call("tasks/get", {})],
    [
      "a task that is not there",
      -32001,
      call("tasks/get", {
        id: "00000000-0000-4000-8000-000000000000",
        contextId: "00000000-0000-4000-8000-000000000001",
      }),
    ],
    ["cancelling", -32004, call("tasks/cancel", { id: "00000000-0000-4000-8000-000000000000" })],
    [
      "a file",
      -32005,
      call("message/send", { message: message({ parts: [{ kind: "file", file: { uri: "x" } }] }) }),
    ],
  ])("%s is JSON-RPC error %d", async (_what, expected, body) => {
    expect(await code(body)).toEqual([200, "7", expected]);
  });

  test("an unknown assistant is an invalid parameter and has no card", async () => {
    expect(await code(call("message/send", { message: message() }), "nobody-of-this-name")).toEqual([
      200,
      "7",
      -32602,
    ]);
    const card = await fetch(`${the.url}/.well-known/agent-card.json?assistant_id=nobody-of-this-name`, {
      headers: { "x-api-key": the.apiKey },
    });
    expect(card.ok).toBe(false);
  });

  test("an error of a stream comes as an event", async () => {
    const response = await post(call("message/stream", {}), { accept: "text/event-stream" });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    expect(await response.text()).toContain('"code":-32602');
  });

  test("bad JSON, another protocol and a wrong Accept get 400, a notification 202, and GET 405", async () => {
    const good = call("message/send", { message: message() });
    expect((await post("{nope")).status).toBe(400);
    expect((await post([good])).status).toBe(400);
    expect((await post({ ...good, jsonrpc: "1.0" })).status).toBe(400);
    expect((await post(good, { accept: "text/html" })).status).toBe(400);
    expect(
      (await post(call("message/stream", { message: message() }), { accept: "application/json" })).status,
    ).toBe(400);
    const { id: _none, ...notification } = good;
    expect((await post(notification)).status).toBe(202);
    const get = await fetch(`${the.url}/a2a/${ASSISTANT}`, { headers: { "x-api-key": the.apiKey } });
    expect(get.status).toBe(405);
  });

  test("the card carries name, description, skills, modes and the endpoint's address", async () => {
    const response = await fetch(`${the.url}/.well-known/agent-card.json?assistant_id=${ASSISTANT}`, {
      headers: { "x-api-key": the.apiKey },
    });
    expect(await response.json()).toMatchObject({
      name: expect.any(String),
      description: expect.any(String),
      skills: [expect.objectContaining({ id: expect.any(String), tags: expect.any(Array) })],
      defaultInputModes: expect.arrayContaining(["text/plain"]),
      defaultOutputModes: expect.arrayContaining(["text/plain"]),
      url: expect.stringContaining("/a2a/"),
    });
  });
});
