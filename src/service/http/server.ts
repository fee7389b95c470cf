import type { AddressInfo } from "node:net";
import type { Queue } from "bullmq";
import Fastify, { type FastifyReply } from "fastify";
import type { Clock } from "../../clock.ts";
import type { Database } from "../../store/db/database.ts";
import { addBoard } from "./board.ts";
import { type Health, liveness, type ProcessState, readiness } from "./health.ts";
import type { Metrics } from "./metrics.ts";

interface HttpServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly state: ProcessState;
  readonly reader: Database;
  /** Resolves to Redis's clock, epoch milliseconds. */
  readonly redisTime: () => Promise<number>;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Undefined: no bull-board. */
  readonly board: { readonly token: string; readonly queues: readonly Queue[] } | undefined;
}

/** Serves `/livez`, `/readyz`, `/metrics` and, with a token, bull-board. Returns its address and closer. */
export async function startHttpServer(
  options: HttpServerOptions,
): Promise<{ url: string; close(): Promise<void> }> {
  const { host, state, reader, redisTime, metrics, clock, board } = options;
  const app = Fastify({ forceCloseConnections: true });
  if (board !== undefined) addBoard(app, board);
  const send = (reply: FastifyReply, health: Health) => reply.code(health.ok ? 200 : 503).send(health);
  app.get("/livez", async (_request, reply) => send(reply, liveness(state, clock.now())));
  app.get("/readyz", async (_request, reply) =>
    send(reply, await readiness({ state, reader, redisTime, now: clock.now })),
  );
  app.get("/metrics", async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()));
  await app.listen({ host, port: options.port });
  const { port } = app.server.address() as AddressInfo;
  return { url: `http://${host}:${port}`, close: () => app.close() };
}
