import { type Dispatcher, Pool, ProxyAgent } from "undici";
import { type HttpProxy, proxyOf } from "./proxy.ts";

export interface Connections {
  readonly dispatcher: Dispatcher;
  readonly proxy: HttpProxy | undefined;
}

/**
 * Connections to one origin with HTTP/1.1, through the proxy that the environment names. For https the proxy only carries bytes
 * (CONNECT). The caller must destroy the dispatcher. Error: `proxy_invalid`.
 */
export function openConnections(
  { origin }: URL,
  { connections, connectMs }: { readonly connections: number; readonly connectMs: number },
): Connections {
  const proxy = proxyOf(new URL(origin));
  const limits = { connections, connectTimeout: connectMs, allowH2: false };
  if (proxy === undefined) return { dispatcher: new Pool(origin, limits), proxy };
  const dispatcher = new ProxyAgent({
    ...limits,
    uri: proxy.url.href,
    // The proxy's response to CONNECT is a part of the connection.
    clientFactory: (at, options) => new Pool(at, { ...options, headersTimeout: connectMs }),
    // Without a tunnel undici passes no limits on.
    factory: (at, options) => new Pool(at, { ...options, ...limits }),
  });
  return { dispatcher, proxy };
}
