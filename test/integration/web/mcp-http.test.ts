import { request } from "undici";
import { beforeEach, expect, test } from "vitest";
import { setupPages, TOKENS } from "../../support/pages.ts";
import { setupSource } from "../../support/reporting.ts";

/** What a client that is no official SDK sends and gets. */

let url: string;

beforeEach(async () => {
  const bench = await setupSource();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const served = { databaseUrl: bench.url, store: bench.store, standin };
  url = (await setupPages(served, { environment: TOKENS })).url;
});

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } },
};
const PING = {
  jsonrpc: "2.0",
  id: 2,
  method: "tools/call",
  params: { name: "query", arguments: { sql: "SELECT 7" } },
};

async function send(
  path: string,
  { method = "POST", body = JSON.stringify(INITIALIZE), ...headers }: Record<string, string | undefined> = {},
) {
  const response = await request(`${url}${path}`, {
    method: method as "POST",
    headers: {
      authorization: `Bearer ${TOKENS.USAGE_WEB_TOKEN}`,
      "content-type": "application/json",
      ...headers,
    },
    ...(["GET", "HEAD"].includes(method) ? {} : { body }),
  });
  const type = String(response.headers["content-type"]).split(";")[0];
  return { status: response.statusCode, type, headers: response.headers, text: await response.body.text() };
}

test.each([
  [undefined, "application/json"],
  ["application/json", "application/json"],
  ["*/*", "application/json"],
  ["application/json, text/event-stream", "application/json"],
  ["text/event-stream", "text/event-stream"],
  ["text/html", "application/json"],
])("a client that accepts %s is served", async (accept, type) => {
  for (const message of [INITIALIZE, PING]) {
    const response = await send("/mcp", { accept, body: JSON.stringify(message) });
    expect([response.status, response.type]).toEqual([200, type]);
    const data = type === "application/json" ? response.text : /^data: (.*)$/m.exec(response.text)?.[1];
    expect(JSON.parse(data ?? "")).toMatchObject({
      jsonrpc: "2.0",
      id: message.id,
      result: expect.anything(),
    });
  }
  const notification = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });
  expect(await send("/mcp", { accept, body: notification })).toMatchObject({ status: 202, text: "" });
});

test.each([
  ["no JSON", "/mcp", { body: "{" }, 400, -32_700],
  ["an empty body", "/mcp", { body: "" }, 400, -32_700],
  ["JSON that is no message", "/mcp", { body: "[1]" }, 400, -32_600],
  ["nothing in a list", "/mcp", { body: "[null]" }, 400, -32_600],
  ["null", "/mcp", { body: "null" }, 400, -32_700],
  ["JSON that is nested too deep", "/mcp", { body: "[".repeat(5_000) }, 400, -32_700],
  ["a large body", "/mcp", { body: JSON.stringify({ x: "x".repeat(70_000) }) }, 413, -32_600],
  ["another type", "/mcp", { "content-type": "text/plain" }, 415, -32_000],
  ["a form", "/mcp", { "content-type": "application/x-www-form-urlencoded" }, 415, -32_000],
  ["GET", "/mcp", { method: "GET" }, 405, -32_600],
  ["DELETE", "/mcp", { method: "DELETE" }, 405, -32_600],
  ["PUT", "/mcp", { method: "PUT" }, 405, -32_600],
  ["PATCH", "/mcp", { method: "PATCH", body: "" }, 405, -32_600],
  ["OPTIONS", "/mcp", { method: "OPTIONS", body: "" }, 405, -32_600],
  ["PROPFIND", "/mcp", { method: "PROPFIND", body: "" }, 405, -32_600],
  ["another path", "/mcp/sse", {}, 404, -32_600],
  ["another path with GET", "/mcp/", { method: "GET" }, 404, -32_600],
])("%s gets an error of JSON-RPC", async (_, path, sent, status, code) => {
  const response = await send(path, sent);
  expect([response.status, response.type]).toEqual([status, "application/json"]);
  expect(JSON.parse(response.text)).toMatchObject({
    jsonrpc: "2.0",
    error: { code, message: expect.anything() },
  });
  if (status === 405) expect(response.headers.allow).toBe("POST");
});

test.each([
  ["tools/call", { name: "status", arguments: null, _meta: null }],
  ["prompts/get", { name: "monthly_report", arguments: { month: null, source: "" } }],
  ["resources/list", { cursor: null }],
  ["tools/list", null],
])("%s with null for what is left out is served", async (method, params) => {
  const response = await send("/mcp", { body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
  expect(JSON.parse(response.text)).toMatchObject({
    id: 1,
    result: expect.not.objectContaining({ isError: true }),
  });
});
