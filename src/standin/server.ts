import type { AddressInfo } from "node:net";
import Fastify, { type FastifyInstance } from "fastify";
import type { Access } from "./engine/access.ts";
import type { Ledger } from "./engine/ledger.ts";
import { runsOf } from "./engine/meter.ts";
import type { Organisation } from "./engine/organisation.ts";
import { ControlPlane } from "./engine/plane.ts";
import type { FaultOptions, Faults, Framing } from "./faults.ts";
import { noRoute } from "./http/refusal.ts";
import { open, openUnguarded } from "./http/route.ts";
import { agentToAgent } from "./routes/a2a.ts";
import { admin } from "./routes/admin.ts";
import { billing } from "./routes/billing.ts";
import { controlPlane } from "./routes/control-plane.ts";
import { listing } from "./routes/listing.ts";
import { threads } from "./routes/threads.ts";
import { type Settings, World } from "./world.ts";

/**
 * The local platform. It imports nothing of ours on purpose: a shared type would let one wrong assumption pass on
 * both sides. Each rule says in a comment whether it is the specification's, documented elsewhere, or our guess.
 */
export interface StandinOptions {
  /** Seed of the organisation and its history. Default 1. */
  seed?: number;
  /** Which of the two contracts in the field (platform-facts.md) is spoken. Default tiered. */
  contract?: "tiered" | "day-granular";
  /** Where 7-, 30- and 365-day buckets start. Default window. */
  align?: "window" | "epoch";
  /** ISO date, no usage before. Default 2026-01-05 (specification, Limits). */
  dataStart?: string;
  /** Epoch ms. Default Date.now. */
  now?: () => number;
  /** False: /workspaces, /orgs/current and /info answer 404. Default true. */
  listing?: boolean;
  /** 422 on an end_time in the future. Default false. */
  refuseFuture?: boolean;
  /** Default `standin-key`. */
  apiKey?: string;
  faults?: FaultOptions;
  /** Buckets without usage are left out (true, the default) or sent as 0. */
  omitZero?: boolean;
  /** gzip where the client accepts it. Default true. */
  compress?: boolean;
  /** How the end of a body is marked. Default length; the CSV export streams, in chunks, all the same. */
  framing?: Framing;
  /** Default crlf (RFC 4180). */
  csvNewline?: "crlf" | "lf";
  /** Of the deployment's configuration file: whether `/a2a` and the agent cards are gone. Default false. */
  http?: { disable_a2a?: boolean };
  /** Multiplies projects, users and keys. Default 1. */
  scale?: number;
  host?: string;
  /** 0, the default: any free port. */
  port?: number;
  /** Request log on stderr. Default false. */
  logger?: boolean;
}

/** A running stand-in; the members beside the first three reach into the engine of the same process, for tests. */
export interface Standin {
  readonly url: string;
  readonly apiKey: string;
  /** Drops open connections, hanging ones too. */
  close(): Promise<void>;
  readonly organisation: Organisation;
  readonly ledger: Ledger;
  readonly access: Access;
  readonly faults: Faults;
  readonly settings: Settings;
  readonly discrepancies: World["discrepancies"];
  readonly requests: World["requests"];
  readonly setClock: World["setClock"];
  readonly reset: World["reset"];
}

export async function startStandin(options: StandinOptions = {}): Promise<Standin> {
  const { host = "127.0.0.1", port = 0 } = options;
  const world = new World({
    seed: options.seed ?? 1,
    scale: options.scale ?? 1,
    dataStart: dayOf(options.dataStart ?? "2026-01-05"),
    apiKey: options.apiKey ?? "standin-key",
    now: options.now ?? Date.now,
    faults: options.faults ?? {},
    settings: {
      contract: options.contract ?? "tiered",
      align: options.align ?? "window",
      listing: options.listing ?? true,
      refuseFuture: options.refuseFuture ?? false,
      omitZero: options.omitZero ?? true,
      compress: options.compress ?? true,
      framing: options.framing ?? "length",
      csvNewline: options.csvNewline ?? "crlf",
      http: { disable_a2a: options.http?.disable_a2a ?? false },
    },
  });
  const app = build(world, options.logger ?? false);
  await app.listen({ host, port });
  const bound = app.server.address() as AddressInfo;
  return {
    url: `http://${bound.family === "IPv6" ? `[${bound.address}]` : bound.address}:${bound.port}`,
    close: () => app.close(),
    // Getters: a reset puts new ones in their place.
    get apiKey() {
      return world.access.apiKey;
    },
    get organisation() {
      return world.organisation;
    },
    get ledger() {
      return world.ledger;
    },
    get access() {
      return world.access;
    },
    get faults() {
      return world.faults;
    },
    get requests() {
      return world.requests;
    },
    settings: world.settings,
    discrepancies: world.discrepancies,
    setClock: (to) => world.setClock(to),
    reset: (seed) => world.reset(seed),
  };
}

function build(world: World, logger: boolean): FastifyInstance {
  const app = Fastify({
    logger: logger ? { stream: process.stderr } : false,
    exposeHeadRoutes: false,
    // A hanging request must not keep the server, or the test that started it, from ending.
    forceCloseConnections: true,
    // Far above what any route takes, so that a body that is too large is read and refused in the route's own shape.
    bodyLimit: 64_000_000,
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.addHook("onClose", async () => world.close());
  open(app, world, billing(world));
  open(app, world, listing(world));
  const plane = world.keep(() => new ControlPlane(() => world.now()));
  open(app, world, controlPlane(plane));
  const runs = world.keep(() => runsOf(world));
  open(app, world, threads(runs));
  open(app, world, agentToAgent(world, runs));
  openUnguarded(app, admin(world, plane));
  app.setNotFoundHandler((request, reply) => {
    const { status, body } = noRoute(request.method, request.url);
    world.remember({ method: request.method, url: request.url, status, fault: null });
    return reply.code(status).send(body);
  });
  return app;
}

/** Midnight UTC of a date: usage never begins within a day. */
function dayOf(date: string): number {
  const instant = /^\d{4}-\d{2}-\d{2}$/.test(date) ? Date.parse(date) : Number.NaN;
  if (Number.isNaN(instant))
    throw new RangeError(`dataStart ${JSON.stringify(date)}: an ISO date like 2026-01-05`);
  return instant;
}
