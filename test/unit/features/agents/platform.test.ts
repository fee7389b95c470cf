import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { agentServer, drip, eventOf, events, json, type Requested } from "../../../support/agent-server.ts";
import { controlsIn } from "../../../support/controls.ts";
import { runHere } from "../../../support/in-process.ts";
import { KEY } from "../../core/platform/http/raw-server.ts";

const runOn = (url: string, args: readonly string[]) =>
  runHere(["platform", ...args], {
    USAGE_API_KEY: KEY,
    USAGE_DEPLOYMENT_URL: url,
    USAGE_CONTROL_PLANE_URL: url,
  });

const task = (state: string, more: object = {}) => ({
  kind: "task",
  id: "t",
  contextId: "c",
  status: { state },
  ...more,
});
const rpc = (response: ServerResponse, { id, text }: Requested, result: object) =>
  text.includes("message/stream")
    ? events(response, { id } as Requested, [result])
    : json(response, { jsonrpc: "2.0", id, result });

test.each([
  ["completed", 0],
  ["input-required", 0],
  ["auth-required", 5],
  ["failed", 3],
  ["rejected", 3],
  ["canceled", 3],
])("a task that is %s ends with %i, sent, streamed or looked up", async (state, code) => {
  const server = await agentServer((response, requested) => rpc(response, requested, task(state)));
  for (const args of [
    ["send", "hi"],
    ["stream", "hi"],
    ["task", "t"],
  ]) {
    expect((await runOn(server.url, ["a2a", ...args])).code).toBe(code);
  }
});

describe("past a deadline", () => {
  const within = ["--within", "PT2S"];

  test("deployment create --wait --json prints the id and the last status", async () => {
    const server = await agentServer((response, { method }) =>
      json(response, method === "POST" ? { id: "d1", latest_revision_id: "r1" } : { status: "BUILDING" }),
    );
    const args = ["deployment", "create", "--body", "package.json", "--wait", "--json", ...within];
    const { code, stdout, stderr } = await runOn(server.url, args);
    expect([code, JSON.parse(stdout)]).toMatchObject([
      3,
      { id: "d1", latestRevisionId: "r1", status: "BUILDING" },
    ]);
    expect(stderr).toContain('"code":"deadline_passed"');
  });

  test("run --json prints the ids, also if the state drips", async () => {
    for (const dripping of ["/join", "/state"]) {
      const server = await agentServer((response, { path }) => {
        if (path.endsWith(dripping)) drip(response);
        else if (path.endsWith("/state")) json(response, { values: null });
        else if (path === "/threads") json(response, { thread_id: "t1" });
        else json(response, { run_id: "r1", status: path.endsWith("r1") ? "success" : "pending" });
      });
      const { code, stdout, stderr } = await runOn(server.url, ["run", "hi", "--json", ...within]);
      expect([code, JSON.parse(stdout)]).toMatchObject([3, { runId: "r1", threadId: "t1", reply: null }]);
      expect(stderr).toContain('"code":"deadline_passed"');
    }
  });

  test("a2a stream --json prints the events that came", async () => {
    const server = await agentServer((response, { id }) =>
      drip(response, {
        begin: eventOf(id, task("working")),
        piece: ": still here\n\n",
        type: "text/event-stream",
      }),
    );
    const { code, stdout, stderr } = await runOn(server.url, ["a2a", "stream", "hi", "--json", ...within]);
    expect([code, JSON.parse(stdout)]).toMatchObject([3, [{ taskId: "t", state: "working" }]]);
    expect(stderr).toContain("a2a task t --context c");
  });
});

describe("what a server sends", () => {
  const nasty = "\u001b]0;owned\u0007\u009b2J\u202e";

  test("controls no terminal: in replies, tables, states and errors", async () => {
    const said = task("completed", { artifacts: [{ parts: [`hello ${nasty}`] }] });
    const server = await agentServer(
      (response, requested) => {
        if (requested.path.startsWith("/a2a")) rpc(response, requested, said);
        else if (requested.path.startsWith("/.well-known"))
          json(response, { name: nasty, description: `a\n${nasty}` });
        else json(response, { detail: nasty }, 409);
      },
      { hasCard: true },
    );
    for (const args of [
      ["a2a", "send", "hi"],
      ["a2a", "stream", "hi"],
      ["a2a", "card"],
      ["run", "hi"],
    ]) {
      for (const more of [[], ["--json"]]) {
        const { stdout, stderr } = await runOn(server.url, [...args, ...more]);
        expect(stdout + stderr).toContain("u202e");
        expect(controlsIn(stdout + stderr)).toEqual([]);
      }
    }
  });
});
