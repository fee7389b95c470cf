import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect } from "vitest";
import { atEnd } from "./share.ts";

interface Said {
  readonly text: string;
  readonly structured: unknown;
  readonly isError: boolean;
}

export async function call(
  client: Client,
  name: string,
  args: Readonly<Record<string, unknown>> = {},
): Promise<Said> {
  const { content, structuredContent, isError = false } = await client.callTool({ name, arguments: args });
  const [first] = content;
  return { text: first?.type === "text" ? first.text : "", structured: structuredContent, isError };
}

/** What a tool responds, which must be no refusal. */
export async function response(
  client: Client,
  name: string,
  args: Readonly<Record<string, unknown>> = {},
  // biome-ignore lint/suspicious/noExplicitAny: each test reads other fields of the JSON.
): Promise<any> {
  const { text, structured, isError } = await call(client, name, args);
  expect(isError, text).toBe(false);
  return structured;
}

export async function rowsOf(client: Client, sql: string): Promise<Record<string, unknown>[]> {
  const { columns, rows, next_cursor } = await response(client, "query", { sql });
  expect(next_cursor, sql).toBe(null);
  return rows.map((row: unknown[]) =>
    Object.fromEntries(columns.map((name: string, at: number) => [name, row[at]])),
  );
}

export async function refusal(
  client: Client,
  name: string,
  args: Readonly<Record<string, unknown>>,
): Promise<string> {
  const said = await call(client, name, args).catch(({ message: text }: Error) => ({ text, isError: true }));
  expect(said.isError, `${JSON.stringify(args)}: ${said.text}`).toBe(true);
  return said.text;
}

export async function connected(
  transport: Parameters<Client["connect"]>[0],
  options: ConstructorParameters<typeof Client>[1] = {},
): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, options);
  atEnd(() => client.close());
  await client.connect(transport);
  return client;
}

export function overHttp(
  url: string,
  token?: string,
  options?: ConstructorParameters<typeof Client>[1],
): Promise<Client> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return connected(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
    options,
  );
}
