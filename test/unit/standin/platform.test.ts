import { describe, expect, test } from "vitest";
import { poll } from "../../support/poll.ts";
import { setup } from "./setup.ts";

/** The stand-in's own rules for control plane, runs and A2A; test/contract has those of the live platform. */

const TEN_MB = JSON.stringify({ name: "x".repeat(10_000_000) });

async function bench(options: Parameters<typeof setup>[0] = {}) {
  const made = await setup(options);
  const ask = async (method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(made.standin.url + path, {
      method,
      headers: { "x-api-key": made.standin.apiKey, accept: "application/json", ...headers },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  };
  return { ...made, ask };
}

describe("bad input", () => {
  test("a body of 10 MB is refused in the shape of its route, and changes nothing", async () => {
    const { ask } = await bench();
    const sentence = { detail: expect.stringContaining("larger than 5000000 bytes") };
    expect(await ask("PATCH", "/v2/sandboxes/templates/node", TEN_MB)).toEqual({
      status: 413,
      body: sentence,
    });
    expect(await ask("POST", "/threads", TEN_MB)).toEqual({ status: 413, body: sentence });
    expect(await ask("POST", "/a2a/agent", TEN_MB)).toEqual({
      status: 413,
      body: { error: expect.stringContaining("larger") },
    });
    expect((await ask("GET", "/v2/sandboxes/templates/node")).status).toBe(200);
  });

  test("undocumented fields and parameters are refused by name", async () => {
    const { ask } = await bench();
    const patched = await ask("PATCH", "/v2/sandboxes/templates/node", '{"name":"n","image":"x"}');
    expect(patched).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "image"], type: "extra_forbidden" }] },
    });
    const asked = await ask("GET", "/v2/sandboxes/templates/node?verbose=1");
    expect(asked).toMatchObject({ status: 422, body: { detail: [{ loc: ["query", "verbose"] }] } });
    const thread = await ask("POST", "/threads", '{"supersteps":[]}');
    expect(thread).toMatchObject({ status: 422, body: { detail: [{ loc: ["body", "supersteps"] }] } });
    expect(await ask("POST", "/v2/sandboxes/templates", "{}")).toMatchObject({
      status: 404,
      body: { detail: "stand-in: no route POST /v2/sandboxes/templates" },
    });
  });

  test("a template needs at least one rule, and each rule one host", async () => {
    const { ask } = await bench();
    const template = (rules: unknown) =>
      JSON.stringify({ name: "made", image: "x", proxy_config: { rules } });
    const rule = { name: "r", match_hosts: ["*.test"], inject_headers: {} };
    const make = (rules: unknown) => ask("POST", "/__standin/templates", template(rules));
    expect(await make([])).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "proxy_config", "rules"] }] },
    });
    expect(await make([{ ...rule, match_hosts: [] }])).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ["body", "proxy_config", "rules", 0, "match_hosts"], type: "too_short" }] },
    });
    expect(await make([rule])).toMatchObject({
      status: 200,
      body: {
        resources: { cpu: "500m", memory: "512Mi" },
        proxy_config: { rules: [{ enabled: true, match_paths: [] }] },
      },
    });
  });
});

test("disable_a2a removes the endpoint and the cards, and nothing else", async () => {
  const { ask, admin } = await bench({ http: { disable_a2a: true } });
  const card = "/.well-known/agent-card.json?assistant_id=agent";
  expect((await ask("POST", "/a2a/agent", "{}")).status).toBe(404);
  expect((await ask("GET", "/a2a/agent")).status).toBe(404);
  expect((await ask("GET", card)).status).toBe(404);
  expect((await ask("POST", "/threads", "{}")).status).toBe(200);
  await admin("PATCH", "/settings", { http: { disable_a2a: false } });
  expect((await ask("GET", card)).status).toBe(200);
  await admin("POST", "/reset", {});
  expect((await ask("GET", card)).status).toBe(404);
});

test("templates can be gone: the whole path is refused, and not in the form of one name", async () => {
  const { ask } = await bench({ templates: false });
  expect(await ask("GET", "/v2/sandboxes/templates/node")).toEqual({
    status: 404,
    body: { detail: "Not Found" },
  });
  expect((await ask("PATCH", "/v2/sandboxes/templates/node", '{"name":"n"}')).status).toBe(405);
  expect((await ask("POST", "/v2/deployments", '{"name":"a","source":"external_docker"}')).status).toBe(201);
});

test.each(["specified", "live"] as const)("a task that is rolled back ends as canceled (%s)", async (a2a) => {
  const { ask, standin } = await bench({ a2a });
  const rpc = async (method: string, params: object) => {
    const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    return (await ask("POST", "/a2a/agent", call)).body;
  };
  const contextId = "00000000-0000-4000-8000-000000000001";
  const parts = [{ kind: "text", text: "delay=60000" }];
  const sent = rpc("message/send", { message: { role: "user", messageId: "m", parts, contextId } });
  const runs = `/threads/${contextId}/runs`;
  const running = () => standin.inspectParts() as { threads?: { runs: { status: string }[] }[] };
  await poll(() => running().threads?.[0]?.runs[0]?.status === "running");
  const input = { messages: [{ role: "user", content: "instead" }] };
  const later = await ask(
    "POST",
    runs,
    JSON.stringify({ assistant_id: "agent", input, multitask_strategy: "rollback" }),
  );
  expect(later.body).toMatchObject({ kwargs: { input } });
  const { result } = await sent;
  expect(result).toMatchObject({ contextId, status: { state: "canceled" } });
  // Its run is gone, and its task stays readable.
  expect((await ask("GET", `${runs}/${result.id}`)).status).toBe(404);
  expect((await rpc("tasks/get", { id: result.id, contextId })).result).toEqual(result);
  if (a2a === "live")
    expect((await rpc("GetTask", { id: result.id })).result.status.state).toBe("TASK_STATE_CANCELED");
});

test("the control plane needs the key, and the deployment refuses only a wrong one", async () => {
  const { standin, ask } = await bench();
  const bare = await fetch(`${standin.url}/v2/sandboxes/templates/node`);
  expect([bare.status, await bare.json()]).toEqual([401, { detail: "Invalid token" }]);
  expect((await fetch(`${standin.url}/threads`, { method: "POST", body: "{}" })).status).toBe(200);
  expect((await ask("POST", "/threads", "{}", { "x-api-key": "wrong" })).status).toBe(401);
});

test("a stream can be cut half way, and compression does not delay events", async () => {
  const { standin, ask } = await bench();
  standin.faults.script({ fault: { kind: "cut", framing: "chunked", at: "half" }, match: { path: "/a2a/" } });
  const message = { role: "user", messageId: "m", parts: [{ kind: "text", text: "hello" }] };
  const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "message/stream", params: { message } });
  const stream = () =>
    fetch(`${standin.url}/a2a/agent`, {
      method: "POST",
      headers: { accept: "text/event-stream", "accept-encoding": "gzip" },
      body: call,
    });
  await expect((await stream()).text()).rejects.toThrow("terminated");
  const whole = await stream();
  expect(whole.headers.get("content-encoding")).toBeNull();
  expect(await whole.text()).toContain('"final":true');
  // The run whose stream was cut went on.
  const { body } = await ask("GET", "/__standin/state");
  expect(body.threads.map((thread: { runs: object[] }) => thread.runs)).toEqual([
    [expect.objectContaining({ status: "success" })],
    [expect.objectContaining({ status: "success" })],
  ]);
});
