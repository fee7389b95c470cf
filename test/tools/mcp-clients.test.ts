import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { overHttp, response } from "../support/mcp.ts";
import { setupPages, TOKENS } from "../support/pages.ts";
import { setupSource } from "../support/reporting.ts";
import { notInstalled, venvOf } from "./counterparts.ts";

const PROGRAM = fileURLToPath(new URL("clients/mcp_clients.py", import.meta.url));
const SQL = `SELECT 9007199254740993 AS traces, 0.1234567890::numeric(38, 10) AS cost, '営業, =1' AS name, NULL AS nothing,
  DATE '2026-03-01' AS day`;

test.for([
  ["mcp", "mcp"],
  ["fastmcp", "mcp"],
  ["openai-agents", "mcp"],
  ["pydantic-ai-slim", "mcp"],
  ["langchain-mcp-adapters", "mcp-1"],
  ["mcp-use", "mcp-1"],
] as const)("%s lists the tools and gets the values of a query", async ([client, environment], { skip }) => {
  const absent = notInstalled(environment);
  if (absent !== undefined) return skip(absent);
  const bench = await setupSource();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const served = { databaseUrl: bench.url, store: bench.store, standin };
  const { url } = await setupPages(served, { environment: TOKENS });
  const token = TOKENS.USAGE_WEB_READ_TOKEN;
  const ours = await overHttp(url, token);
  const { tools } = await ours.listTools();

  const { stdout } = await promisify(execFile)(
    join(venvOf(environment), "bin/python"),
    [PROGRAM, client, `${url}/mcp`, token, SQL],
    { env: { ...process.env, MCP_USE_ANONYMIZED_TELEMETRY: "false", OPENAI_AGENTS_DISABLE_TRACING: "1" } },
  );
  const line = stdout.trim().split("\n").at(-1) ?? "";
  const said = JSON.parse(line);
  expect(said.tools).toEqual(tools.map(({ name }) => name).sort());
  // As Python reads it: JSON.parse would round the count.
  expect(line).toContain('[[9007199254740993, 0.123456789, "営業, =1", null, "2026-03-01"]]');
  expect(said.rows).toEqual(await response(ours, "query", { sql: SQL }));
});
