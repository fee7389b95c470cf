import type { AddressInfo } from "node:net";
import type { Queue } from "bullmq";
import Fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import type { Clock } from "../core/base/clock.ts";
import { UsageError } from "../core/base/errors.ts";
import { isTooDeep } from "../core/base/json.ts";
import { networksOf } from "../core/base/networks.ts";
import { loadOptional, PackageMissingError } from "../core/base/optional.ts";
import type { Database } from "../core/store/db/database.ts";
import { boundedServers, CONNECTION_LIMITS, type ConnectionLimits } from "./connections.ts";
import { type Health, liveness, type ProcessState, readiness } from "./health.ts";
import type { Metrics } from "./metrics.ts";

interface HttpServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly state: ProcessState;
  readonly reader: Database;
  readonly redisTime: () => Promise<number>;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly trustedProxies: readonly string[];
  readonly addPages?: (app: FastifyInstance) => Promise<void>;
  /** Undefined: bull-board is not served. */
  readonly board: { readonly token: string; readonly queues: readonly Queue[] } | undefined;
}

/** Serves `/livez`, `/readyz`, `/metrics` and, with a token, bull-board. Error: `http_unavailable`. */
export async function startHttpServer(
  options: HttpServerOptions,
): Promise<{ url: string; close(): Promise<void> }> {
  const { host, state, reader, redisTime, metrics, clock, trustedProxies, board } = options;
  const app = newApp({ trustedProxies, checksSchemas: board !== undefined });
  if (board !== undefined) {
    // Loaded only if it is served, because it takes a tenth of the start and 10 MB.
    const loaded = await loadOptional(() => import("./board.ts")).catch((error: unknown) => {
      if (error instanceof PackageMissingError) return error;
      throw error;
    });
    if (loaded instanceof PackageMissingError) addMissingBoard(app, loaded);
    else loaded.addBoard(app, { ...board, clock });
  }
  const send = (reply: FastifyReply, health: Health) => reply.code(health.ok ? 200 : 503).send(health);
  app.get("/livez", async (_request, reply) => send(reply, liveness(state, clock.now())));
  app.get("/readyz", async (_request, reply) =>
    send(reply, await readiness({ state, reader, redisTime, now: clock.now })),
  );
  app.get("/metrics", async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()));
  await options.addPages?.(app);
  try {
    await app.listen({ host, port: options.port });
  } catch (cause) {
    await app.close();
    const next = "Set HTTP_HOST and HTTP_PORT to an address of this host that nobody else uses.";
    const address = `${host}:${options.port}`;
    throw unavailable({ what: "Health and metrics", address, next }, cause as NodeJS.ErrnoException);
  }
  const { port } = app.server.address() as AddressInfo;
  return { url: `http://${host}:${port}`, close: () => app.close() };
}

/** If the package is missing, the page of queues names it, and the rest of the service works. */
function addMissingBoard(app: FastifyInstance, error: PackageMissingError): void {
  for (const path of ["/queues", "/queues/*"])
    app.get(path, async (_request, reply) => sendPackageMissing(reply, error));
}

export function sendPackageMissing(reply: FastifyReply, { code, message, next }: PackageMissingError) {
  return reply.code(501).send({ error: code, next: `${message} ${next}` });
}

const LONGEST_PARAMETER = 200;

/** Our routes have no JSON schema. Without this, Fastify would load 130 files of schema compilers. */
const NO_SCHEMAS = { buildValidator: noSchemas, buildSerializer: noSchemas };

function noSchemas(): never {
  throw new Error("A route has a schema, but this server was made without compilers for schemas.");
}

interface AppOptions {
  readonly trustedProxies: readonly string[];
  readonly checksSchemas?: boolean;
  readonly limits?: ConnectionLimits;
}

/** Most bytes of a body. Small, because clients without a token can send one. */
export const LARGEST_BODY = 64 * 1024;

export function newApp({
  trustedProxies,
  checksSchemas = false,
  limits = CONNECTION_LIMITS,
}: AppOptions): FastifyInstance {
  const isProxy = networksOf(trustedProxies);
  const app = Fastify({
    serverFactory: boundedServers(limits, isProxy),
    bodyLimit: LARGEST_BODY,
    // The address of a request is the last one in X-Forwarded-For that is not a trusted proxy's.
    trustProxy: isProxy,
    ...(checksSchemas ? {} : { schemaController: { compilersFactory: NO_SCHEMAS } }),
    forceCloseConnections: true,
    routerOptions: { maxParamLength: LONGEST_PARAMETER },
    // A path that cannot be decoded becomes an unknown path. Otherwise the router would respond with its own error.
    rewriteUrl: ({ url = "/" }) => {
      const [path = ""] = url.split("?");
      return isDecodable(path) ? url : "/%25";
    },
  });
  const parse = app.getDefaultJsonParser("error", "error");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body: string, done) => {
    if (isTooDeep(body)) done(Object.assign(new Error("The JSON is nested too deep."), { statusCode: 400 }));
    else parse(request, body, done);
  });
  return app;
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "is in use",
  EACCES: "is not allowed for this user",
  EADDRNOTAVAIL: "is not an address of this host",
  ENOTFOUND: "does not resolve to an address",
  EAI_AGAIN: "does not resolve to an address",
};

export function unavailable(
  { what, address, next }: { what: string; address: string; next: string },
  cause: NodeJS.ErrnoException,
): UsageError {
  const reason = REASONS[cause.code ?? ""] ?? `cannot be used (${cause.message})`;
  return new UsageError({
    code: "http_unavailable",
    message: `${what} cannot be served: ${address} ${reason}.`,
    next,
    cause,
  });
}
