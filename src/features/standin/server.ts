import type { AddressInfo } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import { Deployments, Templates } from "./engine/control-plane.ts";
import { runsOf } from "./engine/meter.ts";
import { noRoute } from "./engine/refusal.ts";
import { DEFAULT_SETTINGS, type Settings } from "./engine/settings.ts";
import { World, type WorldOptions } from "./engine/world.ts";
import { open } from "./http/route.ts";
import { agentToAgent } from "./routes/a2a.ts";
import { assistants } from "./routes/assistants.ts";
import { auditLog } from "./routes/audit-log.ts";
import { billing } from "./routes/billing.ts";
import { controlPlane } from "./routes/control-plane.ts";
import { evaluators } from "./routes/evaluators.ts";
import { invoices } from "./routes/invoices.ts";
import { names } from "./routes/names.ts";
import { organisationRoutes } from "./routes/organisation.ts";
import { runs } from "./routes/runs.ts";
import { sandboxes } from "./routes/sandboxes.ts";
import { statement } from "./routes/statement.ts";
import { tags } from "./routes/tags.ts";
import { threads } from "./routes/threads.ts";

/**
 * The stand-in imports no code of the program: a shared type would hide a wrong assumption. Comments name the source of each
 * rule: a section of docs/platform.md, "documented" (by the platform or the protocol), "seen" (in
 * client code or on servers), "measured" (on the real server), "our guess", or "our own". Instants are epoch ms. Unless a comment or a setting says otherwise, unknown parameters and fields
 * are refused (our guess).
 */
export interface StandinOptions
  extends Partial<Settings>,
    Partial<Omit<WorldOptions, "dataStart" | "deploymentStart" | "settings">> {
  /** ISO date of the first usage. Default 2026-01-05 (docs/platform.md, Buckets). */
  dataStart?: string;
  /** ISO date of the first usage of deployments and sandboxes. Default 35 days before `dataStart` (our guess). */
  deploymentStart?: string;
  host?: string;
  /** Default 0: any free port. */
  port?: number;
}

const KEPT_BEFORE = 35 * 86_400_000;

export type Standin = World & {
  readonly url: string;
  close(): Promise<void>;
};

export async function startStandin(options: StandinOptions = {}): Promise<Standin> {
  const {
    seed = 1,
    scale = 1,
    dataStart = "2026-01-05",
    deploymentStart,
    organizationScoped = false,
    apiKey = "standin-key",
    now = Date.now,
    faults = {},
    deviations = [],
    host = "127.0.0.1",
    port = 0,
    ...settings
  } = options;
  const world = new World({
    seed,
    scale,
    apiKey,
    organizationScoped,
    now,
    faults,
    deviations,
    dataStart: dayOf(dataStart),
    deploymentStart:
      deploymentStart === undefined
        ? dayOf(dataStart) - KEPT_BEFORE
        : dayOf(deploymentStart, "deploymentStart"),
    settings: { ...DEFAULT_SETTINGS, ...settings },
  });
  const app = build(world);
  await app.listen({ host, port });
  const bound = app.server.address() as AddressInfo;
  const address = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
  return Object.assign(world, { url: `http://${address}:${bound.port}`, close: () => app.close() });
}

function build(world: World): FastifyInstance {
  const app = Fastify({
    exposeHeadRoutes: false,
    // A hanging request must not keep the server from ending.
    forceCloseConnections: true,
    // The route itself refuses a body that is too large.
    bodyLimit: 64_000_000,
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  const now = () => world.now();
  const engine = runsOf(world);
  app.addHook("onClose", async () => engine.close());
  open(app, world, [
    ...billing(world),
    ...sandboxes(world),
    ...evaluators(world),
    ...tags(world),
    ...names(world),
    ...auditLog(world),
    ...statement(world),
    ...organisationRoutes(world),
    ...controlPlane(world, new Templates(now), new Deployments(now)),
    ...threads(engine),
    ...runs(engine, () => world.settings.a2a === "live"),
    ...assistants(world, engine),
    ...agentToAgent(world, engine),
    ...invoices(world),
  ]);
  app.setNotFoundHandler((request, reply) => {
    const { status, body } = noRoute(request.method, request.url);
    world.remember({ method: request.method, url: request.url, status, fault: null });
    return reply.code(status).send(body);
  });
  return app;
}

/** Usage begins at the start of a day. */
function dayOf(date: string, name = "dataStart"): number {
  const instant = /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(date) : Number.NaN;
  if (!Number.isNaN(instant)) return instant;
  throw new RangeError(`${name} ${JSON.stringify(date)} is not an ISO date such as 2026-01-05.`);
}
