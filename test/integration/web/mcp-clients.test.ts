import type { Client } from "@modelcontextprotocol/client";
import { beforeEach, expect, test } from "vitest";
import { call, overHttp, refusal, response } from "../../support/mcp.ts";
import { setupPages, TOKENS } from "../../support/pages.ts";
import { addSource, connectPlain, setupSource, WORKSPACES } from "../../support/reporting.ts";
import { loadRows, windowOf } from "../../support/store.ts";
import { insertInvoice } from "../../support/stored-invoices.ts";

/** What clients send besides the arguments that a tool asks for, and what they read. */

let client: Client;
let bench: Awaited<ReturnType<typeof setupSource>>;
let url: string;

beforeEach(async () => {
  bench = await setupSource();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key" };
  const served = { databaseUrl: bench.url, store: bench.store, standin };
  url = (await setupPages(served, { environment: TOKENS })).url;
  client = await overHttp(url, TOKENS.USAGE_WEB_READ_TOKEN);
});

const RANGE = { from_day: "2026-03-01", to_day: "2026-04-01" };

test("null and empty are absent, and what clients add of their own is ignored", async () => {
  await insertInvoice(await connectPlain(bench.url), {
    number: "1",
    issuedOn: "2026-04-01",
    lines: [{ text: "Seats", amount: "390.00" }],
  });
  const bare = {
    list_views: {},
    describe_view: { view: "dim_workspace" },
    query: { sql: "SELECT generate_series(1, 3)" },
    bill: { month: "2026-03" },
    explain_invoice: { number: "1" },
    why_changed: RANGE,
    status: {},
  };
  const n8n = {
    tool: "x",
    toolCallId: "call_1",
    sessionId: "s",
    action: "sendMessage",
    chatInput: "How much?",
  };
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name).sort()).toEqual(Object.keys(bare).sort());
  for (const { name, inputSchema } of tools) {
    const args: Record<string, unknown> = bare[name as keyof typeof bare];
    const others = Object.keys(inputSchema.properties ?? {}).filter((key) => !(key in args));
    const expected = await response(client, name, args);
    for (const blank of [null, "", "  "]) {
      const blanks = Object.fromEntries(others.map((key) => [key, blank]));
      expect(await response(client, name, { ...args, ...blanks, ...n8n }), name).toEqual(expected);
    }
    expect(await response(client, name, { ...args, cursor: "0" }), name).toEqual(expected);
  }
});

test("a required argument that is null or empty is missing", async () => {
  for (const month of [null, "", undefined])
    expect(await refusal(client, "bill", { month })).toMatch(/month.*is missing/);
  for (const sql of [null, " "]) expect(await refusal(client, "query", { sql })).toMatch(/sql.*is missing/);
});

test("a misspelled argument is refused with the one that was meant, and an unknown source lists the choices", async () => {
  await addSource(bench.store, { slug: "other", workspaceIds: ["00000000-0000-4000-8000-000000000009"] });
  expect(await refusal(client, "why_changed", { ...RANGE, sourc: "default" })).toContain(
    "sourc is not an argument; did you mean source?",
  );
  expect(await refusal(client, "why_changed", { ...RANGE, source: "default", workspaceid: "x" })).toContain(
    "did you mean workspace_id?",
  );
  const unlike = await refusal(client, "bill", { month: "2026-03", group_by: "user" });
  expect(unlike).toContain("group_by is not an argument. The arguments are source, month, cursor.");
  expect(await refusal(client, "bill", { month: "2026-03", source: "zzzzzz" })).toContain(
    "Choose one of: default, other.",
  );
  for (const cursor of ["x", -1, 1.5, true, [1]])
    expect(await refusal(client, "query", { sql: "SELECT 1", cursor }), String(cursor)).toContain("cursor");
});

/** https://docs.python.org/3/reference/lexical_analysis.html#keywords, those that could name an argument. */
const PYTHON = ["from", "in", "is", "as", "and", "or", "not", "if", "for", "with", "class", "type", "global"];

test("schemas suit strict modes: closed, each optional argument may be null, and none is a keyword of Python", async () => {
  const { tools } = await client.listTools();
  for (const { name, inputSchema, outputSchema } of tools) {
    expect(inputSchema, name).toMatchObject({ type: "object", additionalProperties: false });
    const { properties = {}, required = [] } = inputSchema;
    for (const [key, schema] of Object.entries(properties)) {
      expect(PYTHON, name).not.toContain(key);
      if (required.includes(key)) continue;
      expect(JSON.stringify(schema), `${name}.${key}`).toMatch(/"type":(\["\w+",)?"null"/);
    }
    expect(outputSchema, name).toMatchObject({ type: "object" });
    expect(Object.keys(outputSchema?.properties ?? {}).length, name).toBeGreaterThan(2);
  }
});

test("the server announces no notification of changes, since it sends none", () => {
  const { tools, prompts, resources, ...others } = client.getServerCapabilities() ?? {};
  expect([tools, prompts, resources].map((one) => one?.listChanged)).toEqual([false, false, false]);
  expect(Object.keys(others)).not.toContain("logging");
});

test("the bill of each listed month is a resource with what the tool returns, and an unknown one says why", async () => {
  const { sourceId, store } = bench;
  const [workspaceId] = WORKSPACES;
  const window = windowOf("day", "2026-03-01", "2026-04-01");
  await loadRows(store, {
    sourceId,
    groupBy: "workspace",
    workspaceId,
    window,
    rows: [["2026-03-02", workspaceId, 7]],
  });
  const { resources } = await client.listResources();
  expect(resources.length).toBeGreaterThan(0);
  for (const { uri } of resources) {
    const [, month] = /bill\/default\/(\d{4}-\d\d)$/.exec(uri) ?? [];
    const { contents } = await client.readResource({ uri });
    const [content] = contents;
    const text = content !== undefined && "text" in content ? content.text : "";
    expect(JSON.parse(text)).toEqual(await response(client, "bill", { month }));
  }
  const uri = "usage-etl://bill/default/2026-13";
  await expect(client.readResource({ uri })).rejects.toThrow(/month_invalid/);
});

test("the monthly report names only tools and views that there are", async () => {
  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(["monthly_report"]);
  const { messages } = await client.getPrompt({
    name: "monthly_report",
    arguments: { month: "2026-03", source: "" },
  });
  const text = JSON.stringify(messages);
  expect(text).toContain("2026-03");
  const { views } = await response(client, "list_views");
  const names = views.map(({ view }: { view: string }) => view.replace(/^.*\./, ""));
  const named = text.match(/\b(fct|dim|usage)_\w+/g) ?? [];
  expect(named.length).toBeGreaterThan(3);
  for (const view of named) expect(names).toContain(view);
  const { tools } = await client.listTools();
  for (const [, tool] of text.matchAll(/\\n\d\. (\w+)/g))
    expect(tools.map(({ name }) => name)).toContain(tool);
  expect((await call(client, "bill", { month: "2026-03" })).isError).toBe(false);
});

test("a client of the newest revision of the protocol gets the same as one of the year before", async () => {
  const versionNegotiation = { mode: "auto" } as const;
  const newest = await overHttp(url, TOKENS.USAGE_WEB_READ_TOKEN, { versionNegotiation });
  expect(newest.getNegotiatedProtocolVersion()).not.toBe(client.getNegotiatedProtocolVersion());
  expect((await newest.listTools()).tools).toEqual((await client.listTools()).tools);
  for (const [tool, args] of [
    ["query", { sql: "SELECT 9007199254740993 AS n FROM generate_series(1, 600)", cursor: null }],
    ["bill", { month: "2026-03", source: "", toolCallId: "call_1" }],
    ["bill", { month: "soon" }],
  ] as const)
    expect(await call(newest, tool, args)).toEqual(await call(client, tool, args));
  expect((await newest.listResources()).resources).toEqual((await client.listResources()).resources);
  expect(newest.getServerCapabilities()).toEqual(client.getServerCapabilities());
});
