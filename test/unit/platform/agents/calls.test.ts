import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../../src/clock.ts";
import { Secret } from "../../../../src/config/config.ts";
import { DeadlineError, PlatformError, UsageError } from "../../../../src/errors.ts";
import { createA2aClient } from "../../../../src/platform/agents/a2a.ts";
import { createControlPlaneClient, hasFailed } from "../../../../src/platform/agents/control-plane.ts";
import { controlPlaneClientOf, deploymentClientsOf } from "../../../../src/platform/clients.ts";
import { PlatformHttp } from "../../../../src/platform/http/http.ts";
import { pollUntil } from "../../../../src/platform/http/poll.ts";
import { type StandinOptions, startStandin } from "../../../../src/standin/server.ts";
import { poll } from "../../../support/poll.ts";
import { framed, KEY, rawServer, rejection, status } from "../http/raw-server.ts";

/** The clients of control plane, threads and A2A, on the stand-in and on servers that answer wrongly. */

async function setup(options: StandinOptions = {}) {
  const standin = await startStandin(options);
  const { url } = standin;
  const access = {
    apiKey: new Secret(standin.apiKey),
    organizationId: undefined,
    controlPlaneUrl: url,
    deploymentUrl: url,
  };
  const plane = controlPlaneClientOf(access);
  const deployment = deploymentClientsOf(access);
  onTestFinished(async () => {
    await plane.close();
    await deployment.close();
    await standin.close();
  });
  return { standin, plane, ...deployment, access };
}

const httpOf = (baseUrl: string, variable = "USAGE_DEPLOYMENT_URL") => {
  const http = new PlatformHttp({ baseUrl, apiKey: KEY, variable });
  onTestFinished(() => http.close());
  return http;
};
const refused = async (asked: Promise<unknown>) => {
  const error = await rejection(asked);
  if (!(error instanceof PlatformError)) throw error;
  return error;
};
const answered = (body: string) => ({ bytes: framed(body, "length"), closing: "keep" as const });
/** A clock that passes as it is waited on. */
function handClock() {
  let now = 0;
  return {
    now: () => now,
    wait: async (ms: number, signal?: AbortSignal) => {
      signal?.throwIfAborted();
      now += ms;
    },
  };
}

describe("control plane", () => {
  test("the client reads and renames a template", async () => {
    const { plane } = await setup();
    expect(await plane.template("node")).toMatchObject({
      name: "node",
      resources: { cpu: "500m", memory: "512Mi" },
      volumeMounts: [],
      proxyConfig: null,
    });
    const longest = `n${"o".repeat(62)}`;
    expect((await plane.renameTemplate({ name: "node", to: longest })).name).toBe(longest);
    const taken = await refused(plane.renameTemplate({ name: longest, to: "python" }));
    expect(taken).toMatchObject({ status: 409, retryable: false, method: "PATCH" });
    expect(taken.message).toContain("'python' already exists");
    expect(await refused(plane.template("node"))).toMatchObject({ status: 404, code: "request_refused" });
  });

  test.each(["n".repeat(64), "Node", "3node", "nöde", "", "node-", "a_b"])(
    "the client does not send the name %j",
    async (to) => {
      const { plane, standin } = await setup();
      const error = await rejection(plane.renameTemplate({ name: "node", to }));
      expect(error).toBeInstanceOf(UsageError);
      expect(error).toMatchObject({ code: "template_name_invalid" });
      expect(standin.requests.count).toBe(0);
    },
  );

  test("a template may have free-form limits and proxies, but no proxy rule without hosts", async () => {
    const template = { name: "t", image: "i", resources: { gpus: 8 }, proxy_config: { mode: "none" } };
    const answer = (proxy: unknown) => JSON.stringify({ ...template, proxy_config: proxy });
    const rule = { name: "r", match_hosts: [] as string[], inject_headers: {} };
    const bodies = [
      answer({ mode: "none" }),
      answer({ rules: [rule] }),
      answer({ rules: [] }),
      answer({ rules: [{ ...rule, match_hosts: ["*"] }] }),
    ];
    const server = await rawServer((_head, index) => answered(bodies[index] ?? ""));
    const client = createControlPlaneClient(httpOf(server.url, "USAGE_CONTROL_PLANE_URL"));
    expect((await client.template("t")).proxyConfig).toEqual({ mode: "none" });
    const error = await refused(client.template("t"));
    expect(error.code).toBe("answer_invalid");
    expect(error.message).toContain("proxy_config.rules.0.match_hosts");
    expect(error.next).toContain("USAGE_CONTROL_PLANE_URL");
    expect((await refused(client.template("t"))).message).toContain("proxy_config.rules");
    expect((await client.template("t")).proxyConfig).toMatchObject({ rules: [{ match_hosts: ["*"] }] });
  });

  test("waiting for a revision reports each status and returns a failed one", async () => {
    const { standin } = await setup({ apiKey: KEY });
    const plane = createControlPlaneClient(httpOf(standin.url), handClock());
    const create = async (image: string) => {
      const { id, latestRevisionId } = await plane.createDeployment({
        name: "d",
        source: "external_docker",
        source_revision_config: { image_uri: image },
      });
      return { deploymentId: id, revisionId: `${latestRevisionId}` };
    };
    const told: string[] = [];
    const withinMs = 60_000;
    const deployed = await plane.waitForRevision(await create("good"), {
      withinMs,
      onStatus: (s) => told.push(s),
    });
    expect(told).toEqual(["CREATING", "QUEUED", "BUILDING", "DEPLOYING", "DEPLOYED"]);
    expect(hasFailed(deployed)).toBe(false);
    expect(hasFailed(await plane.waitForRevision(await create("fail"), { withinMs }))).toBe(true);
  });

  test("waiting ends at the deadline, and at once on an abort", async () => {
    const server = await rawServer(() => answered('{"status":"QUEUED"}'));
    const client = createControlPlaneClient(httpOf(server.url), handClock());
    const of = { deploymentId: "d", revisionId: "r" };
    const error = await rejection(client.waitForRevision(of, { withinMs: 60_000 }));
    expect(error).toBeInstanceOf(DeadlineError);
    expect(error).toMatchObject({ code: "deadline_passed" });
    // 0.25 s and doubling up to 10 s: twelve looks in a minute.
    expect(server.requests).toHaveLength(12);
    const stop = AbortSignal.abort(new Error("stop"));
    await expect(client.waitForRevision(of, { withinMs: 60_000, signal: stop })).rejects.toThrow("stop");
  });
});

describe("requests that change something", () => {
  test.each([500, 503, 429])("are not retried after %d", async (code) => {
    const server = await rawServer(() => status(`${code} X`, "no"));
    const client = createControlPlaneClient(httpOf(server.url));
    const error = await refused(client.createDeployment({ name: "d" }));
    expect(error).toMatchObject({ status: code, method: "POST" });
    expect(error.next).not.toContain("retried");
    expect(server.requests).toHaveLength(1);
  });

  test("follow only a redirect that keeps method and body", async () => {
    const { standin } = await setup();
    const moved = (code: number) =>
      rawServer((head) => ({
        bytes: `HTTP/1.1 ${code} X\r\nlocation: ${/ (\S+) HTTP/.exec(head)?.[1]}x\r\ncontent-length: 0\r\n\r\n`,
        closing: "end",
      }));
    for (const code of [307, 303]) {
      const server = await moved(code);
      const error = await refused(createA2aClient(httpOf(server.url)).send({ assistantId: "a", text: "x" }));
      expect(server.requests).toHaveLength(code === 307 ? 4 : 1);
      expect(error.code).toBe(code === 307 ? "redirect_refused" : "answer_invalid");
    }
    expect(standin.requests.count).toBe(0);
  });

  test("fail with request_refused if the body is too large", async () => {
    const { a2a } = await setup();
    const error = await refused(a2a.send({ assistantId: "agent", text: "x".repeat(10_000_000) }));
    expect(error).toMatchObject({ status: 413, code: "request_refused" });
  });
});

describe("threads and runs", () => {
  test("a run is created, joined and read", async () => {
    const { threads } = await setup();
    const { threadId } = await threads.createThread();
    const run = await threads.createRun({ threadId, assistantId: "agent", text: "hello delay=100" });
    // A run of the stand-in may end before anybody looks.
    const { status } = await threads.waitForStart(run, { withinMs: 10_000 });
    expect(["running", "success"]).toContain(status);
    expect(await threads.join(run, { withinMs: 10_000 })).toEqual({ ...run, status: "success" });
    expect(await threads.state(threadId)).toEqual({
      messages: [
        { type: "human", content: "hello delay=100" },
        { type: "ai", content: "Echo: hello delay=100" },
      ],
    });
    expect(await threads.runs(threadId)).toEqual([{ ...run, status: "success" }]);
    expect(await threads.run({ threadId, runId: "00000000-0000-4000-8000-000000000000" })).toBeUndefined();
  });

  test("errors name the malformed ids", async () => {
    const { threads } = await setup();
    const malformed = await refused(threads.run({ threadId: "x", runId: "y" }));
    expect(malformed).toMatchObject({ status: 422, locations: ["path.thread", "path.run"] });
    const { threadId } = await threads.createThread();
    await threads.createRun({ threadId, assistantId: "agent", text: "delay=60000" });
    const busy = await refused(
      threads.createRun({ threadId, assistantId: "agent", text: "x", strategy: "reject" }),
    );
    expect(busy.status).toBe(409);
  });

  test("a client that hangs up does not end the run, and a lost join is repeated", async () => {
    const { threads, standin } = await setup();
    const { threadId } = await threads.createThread();
    const run = await threads.createRun({ threadId, assistantId: "agent", text: "delay=500 hello" });
    const hangUp = new AbortController();
    const joining = rejection(threads.join(run, { withinMs: 60_000, signal: hangUp.signal }));
    await threads.waitForStart(run, { withinMs: 10_000 });
    hangUp.abort(new Error("hung up"));
    expect(await joining).toMatchObject({ message: "hung up" });
    standin.faults.script({ fault: { kind: "reset" }, match: { path: "/join" } });
    expect(await threads.join(run, { withinMs: 60_000 })).toMatchObject({ status: "success" });
  });

  test("a cancelled run is interrupted, and waiting for a long one ends at the deadline", async () => {
    const { threads } = await setup();
    const { threadId } = await threads.createThread();
    const run = await threads.createRun({ threadId, assistantId: "agent", text: "delay=60000" });
    expect(await rejection(threads.join(run, { withinMs: 1 }))).toMatchObject({ code: "deadline_passed" });
    await threads.cancel(run);
    expect(await threads.join(run, { withinMs: 10_000 })).toMatchObject({ status: "interrupted" });
  });

  test("an answer that is not JSON is refused", async () => {
    const server = await rawServer(() => answered("<html>sign in</html>"));
    const error = await refused(deploymentOf(server.url).threads.createThread());
    expect(error).toMatchObject({ code: "answer_invalid", retryable: false });
    expect(error.next).toContain("USAGE_DEPLOYMENT_URL");
  });
});

function deploymentOf(deploymentUrl: string) {
  const clients = deploymentClientsOf({
    apiKey: new Secret(KEY),
    organizationId: undefined,
    controlPlaneUrl: undefined,
    deploymentUrl,
  });
  onTestFinished(() => clients.close());
  return clients;
}

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
    expect(await a2a.task({ assistantId: "agent", taskId: first.taskId })).toEqual(first);
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

  test.each([
    ["an event that is not JSON", "data: nope\n\n", "answer_invalid"],
    ["an event of nothing", 'data: {"jsonrpc":"2.0","id":"1"}\n\n', "answer_invalid"],
    ["an error", 'data: {"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"x"}}\n\n', "rpc_error"],
    ["nothing at all", ": still here\n\n", "answer_cut"],
  ])("%s ends the stream", async (_what, text, code) => {
    const server = await rawServer(() => answered(text));
    const listen = async () => {
      for await (const _event of deploymentOf(server.url).a2a.stream(message)) _event.final;
    };
    expect((await refused(listen())).code).toBe(code);
  });

  test("the key is in no error, whatever the server says", async () => {
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      error: { code: -32603, message: `bad key ${KEY}` },
    });
    const server = await rawServer(() => answered(body));
    expect((await refused(deploymentOf(server.url).a2a.send(message))).message).not.toContain(KEY);
  });
});

test("polling honours Retry-After and reports the last failure", async () => {
  const clock = handClock();
  const failing = new PlatformError({
    code: "rate_limited",
    message: "too many",
    next: "",
    retryable: true,
    method: "GET",
    url: "",
    retryAfterMs: 7_000,
  });
  let looks = 0;
  const error = await rejection(
    pollUntil("It", { withinMs: 20_000, clock }, async () => {
      looks++;
      throw failing;
    }),
  );
  expect([looks, clock.now()]).toEqual([4, 20_000]);
  expect(error).toMatchObject({ message: expect.stringContaining("too many") });
  await expect(
    pollUntil("It", { withinMs: 1000, clock: systemClock }, async () => Promise.reject(new Error("bug"))),
  ).rejects.toThrow("bug");
  expect(await poll(() => pollUntil("It", { withinMs: 1000, clock: systemClock }, async () => 5))).toBe(5);
});
