import { METHODS } from "node:http";
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { EtlError, reasonOf } from "../../core/base/errors.ts";
import { isTooDeep } from "../../core/base/json.ts";
import { loadOptional, PackageMissingError } from "../../core/base/optional.ts";
import { accessOf, isFromElsewhere, isOwnHost, type Role } from "../../web/access.ts";
import type { WebServices } from "../../web/routes.ts";
import { LARGEST_BODY, sendPackageMissing } from "../../web/server.ts";
import { WrongTries } from "../../web/wrong-tries.ts";

const PATH = "/mcp";
/** https://www.rfc-editor.org/rfc/rfc9728 */
const METADATA = "/.well-known/oauth-protected-resource";

export async function addMcp(app: FastifyInstance, services: WebServices): Promise<void> {
  const { config, store, reader: db, clock, log } = services;
  const access = accessOf(config);
  const wrong = new WrongTries(clock);
  const roles = new WeakMap<FastifyRequest, Role>();
  const issuer = access.kind === "tokens" ? access.issuer : undefined;
  const origin = issuer === undefined ? undefined : new URL(config.webUrl ?? "").origin;
  const resource = `${origin}${PATH}`;
  let verifier: Promise<(token: string) => Promise<boolean>> | undefined;
  const isIssued = async (token: string) => {
    if (issuer === undefined) return false;
    verifier ??= loadOptional(() => import("./issuer.ts")).then(({ tokensOf }) =>
      tokensOf(issuer, { audience: resource, clock }),
    );
    return (await verifier)(token);
  };
  /** Loaded for the first request: most services get none. */
  const exchangeOf = async (role: Role) => {
    const { exchange } = await loadOptional(() => import("./exchange.ts"));
    const { mcpServer } = await import("./server.ts");
    const reader = role === "viewer" ? "usage_reader_masked" : "usage_reader";
    return exchange(() => mcpServer({ config, store, db, reader }, log));
  };
  // Any other method would get a page that says that the address leads nowhere.
  for (const method of METHODS)
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: true });
  addDiscovery(app, { issuer, resource });
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
      const known = token === undefined ? undefined : access.roleOf(token);
      const role = known ?? (token !== undefined && (await isIssued(token)) ? "viewer" : undefined);
      if (role !== undefined) {
        roles.set(request, role);
        return;
      }
      // A client may first try without a token, to see what is required.
      if (authorization !== undefined && wrong.note(request.ip)) {
        reply.header("retry-after", "60");
        return refuse(429, "too_many_tries", "Try again in a minute.");
      }
      const challenge = ['Bearer realm="usage-etl"'];
      if (token !== undefined) challenge.push('error="invalid_token"');
      if (issuer !== undefined) challenge.push(`resource_metadata="${origin}${METADATA}${PATH}"`);
      reply.header("www-authenticate", challenge.join(", "));
      return refuse(401, "unauthorized", LOG_IN);
    });
    mcp.removeAllContentTypeParsers();
    mcp.addContentTypeParser("*", { parseAs: "string", bodyLimit: LARGEST_BODY }, (_, body, done) =>
      done(null, body),
    );
    mcp.setErrorHandler<FastifyError>((error, _request, reply) => {
      if (error instanceof PackageMissingError) return sendPackageMissing(reply, error);
      if (error instanceof EtlError)
        return reply.code(503).send({ error: error.code, next: `${error.message} ${error.next}` });
      const { statusCode = 500, message } = error;
      if (statusCode < 500) return sendError(reply, statusCode, INVALID_REQUEST, message);
      log.warn({ code: "unexpected", reason: reasonOf(error) }, "mcp");
      return sendError(reply, statusCode, INTERNAL_ERROR, "Unexpected: the log of the service has it.");
    });
    mcp.all(PATH, async (request, reply) => {
      const role = roles.get(request);
      if (role === undefined) throw new Error("a request passed the guard unseen");
      if (request.method !== "POST") {
        reply.header("allow", "POST");
        return sendError(reply, 405, INVALID_REQUEST, "Send messages with POST. No stream is offered.");
      }
      const message = messageOf(request);
      if (message === undefined)
        return sendError(reply, 400, PARSE_ERROR, "The body is no JSON, or is nested too deep.");
      const left = new AbortController();
      reply.raw.once("close", () => left.abort());
      const respond = await exchangeOf(role);
      return send(request, reply, await respond(toWebRequest(request, left.signal), message));
    });
    mcp.all(`${PATH}/*`, async (_, reply) =>
      sendError(reply, 404, INVALID_REQUEST, `Send messages to ${PATH}.`),
    );
  });
}

/** Clients look for such documents before anybody logs in, and read nothing but JSON. */
function addDiscovery(
  app: FastifyInstance,
  { issuer, resource }: { issuer: string | undefined; resource: string },
): void {
  const metadata = {
    resource,
    resource_name: "usage-etl",
    authorization_servers: [issuer],
    bearer_methods_supported: ["header"],
  };
  app.all("/.well-known/*", async ({ url, method }, reply) => {
    const [path = ""] = url.split("?");
    const isThere = issuer !== undefined && [METADATA, `${METADATA}${PATH}`].includes(path);
    if (!isThere)
      return reply.code(404).send({ error: "not_found", next: "This server has no such document." });
    if (method !== "GET" && method !== "HEAD")
      return reply.code(405).header("allow", "GET").send({ error: "method_not_allowed", next: "Send GET." });
    return reply.send(metadata);
  });
}

/** https://www.jsonrpc.org/specification#error_object */
const [PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR] = [-32_700, -32_600, -32_603];

function sendError(reply: FastifyReply, status: number, code: number, message: string): FastifyReply {
  return reply.code(status).send({ jsonrpc: "2.0", id: null, error: { code, message } });
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

/** Without members that are null: some clients send null for all that they leave out. Undefined: the body cannot be read. */
function messageOf({ body }: FastifyRequest): unknown {
  const text = String(body ?? "");
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text, (_, value) => value ?? undefined);
  } catch {
    return undefined;
  }
}

function toWebRequest(request: FastifyRequest, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers.set(name, [value].flat().join(", "));
  }
  // Many clients accept one of both, or anything. `send` gives them what they accept.
  headers.set("accept", "application/json, text/event-stream");
  // Only its path is read. The Host header comes from outside.
  return new Request(`http://127.0.0.1${PATH}`, { method: "POST", headers, signal });
}

/** Sends JSON, or a stream of one event to a client that accepts nothing else. */
async function send({ headers: { accept } }: FastifyRequest, reply: FastifyReply, response: Response) {
  const text = await response.text();
  const isStream =
    response.ok && text !== "" && /event-stream/.test(accept ?? "") && !/json|\*\/\*/.test(accept ?? "");
  reply.code(response.status).headers(Object.fromEntries(response.headers));
  return isStream
    ? reply.type("text/event-stream").send(`event: message\ndata: ${text}\n\n`)
    : reply.send(text);
}
