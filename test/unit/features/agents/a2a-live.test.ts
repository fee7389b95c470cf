import { describe, expect, test } from "vitest";
import { UsageError } from "../../../../src/core/base/errors.ts";
import { agentServer, eventOf } from "../../../support/agent-server.ts";
import { rejection } from "../../core/platform/http/raw-server.ts";
import { deploymentOf, refused, setup } from "./clients.ts";

const message = { assistantId: "agent", text: "hello" };
const NOBODY = "00000000-0000-4000-8000-000000000000";
type Live = Awaited<ReturnType<typeof setup>>;
const posts = ({ standin }: Live) =>
  standin.requests.recent.filter(({ method, url }) => method === "POST" && url.startsWith("/a2a/")).length;
const humans = async ({ threads }: Live, contextId: string) =>
  (await threads.state(contextId)).messages.filter(({ type }) => type === "human").map((one) => one.content);

describe("a conversation with a live server", () => {
  test("goes on with its context alone after -32004, and every later message at once", async () => {
    const live = await setup({ a2a: "live" });
    const { a2a } = live;
    const first = await a2a.send(message);
    expect(first).toMatchObject({ state: "completed", reply: "Echo: hello" });
    const told: string[] = [];
    const ids = { contextId: first.contextId, taskId: first.taskId };
    const onContextAlone = () => told.push("alone");
    const second = await a2a.send({ ...message, ...ids, text: "two" }, { onContextAlone });
    expect(second).toMatchObject({ contextId: first.contextId, reply: "Echo: two" });
    expect([posts(live), told]).toEqual([3, ["alone"]]);
    const third = await a2a.send({ ...message, ...ids, taskId: second.taskId, text: "three" });
    expect(third.reply).toBe("Echo: three");
    const states: string[] = [];
    for await (const { state } of a2a.stream({ ...message, ...ids, text: "four" })) states.push(state);
    expect(states).toEqual(["submitted", "working", "working", "completed"]);
    expect([posts(live), told]).toEqual([5, ["alone"]]);
    expect(await humans(live, `${first.contextId}`)).toEqual(["hello", "two", "three", "four"]);
  });

  test("never begins another one: a task without its context is refused", async () => {
    const live = await setup({ a2a: "live" });
    const { taskId } = await live.a2a.send(message);
    const error = await refused(live.a2a.send({ ...message, taskId }));
    expect([error.code, error.next]).toEqual([
      "rpc_error",
      expect.stringMatching(/with --context and without --task\. .*platform a2a task [0-9a-f:-]{73}`/),
    ]);
    expect(posts(live)).toBe(2);
  });

  test("is not sent again after an event, and the error says that the message has arrived", async () => {
    const server = await agentServer((response, { id }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const error = { code: -32004, message: "no" };
      response.end(
        eventOf(id, { task: bare({ status: { state: "TASK_STATE_WORKING" } }) }) +
          `data: ${JSON.stringify({ jsonrpc: "2.0", id, error })}\n\n`,
      );
    });
    const listen = async () => {
      const ids = { contextId: NOBODY, taskId: "t" };
      for await (const _event of deploymentOf(server.url).a2a.stream({ ...message, ...ids }));
    };
    const error = await refused(listen());
    expect([error.code, server.requests.length]).toEqual(["rpc_error", 1]);
    expect(error.next).toMatch(/^Read the error above\. The message has arrived\. .*a2a task t --context c/);
  });

  test("is not sent again where the task has not ended, or the server says something else", async () => {
    const live = await setup({ a2a: "live" });
    const { contextId } = await live.a2a.send(message);
    const unknown = await refused(live.a2a.send({ ...message, contextId, taskId: NOBODY }));
    expect(unknown.message).toContain("-32001");
    const wrong = await refused(live.a2a.send({ ...message, assistantId: NOBODY }));
    expect(wrong.message).toContain("-32602");
    expect(posts(live)).toBe(3);
    live.standin.settings.http = { disable_a2a: true };
    expect(await refused(live.a2a.send(message))).toMatchObject({
      status: 404,
      next: expect.stringMatching(/^A2A may be switched off/),
    });
    const nobody = await rejection(live.a2a.send({ ...message, assistantId: "nobody" }));
    expect(nobody).toMatchObject({ code: "assistant_unknown" });
    expect(posts(live)).toBe(4);
  });

  test.each(["c", "", "4340c6dc954e4ef4a1e8f73cc1826017", `${NOBODY}0`, `${NOBODY}\n`])(
    "the context %j is not sent",
    async (contextId) => {
      const { a2a, standin } = await setup({ a2a: "live" });
      const error = await rejection(a2a.send({ ...message, contextId }));
      expect(error).toBeInstanceOf(UsageError);
      expect(error).toMatchObject({ code: "context_invalid" });
      await expect(a2a.stream({ ...message, contextId }).next()).rejects.toThrow("UUID");
      expect(standin.requests.count).toBe(0);
    },
  );
});

const bare = (more: object = {}) => ({
  id: "t",
  contextId: "c",
  status: { state: "TASK_STATE_COMPLETED" },
  artifacts: [{ parts: [{ text: "hi" }] }],
  ...more,
});
