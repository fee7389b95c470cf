import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, onTestFinished } from "vitest";

interface Line {
  readonly id: string | null;
  readonly name: string;
  readonly amount: number | null;
  readonly amount_loaded?: number;
  readonly per_day: readonly { readonly amount: number }[];
}

/** What the tests read of the answers of MCP tools; each has a part of it. */
export interface Answer {
  readonly total: Line;
  readonly lines: readonly Line[];
  readonly is_proved: boolean;
  readonly is_complete: boolean;
  readonly missing: {
    readonly listed: readonly {
      readonly workspace_id: string;
      readonly listed: readonly { readonly from: string; readonly to: string }[];
    }[];
  };
  readonly notes: readonly string[];
  readonly found: readonly { readonly id: string; readonly name: string }[];
  readonly differences: readonly { readonly says: string }[];
  readonly workspace_days: readonly object[];
  readonly traces_up_to: object;
}

/** Asks a tool; a refusal is its text. */
export async function ask(
  client: Client,
  name: string,
  args: Record<string, unknown>,
): Promise<Answer | string> {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: args });
  const [first] = content;
  const text = first?.type === "text" ? first.text : "";
  if (isError === true) return text;
  expect(JSON.parse(text)).toEqual(structuredContent);
  return structuredContent as unknown as Answer;
}

export async function answer(client: Client, name: string, args: Record<string, unknown>): Promise<Answer> {
  const given = await ask(client, name, args);
  expect(given).toBeTypeOf("object");
  return given as Answer;
}

/** A client that is closed when the test ends. */
export async function connected(transport: Parameters<Client["connect"]>[0]): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  onTestFinished(() => client.close());
  await client.connect(transport);
  return client;
}

export function overHttp(url: string, token?: string): Promise<Client> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return connected(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
}
