import { createServer } from "node:http";
import { listenInTest } from "./listen.ts";

interface Replaced {
  readonly status: number;
  readonly body: string;
}

export type Rewrite = (response: {
  readonly url: URL;
  readonly text: string;
}) => string | Replaced | undefined | Promise<string | undefined>;

export interface Proxy {
  readonly url: string;
  rewrite: Rewrite;
  readonly seen: URL[];
}

/** A proxy in front of `target` that rewrites bodies: faults that the stand-in cannot produce. */
export async function startProxy(target: string, rewrite: Rewrite): Promise<Proxy> {
  const seen: URL[] = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", target);
    seen.push(url);
    try {
      const { "x-api-key": key = "", "x-tenant-id": workspace } = request.headers;
      const upstream = await fetch(url, {
        headers: {
          "x-api-key": String(key),
          "accept-encoding": "identity",
          ...(workspace === undefined ? {} : { "x-tenant-id": String(workspace) }),
        },
      });
      const text = await upstream.text();
      const given = (await proxy.rewrite({ url, text })) ?? text;
      const { status, body: sent } =
        typeof given === "string" ? { status: upstream.status, body: given } : given;
      const body = Buffer.from(sent);
      const retryAfter = upstream.headers.get("retry-after");
      response.writeHead(status, {
        ...(retryAfter === null ? {} : { "retry-after": retryAfter }),
        "content-type": upstream.headers.get("content-type") ?? "text/plain",
        "content-length": body.length,
      });
      response.end(body);
    } catch {
      response.destroy();
    }
  });
  const proxy: Proxy = { url: `http://127.0.0.1:${await listenInTest(server)}`, rewrite, seen };
  return proxy;
}

interface WireRecord {
  time_bucket: string;
  dimensions: Record<string, string | null>;
  traces: number;
}

/** Rewrites each record of usage answers; everything else passes unchanged. */
export function eachRecord(change: (record: WireRecord, url: URL) => WireRecord): Rewrite {
  return ({ url, text }) => {
    if (!url.pathname.endsWith("/granular-usage")) return undefined;
    const response = JSON.parse(text) as { usage?: WireRecord[] };
    if (response.usage === undefined) return undefined;
    return JSON.stringify({ ...response, usage: response.usage.map((record) => change(record, url)) });
  };
}
