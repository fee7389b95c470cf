import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Needs } from "../engine/access.ts";
import type { Fault } from "../engine/faults.ts";
import { asProblem, notJson, Refusal, tooLarge } from "../engine/refusal.ts";
import type { World } from "../engine/world.ts";
import { hang, type Response, reset, send } from "./wire.ts";

export interface Exchange {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly origin: string;
  /** Parsed JSON, or undefined. For a route that takes `text`: the text. */
  readonly body: unknown;
  readonly fault: Fault | null;
}

export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly needs: Needs;
  /** The route itself parses its body and refuses a wrong one. */
  readonly takes?: "text";
  readonly refusesBy?: "problem";
  /** Our own route, without faults and not remembered, so that tests can repair a broken platform. */
  readonly isOwn?: true;
  handle(exchange: Exchange): Response | Promise<Response>;
}

/** Bytes (our guess). */
export const MOST_BODY = 5_000_000;

export const json = (body: unknown, status = 200): Response => ({
  status,
  type: "application/json",
  body: JSON.stringify(body),
});

export function open(app: FastifyInstance, world: World, routes: readonly Route[]): void {
  for (const route of routes) {
    const { method, path: url } = route;
    app.route({ method, url, handler: (request, reply) => response(world, route, request, reply) });
  }
}

async function response(
  world: World,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const gzip = acceptsGzip(request.headers["accept-encoding"]);
  const path = request.url.split("?")[0] ?? request.url;
  const query = request.query as Record<string, unknown>;
  const fault = route.isOwn ? null : world.faults.next({ path, query, acceptsGzip: gzip });
  const remember = (status: number | null): void => {
    if (route.isOwn) return;
    world.remember({ method: request.method, url: request.url, status, fault: fault?.kind ?? null });
  };

  if (fault?.kind === "reset" || fault?.kind === "hang") {
    remember(null);
    return fault.kind === "reset" ? reset(reply) : hang(reply);
  }
  // A gateway refuses before the key is checked (our guess).
  const given = fault?.kind === "status" ? refused(fault) : await handled(world, route, request, fault);
  remember(given.status);
  const { compress, framing } = world.settings;
  // Compression would delay the events of a stream.
  const zip = gzip && compress && !given.type.startsWith("text/event-stream");
  return send(reply, given, { gzip: zip, framing, fault });
}

/** Lets the route respond, and applies deviations to its response. */
async function handled(
  world: World,
  route: Route,
  request: FastifyRequest,
  fault: Fault | null,
): Promise<Response> {
  const [path = ""] = request.url.split("?");
  const deviations = route.isOwn ? [] : world.deviations.filter((one) => one.path.test(path));
  // The protocol's client sends two such headers. The first counts (measured).
  const headers = { ...request.headers, accept: request.raw.headersDistinct.accept?.[0] };
  const asked = { query: request.query as Exchange["query"], headers };
  const read = deviations.reduce<Pick<Exchange, "query" | "headers">>(
    (before, { reads }) => reads?.(before) ?? before,
    asked,
  );
  const given = await outcome(route, () => {
    for (const { refuses } of deviations) {
      const refusal = refuses?.(read.query);
      if (refusal !== undefined) throw refusal;
    }
    world.access.check(route.needs, read.headers);
    return route.handle({ ...exchange(request, route, fault), ...read });
  });
  const isChanged = deviations.length > 0 || fault?.kind === "body";
  if (given.status !== 200 || !isChanged) return given;
  let body =
    typeof given.body === "string" ? given.body : (await Readable.from(given.body).toArray()).join("");
  const changed: Partial<Response>[] = [];
  for (const { sends } of deviations) {
    const sent = sends?.(body, asked) ?? { body };
    ({ body } = sent);
    changed.push(sent);
  }
  if (fault?.kind === "body") changed.push({ body: fault.change(body, asked.query) });
  return Object.assign({}, given, ...changed);
}

async function outcome({ refusesBy }: Route, handle: () => Response | Promise<Response>): Promise<Response> {
  try {
    return await handle();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { status, body } = refusesBy === "problem" ? asProblem(error) : error;
    return { ...json(body, status), ...(refusesBy === "problem" && { type: "application/problem+json" }) };
  }
}

function exchange(request: FastifyRequest, route: Route, fault: Fault | null): Exchange {
  const { params, query, headers, protocol, host } = request;
  const text = (request.body as Buffer | undefined)?.toString("utf8") ?? "";
  return {
    params: params as Record<string, string>,
    query: query as Record<string, unknown>,
    headers,
    origin: `${protocol}://${host}`,
    body: route.takes === "text" ? text : parsedBody(text),
    fault,
  };
}

/** The Content-Type is ignored (our guess). */
function parsedBody(text: string): unknown {
  if (Buffer.byteLength(text) > MOST_BODY) throw tooLarge(MOST_BODY);
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notJson(Number(/position (\d+)/.exec((error as Error).message)?.[1] ?? 0));
  }
}

/** Undocumented bodies are our guess: a sentence, or a gateway's page for 5xx. */
function refused({ status, retry_after, content_type, body }: Extract<Fault, { kind: "status" }>): Response {
  const sentence = status === 401 ? "Invalid token" : `Refused with ${status}`;
  const isPage = body !== undefined || status >= 500;
  return {
    status,
    type: content_type ?? (isPage ? "text/html" : "application/json"),
    headers: retry_after === undefined ? {} : { "retry-after": String(retry_after) },
    body: body ?? (isPage ? `<html><h1>${status}</h1></html>\n` : JSON.stringify({ detail: sentence })),
  };
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  const gzip = String(header ?? "")
    .split(",")
    .find((one) => /^\s*(gzip|\*)\s*(;|$)/i.test(one));
  return gzip !== undefined && !/q=0(\.0*)?\s*$/i.test(gzip);
}
