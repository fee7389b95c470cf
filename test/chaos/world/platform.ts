import { readFileSync } from "node:fs";
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { json } from "node:stream/consumers";
import { drip, flood } from "../../support/agent-server.ts";
import type { Certificate } from "../../support/certificates.ts";
import { listen } from "../../support/listen.ts";

/** What the stand-in cannot send: answers that never end, and whole ones that are wrong. */
export type HostileResponse = "drip" | "endless" | "html" | "empty" | "doubled";

export interface HostilePlatform {
  readonly port: number;
  /** What usage answers are replaced with; `every`: each so many-th. */
  hostile: { readonly response: HostileResponse; readonly every: number } | undefined;
  /** Usage requests so far. */
  readonly requests: number;
  onUsageRequest: () => void;
  present(certificate: Certificate): void;
  close(): Promise<void>;
}

export async function openPlatform(target: string, certificate?: Certificate): Promise<HostilePlatform> {
  let requests = 0;
  const isHit = (url: URL) => {
    const { hostile } = platform;
    const isUsage = url.pathname.endsWith("/granular-usage");
    return isUsage && hostile !== undefined && requests % hostile.every === 0 ? hostile.response : undefined;
  };
  const pass = (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? "/", target);
    if (url.pathname.endsWith("/granular-usage")) {
      requests++;
      platform.onUsageRequest();
    }
    const hit = isHit(url);
    if (hit !== undefined && hit !== "doubled") return send(response, hit);
    const headers =
      hit === undefined ? request.headers : { ...request.headers, "accept-encoding": "identity" };
    // The stand-in may reset the connection, or cut its response.
    const fail = () => response.destroy();
    const upstream = forward(url, { headers, method: request.method }, (received) => {
      const { statusCode = 500, headers } = received;
      received.on("error", fail).on("aborted", fail);
      if (hit === "doubled" && statusCode === 200) return void sendDoubled(received, response).catch(fail);
      const isFramed = "content-length" in headers || "transfer-encoding" in headers;
      response.useChunkedEncodingByDefault = isFramed;
      response.writeHead(statusCode, isFramed ? headers : { ...headers, connection: "close" });
      received.pipe(response);
    });
    upstream.on("error", fail);
    request.pipe(upstream);
  };
  const tls = certificate === undefined ? undefined : createTlsServer(filesOf(certificate), pass);
  const server = tls ?? createServer(pass);
  // Longer than any delay: else it closes connections whose answers are still on their way.
  server.keepAliveTimeout = 60_000;
  const platform: HostilePlatform = {
    port: await listen(server),
    hostile: undefined,
    get requests() {
      return requests;
    },
    onUsageRequest: () => {},
    present: (other) => tls?.setSecureContext(filesOf(other)),
    close: async () => {
      const closed = new Promise((done) => server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
  return platform;
}

function filesOf({ cert, key }: Certificate) {
  return { cert: readFileSync(cert), key: readFileSync(key) };
}

function send(response: ServerResponse, kind: Exclude<HostileResponse, "doubled">): void {
  if (kind === "html") {
    response.writeHead(200, { "content-type": "text/html" }).end("<html><body>Maintenance</body></html>");
    return;
  }
  const begin = '{"usage":[';
  if (kind === "drip") return void drip(response, { begin, everyMs: 2_000 });
  if (kind === "endless") return void flood(response, { begin });
  response.writeHead(200, { "content-type": "application/json" }).end();
}

async function sendDoubled(received: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = (await json(received)) as { usage?: unknown[] };
  const usage = (body.usage ?? []).flatMap((record) => [record, record]);
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ ...body, usage }));
}
