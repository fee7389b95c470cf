import { expect, test } from "vitest";
import { poll } from "../../support/poll.ts";
import { setup } from "./setup.ts";

/** The stand-in's own rules for control plane, runs and A2A; test/contract has those of the live platform. */

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

test("templates can be gone: the whole path is refused, and not in the form of one name", async () => {
  const { ask } = await bench({ templates: false });
  expect(await ask("GET", "/v2/sandboxes/templates/node")).toEqual({
    status: 404,
    body: { detail: "Not Found" },
  });
  expect((await ask("PATCH", "/v2/sandboxes/templates/node", '{"name":"n"}')).status).toBe(405);
  expect((await ask("POST", "/v2/deployments", '{"name":"a","source":"external_docker"}')).status).toBe(201);
});

test("a task that is rolled back ends as canceled, and its run is gone", async () => {
  const { ask } = await bench();
  const rpc = async (method: string, params: object) => {
    const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    return (await ask("POST", "/a2a/agent", call)).body;
  };
  const contextId = "00000000-0000-4000-8000-000000000001";
  const parts = [{ kind: "text", text: "delay=60000" }];
  const sent = rpc("message/send", { message: { role: "user", messageId: "m", parts, contextId } });
  const runs = `/threads/${contextId}/runs`;
  await poll(async () => (await ask("GET", runs)).body[0]?.status === "running");
  const input = { messages: [{ role: "user", content: "instead" }] };
  await ask("POST", runs, JSON.stringify({ assistant_id: "agent", input, multitask_strategy: "rollback" }));
  const { result } = await sent;
  expect(result).toMatchObject({ contextId, status: { state: "canceled" } });
  expect((await ask("GET", `${runs}/${result.id}`)).status).toBe(404);
  expect((await rpc("tasks/get", { id: result.id, contextId })).error.code).toBe(-32001);
});

test("the control plane needs the key, and the deployment refuses only a wrong one", async () => {
  const { standin, ask } = await bench();
  const bare = await fetch(`${standin.url}/v2/sandboxes/templates/node`);
  expect([bare.status, await bare.json()]).toEqual([401, { detail: "Invalid token" }]);
  expect((await fetch(`${standin.url}/threads`, { method: "POST", body: "{}" })).status).toBe(200);
  expect((await ask("POST", "/threads", "{}", { "x-api-key": "wrong" })).status).toBe(401);
});

test("compression does not delay the events of a stream", async () => {
  const { standin } = await bench();
  const message = { role: "user", messageId: "m", parts: [{ kind: "text", text: "hello" }] };
  const stream = await fetch(`${standin.url}/a2a/agent`, {
    method: "POST",
    headers: { accept: "text/event-stream", "accept-encoding": "gzip" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "message/stream", params: { message } }),
  });
  expect(stream.headers.get("content-encoding")).toBeNull();
  expect(await stream.text()).toContain('"final":true');
});
