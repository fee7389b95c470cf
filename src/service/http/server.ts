import type { AddressInfo } from "node:net";
import type { Queue } from "bullmq";
import Fastify from "fastify";
import type { Clock } from "../../clock.ts";
import type { Reader } from "../../store/report/overview.ts";
import { addBoard } from "./board.ts";
import { liveness, type ProcessState, readiness } from "./health.ts";
import type { Metrics } from "./metrics.ts";

interface DashboardOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly state: ProcessState;
  readonly reader: Reader;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly board?: { readonly token: string; readonly queues: readonly Queue[] };
}

/** Serves `/livez`, `/readyz` and `/metrics`, and bull-board where it has a token; returns its address and closer. */
export async function startDashboard(
  options: DashboardOptions,
): Promise<{ url: string; close(): Promise<void> }> {
  const { state, reader, metrics, clock } = options;
  const app = Fastify({ forceCloseConnections: true });
  if (options.board !== undefined) addBoard(app, options.board);
  app.get("/livez", async (_request, reply) => {
    const health = liveness(state, clock.now());
    return reply.code(health.ok ? 200 : 503).send(health);
  });
  app.get("/readyz", async (_request, reply) => {
    const health = await readiness(state, reader, clock.now);
    return reply.code(health.ok ? 200 : 503).send(health);
  });
  app.get("/metrics", async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()));
  await app.listen({ host: options.host, port: options.port });
  const { port } = app.server.address() as AddressInfo;
  return { url: `http://${options.host}:${port}`, close: () => app.close() };
}
