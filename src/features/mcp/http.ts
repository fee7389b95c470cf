import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { McpHttpHandler } from "@modelcontextprotocol/server";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { loadOptional, PackageMissingError } from "../../core/base/optional.ts";
import { accessOf, isFromElsewhere, isOwnHost, type Role } from "../../web/access.ts";
import type { WebServices } from "../../web/routes.ts";
import { LARGEST_BODY, sendPackageMissing } from "../../web/server.ts";
import { WrongTries } from "../../web/wrong-tries.ts";

const PATH = "/mcp";

export async function addMcp(app: FastifyInstance, services: WebServices): Promise<void> {
  const { config, store, reader: db, clock, log } = services;
  const access = accessOf(config);
  const wrong = new WrongTries(clock);
  const roles = new WeakMap<FastifyRequest, Role>();
  const handlers = new Map<Role, McpHttpHandler>();
  /** Loaded for the first request: most services get none. */
  const handlerOf = async (role: Role) => {
    const { createMcpHandler } = await loadOptional(() => import("@modelcontextprotocol/server"));
    const { mcpServer } = await import("./server.ts");
    const reader = role === "viewer" ? "usage_reader_masked" : "usage_reader";
    const handler =
      handlers.get(role) ??
      createMcpHandler(() => mcpServer({ config, store, db, reader }, log), {
        // There is nothing to listen for: nothing here changes while a client is connected.
        maxSubscriptions: 0,
        maxRequestBodySize: LARGEST_BODY,
      });
    handlers.set(role, handler);
    return handler;
  };
  await app.register(async (mcp) => {
    mcp.addHook("onRequest", async (request, reply) => {
      reply.header("cache-control", "no-store");
      const refuse = (status: number, error: string, next: string) =>
        reply.code(status).send({ error, next });
      if (access.kind !== "tokens") {
        if (access.kind === "off") return refuse(403, "pages_off", OFF);
        // Another site's page must not ask through the browser of somebody on this machine.
        const isOurs = isOwnHost(request.headers.host) && isOwnOrigin(request) && !isFromElsewhere(request);
        if (!isOurs) return refuse(403, "foreign_host", FOREIGN);
        roles.set(request, "operator");
        return;
      }
      const { authorization } = request.headers;
      const [, token] = /^bearer +(\S+) *$/i.exec(authorization ?? "") ?? [];
      const role = token === undefined ? undefined : access.roleOf(token);
      if (role !== undefined) {
        roles.set(request, role);
        return;
      }
      // A client may first try without a token, to see what is required.
      if (authorization !== undefined && wrong.note(request.ip)) {
        reply.header("retry-after", "60");
        return refuse(429, "too_many_tries", "Try again in a minute.");
      }
      reply.header("www-authenticate", 'Bearer realm="usage-etl"');
      return refuse(401, "unauthorized", LOG_IN);
    });
    mcp.setErrorHandler((error, _request, reply) => {
      if (error instanceof PackageMissingError) return sendPackageMissing(reply, error);
      throw error;
    });
    mcp.route({
      method: ["GET", "POST", "DELETE"],
      url: PATH,
      handler: async (request, reply) => {
        const role = roles.get(request);
        if (role === undefined) throw new Error("a request passed the guard unseen");
        const handler = await handlerOf(role);
        return sendOn(reply, await handler.fetch(...toWebRequest(request, reply)));
      },
    });
    mcp.addHook("onClose", async () => {
      for (const handler of handlers.values()) await handler.close();
    });
  });
}

const OFF =
  "The service listens beyond this machine. Set USAGE_WEB_TOKEN or USAGE_WEB_READ_TOKEN, and start it again.";
const FOREIGN =
  "Without a token, only this machine is answered, under a name such as 127.0.0.1. Behind a proxy, set USAGE_WEB_TOKEN.";
const LOG_IN =
  "Send the header Authorization: Bearer TOKEN. The settings USAGE_WEB_READ_TOKEN and USAGE_WEB_TOKEN hold tokens.";

/** A browser names the site of the page that asks; other clients name none. */
function isOwnOrigin({ headers: { origin } }: FastifyRequest): boolean {
  return origin === undefined || (URL.canParse(origin) && isOwnHost(new URL(origin).host));
}

function toWebRequest(request: FastifyRequest, reply: FastifyReply): Parameters<McpHttpHandler["fetch"]> {
  const left = new AbortController();
  reply.raw.once("close", () => left.abort());
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers.set(name, [value].flat().join(", "));
  }
  const isPost = request.method === "POST";
  const body = isPost ? JSON.stringify(request.body ?? null) : null;
  // Only its path is read. The Host header comes from outside.
  const requested = new Request(`http://127.0.0.1${PATH}`, {
    method: request.method,
    headers,
    body,
    signal: left.signal,
  });
  return isPost ? [requested, { parsedBody: request.body }] : [requested];
}

function sendOn(reply: FastifyReply, { status, headers, body }: Response): FastifyReply {
  reply.code(status).headers(Object.fromEntries(headers));
  return body === null ? reply.send() : reply.send(Readable.fromWeb(body as ReadableStream));
}
