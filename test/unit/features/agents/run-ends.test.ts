import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { replyTo } from "../../../../src/features/agents/threads.ts";
import { agentServer, json } from "../../../support/agent-server.ts";
import { rejection } from "../../core/platform/http/raw-server.ts";
import { deploymentOf, refused, setup } from "./clients.ts";

const of = { threadId: "t", runId: "r" };
const RUN = { run_id: "r", status: "success" };
const withinMs = 10_000;

const missing = (response: ServerResponse) => json(response, { detail: "Not Found" }, 404);
const notAllowed = (response: ServerResponse) => json(response, {}, 405);
const empty = (response: ServerResponse) => response.writeHead(204).end();

interface Paths {
  readonly join?: (response: ServerResponse) => void;
  readonly run?: (response: ServerResponse) => void;
  readonly list?: (response: ServerResponse) => void;
}

async function threadsOn({ join = missing, run = missing, list = missing }: Paths) {
  const server = await agentServer((response, { path }) => {
    if (path.endsWith("/join")) join(response);
    else if (path.endsWith("/runs/r")) run(response);
    else if (path.includes("/runs?")) list(response);
    else missing(response);
  });
  return deploymentOf(server.url).threads;
}

describe("the end of a run is found", () => {
  const told = (response: ServerResponse) => json(response, RUN);
  const listed = (response: ServerResponse) => json(response, [{ run_id: "newer" }, RUN]);
  test.each<[string, Paths]>([
    ["a join without a body", { join: empty, run: told }],
    ["a join of zero bytes", { join: (response) => response.writeHead(200).end(), run: told }],
    ["a join with a text", { join: (response) => response.end("done"), run: told }],
    ["a server without joins", { run: told }],
    ["a server that lists runs only", { join: empty, list: listed }],
    ["a server that lists runs and allows no reading", { join: empty, run: notAllowed, list: listed }],
  ])("after %s", async (_what, paths) => {
    expect(await (await threadsOn(paths)).join(of, { withinMs })).toEqual({ ...of, status: "success" });
  });

  test("nowhere, as an error", async () => {
    expect(await refused((await threadsOn({})).join(of, { withinMs }))).toMatchObject({ status: 404 });
    expect(await refused((await threadsOn({})).waitForStart(of, { withinMs }))).toMatchObject({
      status: 404,
    });
  });
});

test("a run that is rolled back while somebody waits for it is told as such", async () => {
  const { threads } = await setup();
  const { threadId } = await threads.createThread();
  const first = await threads.createRun({ threadId, assistantId: "agent", text: "delay=60000" });
  await threads.waitForStart(first, { withinMs });
  const waiting = threads.join(first, { withinMs });
  const second = await threads.createRun({
    threadId,
    assistantId: "agent",
    text: "two",
    strategy: "rollback",
  });
  expect(await waiting).toEqual({ runId: first.runId, threadId, status: "rolled_back" });
  expect(await threads.join(second, { withinMs })).toMatchObject({ status: "success" });
});

test("a client that hangs up does not end the run, and a lost join is repeated", async () => {
  const { threads, standin } = await setup();
  const { threadId } = await threads.createThread();
  const run = await threads.createRun({ threadId, assistantId: "agent", text: "delay=500 hello" });
  const hangUp = new AbortController();
  const joining = rejection(threads.join(run, { withinMs, signal: hangUp.signal }));
  await threads.waitForStart(run, { withinMs });
  hangUp.abort(new Error("hung up"));
  expect(await joining).toMatchObject({ message: "hung up" });
  standin.faults.script({ fault: { kind: "reset" }, match: { path: "/join" } });
  expect(await threads.join(run, { withinMs })).toMatchObject({ status: "success" });
});

describe("a reply", () => {
  const human = (content: string) => ({ type: "human", content });
  const ai = (content: string) => ({ type: "ai", content });

  test("belongs to the last message with the text", () => {
    const said = [human("a"), ai("1"), human("b"), ai("tool"), ai("2"), human("c"), ai("3")];
    expect(replyTo("b", said)).toBe("2");
    expect(replyTo("a", [...said, human("a")])).toBeNull();
    expect(replyTo("c", [human("c"), { type: "tool", content: "x" }])).toBeNull();
    expect(replyTo("a", [])).toBeNull();
  });
});
