import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { request } from "undici";
import { pagesOf } from "../../src/app/service/pages.ts";
import { systemClock } from "../../src/core/base/clock.ts";
import { readConfig } from "../../src/core/base/config.ts";
import { openStore, type Store } from "../../src/core/store/db/database.ts";
import type { Standin } from "../../src/features/standin/server.ts";
import type { WebServices } from "../../src/web/routes.ts";
import { newApp } from "../../src/web/server.ts";
import { readPage } from "./dom.ts";
import { atEnd } from "./share.ts";

interface PagesOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly services?: Partial<WebServices>;
}

interface Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** The operator's pages over HTTP, as a browser without JavaScript uses them: it keeps cookies and sends forms. */
export interface PagesBench {
  readonly url: string;
  readonly enqueued: string[];
  readonly logs: Record<string, unknown>[];
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  read(path: string): Promise<ReturnType<typeof readPage> & { readonly status: number }>;
  post(
    path: string,
    fields?: Readonly<Record<string, string | readonly string[]>>,
    options?: { from?: string; headers?: Record<string, string> },
  ): Promise<Response>;
}

interface Served {
  readonly databaseUrl: string;
  readonly standin: Pick<Standin, "url" | "apiKey">;
  readonly store: Store;
  readonly workspaceIds?: readonly string[];
}

export async function setupPages(served: Served, options: PagesOptions = {}): Promise<PagesBench> {
  const pages = await openPages(served, options);
  atEnd(pages.close);
  return pages;
}

export async function setupViewer(
  served: Served,
  { environment }: Pick<PagesOptions, "environment"> = {},
): Promise<PagesBench> {
  const pages = await setupPages(served, { environment: { ...environment, ...TOKENS } });
  await pages.post("/login", { token: TOKENS.USAGE_WEB_READ_TOKEN, next: "/" });
  return pages;
}

export const TOKENS = {
  USAGE_WEB_TOKEN: "operators-token-4711",
  USAGE_WEB_READ_TOKEN: "viewers-token-4712",
} as const;

export async function refusalOf(pages: PagesBench, path: string): Promise<string> {
  const { status, text } = await pages.get(path);
  return `${status} ${/Code: <code>(\w+)/.exec(text)?.[1]}`;
}

export async function openPages(
  { databaseUrl, standin, store, workspaceIds = [] }: Served,
  options: PagesOptions = {},
): Promise<PagesBench & { close(): Promise<void> }> {
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    USAGE_BASE_URL: standin.url,
    USAGE_API_KEY: standin.apiKey,
    USAGE_WORKSPACE_IDS: workspaceIds.join(","),
    ...options.environment,
  });
  const reader = openStore({ url: databaseUrl, maxConnections: 4, statementTimeoutMs: 8_000 });
  const enqueued: string[] = [];
  const logs: Record<string, unknown>[] = [];
  const log = pino({ level: "debug", base: null }, { write: (line) => void logs.push(JSON.parse(line)) });
  const app = newApp({ trustedProxies: config.webTrustedProxies });
  await pagesOf({
    config,
    store,
    reader: reader.db,
    clock: systemClock,
    log,
    lookAtQueues: undefined,
    enqueue: async (slug) => void enqueued.push(slug),
    ...options.services,
  })(app);
  await app.listen({ host: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const cookies = new Map<string, string>();

  const send = async (
    path: string,
    { headers: given, ...sent }: { method?: "POST"; headers: Record<string, string>; body?: string },
  ): Promise<Response> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { accept: "text/html", ...(cookie === "" ? {} : { cookie }), ...given };
    const response = await request(`${url}${path}`, { ...sent, headers });
    for (const line of [response.headers["set-cookie"] ?? []].flat()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    return { status: response.statusCode, headers: response.headers, text: await response.body.text() };
  };
  const get: PagesBench["get"] = (path, headers = {}) => send(path, { headers });
  return {
    url,
    enqueued,
    logs,
    get,
    read: async (path) => {
      const { status, text } = await get(path);
      return { ...readPage(text), status };
    },
    close: async () => {
      await app.close();
      await reader.close();
    },
    post: async (path, fields = {}, { from, headers = {} } = {}) => {
      const page = from === undefined ? "" : (await get(from)).text;
      const body = new URLSearchParams();
      const [, token] = /name="_csrf" value="([^"]*)"/.exec(page) ?? [];
      if (token !== undefined) body.append("_csrf", token);
      for (const [name, values] of Object.entries(fields)) {
        for (const value of [values].flat()) body.append(name, value);
      }
      const type = { "content-type": "application/x-www-form-urlencoded" };
      return send(path, { method: "POST", headers: { ...type, ...headers }, body: String(body) });
    },
  };
}
