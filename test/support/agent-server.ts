import { createServer, type ServerResponse } from "node:http";
import { listenInTest } from "./listen.ts";

export interface Requested {
  readonly method: string;
  readonly path: string;
  readonly text: string;
  readonly id: string;
}

type Response = (response: ServerResponse, requested: Requested) => void;

export async function agentServer(respond: Response, { hasCard = false } = {}) {
  const requests: Requested[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const { method = "", url: path = "" } = request;
    const requested = { method, path, text, id: text.startsWith("{") ? JSON.parse(text).id : "" };
    const isAbsent = path === "/assistants/search" || (path.startsWith("/.well-known/") && !hasCard);
    if (isAbsent) return json(response, { detail: "Not Found" }, 404);
    requests.push(requested);
    respond(response, requested);
  });
  return { url: `http://127.0.0.1:${await listenInTest(server)}`, requests };
}

export function drip(
  response: ServerResponse,
  { piece = " ", begin = "", type = "application/json", everyMs = 10 } = {},
): void {
  response.writeHead(200, { "content-type": type });
  response.write(begin);
  const timer = setInterval(() => response.write(piece), everyMs);
  response.on("close", () => clearInterval(timer));
}

export function flood(response: ServerResponse, { begin = "", type = "application/json" } = {}): void {
  response.writeHead(200, { "content-type": type });
  response.write(begin);
  const piece = Buffer.alloc(65_536, " ");
  const more = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on("drain", more);
  more();
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

export function events(response: ServerResponse, { id }: Requested, results: readonly unknown[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(results.map((result) => eventOf(id, result)).join(""));
}

export function eventOf(id: unknown, result: unknown): string {
  return `data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`;
}
