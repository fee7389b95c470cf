import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { createA2aClient } from "../../../../src/platform/agents/a2a.ts";
import { createControlPlaneClient } from "../../../../src/platform/agents/control-plane.ts";
import { agentServer, json } from "../../../support/agent-server.ts";
import { rawServer, status } from "../http/raw-server.ts";
import { answered, deploymentOf, httpOf, refused, setup } from "./clients.ts";

describe("requests that change something", () => {
  test.each([500, 503, 429])("are not retried after %d", async (code) => {
    const server = await rawServer(() => status(`${code} X`, "no"));
    const client = createControlPlaneClient(httpOf(server.url));
    const error = await refused(client.createDeployment({ name: "d" }));
    expect(error).toMatchObject({ status: code, method: "POST" });
    expect(error.next).not.toContain("retried");
    expect(server.requests).toHaveLength(1);
  });

  test.each([303, 307])("follow no redirect (%d), and tell what may have happened", async (code) => {
    const server = await rawServer(() => status(`${code} X`, "", ["location: /other"]));
    const error = await refused(createA2aClient(httpOf(server.url)).send({ assistantId: "a", text: "x" }));
    expect(changing(server.requests)).toHaveLength(1);
    expect([error.code, error.next]).toEqual(["redirect_refused", expect.stringContaining("costs a trace")]);
  });

  test("fail with request_refused if the body is too large", async () => {
    const { a2a } = await setup();
    const error = await refused(a2a.send({ assistantId: "agent", text: "x".repeat(5_000_000) }));
    expect(error).toMatchObject({ status: 413, code: "request_refused" });
  });

  const SECRET = "sk-proj-5up3r5ecret-0123456789";
  const body = { name: "d", secrets: [{ name: "OPENAI_API_KEY", value: SECRET }] };
  test.each([
    [
      "a 422 with its input",
      422,
      { detail: [{ loc: ["body", "secrets"], msg: "wrong", input: body.secrets }] },
    ],
    ["a 500 with the request", 500, { request: JSON.stringify(body) }],
    ["a cut of it", 400, { detail: `input_value='${SECRET.slice(0, 14)}...${SECRET.slice(-9)}'` }],
    ["an answer that is not ours", 200, `<html>${SECRET}`],
  ])("show nothing that was sent: %s", async (_what, code, answer) => {
    const server = await rawServer(() =>
      status(`${code} X`, typeof answer === "string" ? answer : JSON.stringify(answer)),
    );
    const client = createControlPlaneClient(httpOf(server.url));
    const error = await refused(client.createDeployment(body));
    const shown = inspect(error, { depth: 9, showHidden: true });
    expect(shown).toContain("[redacted]");
    for (const part of [SECRET.slice(0, 14), SECRET.slice(-9)]) expect(shown).not.toContain(part);
    if (code === 422)
      expect([error.message, error.locations]).toEqual([expect.stringContaining("wrong"), ["body.secrets"]]);
  });

  test("show no text of a message or run, and still say what is wrong with it", async () => {
    const text = `my password is ${SECRET}`;
    const server = await agentServer((response, { id, text: sent }) =>
      id === undefined
        ? json(response, { detail: `no assistant agent-7: ${sent}` }, 404)
        : json(response, { id, error: { code: -32601, message: `no method message/send: ${sent}` } }),
    );
    const { a2a, threads } = deploymentOf(server.url);
    const errors = [
      await refused(a2a.send({ assistantId: "agent-7", text })),
      await refused(threads.createRun({ threadId: "t", assistantId: "agent-7", text })),
    ];
    for (const error of errors) expect(inspect(error, { depth: 9 })).not.toContain("5up3r5ecret");
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringContaining("no method message/send"),
      expect.stringContaining("no assistant agent-7"),
    ]);
  });

  const calls: [string, RegExp, (url: string) => Promise<unknown>][] = [
    ["creating", /may have been created\. Look for it/, (url) => planeOf(url).createDeployment(body)],
    [
      "updating",
      /may have been changed\. .*deployment get d1`/,
      (url) => planeOf(url).updateDeployment({ id: "d1", body }),
    ],
    [
      "renaming",
      /may have been renamed\. .*template get new`/,
      (url) => planeOf(url).renameTemplate({ name: "old", to: "new" }),
    ],
    [
      "a thread",
      /may have been created, which costs nothing/,
      (url) => deploymentOf(url).threads.createThread(),
    ],
    [
      "a run",
      /may have begun.*GET \/threads\/t\/runs/,
      (url) => deploymentOf(url).threads.createRun({ threadId: "t", assistantId: "a", text: "x" }),
    ],
    [
      "a message",
      /may have arrived.*newest traces/,
      (url) => deploymentOf(url).a2a.send({ assistantId: "a", text: "x" }),
    ],
    [
      "a later message",
      /may have arrived.*GET \/threads\/4340c6dc-[^/]+\/state/,
      (url) => deploymentOf(url).a2a.send({ assistantId: "a", text: "x", contextId: CONTEXT }),
    ],
    [
      "looking at a task",
      /changes nothing/,
      (url) => deploymentOf(url).a2a.task({ assistantId: "a", taskId: "t" }),
    ],
  ];
  const faults: [string, Parameters<typeof rawServer>[0]][] = [
    ["408", () => status("408 X", "")],
    ["502", () => status("502 X", "")],
    ["a reset", () => ({ bytes: "", closing: "reset" })],
    ["a cut", () => ({ bytes: "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", closing: "end" })],
    ["half a document", () => answered('{"id":')],
    ["another page", () => answered("<html>")],
    ["an answer that is elsewhere", () => status("303 X", "")],
  ];
  test.each(calls)("say what may have happened to %s, and how to see it", async (_what, next, call) => {
    for (const [, answer] of faults) {
      const server = await rawServer(answer);
      const error = await refused(call(server.url));
      expect(error.next).toMatch(next);
      expect(error.next).not.toContain("is retried");
      expect(changing(server.requests)).toHaveLength(1);
    }
    const gone = await refused(call("http://127.0.0.1:1"));
    expect([gone.code, gone.next]).toEqual(["network", expect.not.stringMatching(next)]);
  });

  test("nothing says that a request is retried where it is not", async () => {
    for (const [, answer] of faults) {
      const server = await rawServer(answer);
      expect((await refused(planeOf(server.url).deployment("d"))).next).not.toContain("is retried");
    }
  });
});

/** Without the agent card, which is read first. */
const changing = (requests: readonly string[]) => requests.filter((head) => !head.startsWith("GET "));
const CONTEXT = "4340c6dc-954e-4ef4-a1e8-f73cc1826017";

const planeOf = (url: string) => createControlPlaneClient(httpOf(url));
