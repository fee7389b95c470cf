import type { Client } from "@modelcontextprotocol/client";
import { beforeEach, expect, test } from "vitest";
import { explainInvoice, invoiceNumbered } from "../../../src/features/invoice/explain-invoice.ts";
import { overHttp, refusal, response } from "../../support/mcp.ts";
import { setupPages, TOKENS } from "../../support/pages.ts";
import { addSource, connectPlain, setupSource } from "../../support/reporting.ts";
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
  await explainInvoice(bench.store, await invoiceNumbered(bench.store.db, { number: "1" }));
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
