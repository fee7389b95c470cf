import type { FastifyInstance } from "fastify";
import { enqueueJob } from "../../jobs/enqueue.ts";
import { lookAtRedis } from "../../jobs/redis-view.ts";
import { systemClock } from "../clock.ts";
import { type Config, requireDatabaseUrl, requireSources } from "../config/config.ts";
import { UnreachableError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { RedisServer } from "../redis-server.ts";
import { openStore, type Store } from "../store/db/database.ts";
import { processState, within } from "./http/health.ts";
import { createMetrics } from "./http/metrics.ts";
import { startHttpServer } from "./http/server.ts";
import type { ServiceQueues } from "./queues.ts";
import { PAGES_POOL, type WebServices } from "./web/routes.ts";

/** Adds the pages and `/mcp` to a server. Loaded where they are served: a worker does without. */
export function pagesOf(services: WebServices): (app: FastifyInstance) => Promise<void> {
  return async (app) => {
    const [{ addPages }, { addMcp }] = await Promise.all([import("./web/web.ts"), import("./mcp/http.ts")]);
    await addPages(app, services);
    await addMcp(app, services);
  };
}

interface PagesInput {
  readonly config: Config;
  readonly store: Store;
  readonly log: Logger;
  /** Undefined: the process works without Redis. */
  readonly redis?: { readonly server: RedisServer; readonly queues: ServiceQueues };
}

export function pageServices(given: PagesInput): WebServices & { close(): Promise<void> } {
  const { config, store, redis, log } = given;
  const reader = openStore({ url: requireDatabaseUrl(config), ...PAGES_POOL });
  const slugs = requireSources(config).map(({ slug }) => slug);
  return {
    config,
    store,
    reader: reader.db,
    clock: systemClock,
    log,
    lookAtQueues: redis && (() => lookAtRedis(redis.server, slugs)),
    enqueue: async (slug) => {
      // Saves some seconds: the schedule enqueues the tasks anyway.
      if (redis === undefined) return;
      await within(redis.queues.of(slug).control.add(enqueueJob.name, {}, enqueueJob.options)).catch(
        () => {},
      );
    },
    close: () => reader.close(),
  };
}

/** Health, metrics and pages of a process that works without Redis. It is never ready: nobody takes jobs. */
export async function servePages(given: {
  config: Config;
  store: Store;
  log: Logger;
}): Promise<{ url: string; close(): Promise<void> }> {
  const { config, store } = given;
  const pages = pageServices(given);
  const state = processState(systemClock.now());
  const http = await startHttpServer({
    host: config.httpHost,
    port: config.httpPort,
    state,
    reader: store.db,
    clock: systemClock,
    trustedProxies: config.webTrustedProxies,
    redisTime: async () => {
      throw new UnreachableError({
        code: "redis_missing",
        message: "This process works without Redis.",
        next: "Nothing is to be done.",
      });
    },
    metrics: createMetrics(
      store.db,
      async () => [],
      async () => [],
    ),
    addPages: pagesOf(pages),
    board: undefined,
  }).catch(async (error) => {
    await pages.close();
    throw error;
  });
  return {
    url: http.url,
    close: async () => {
      await http.close();
      await pages.close();
    },
  };
}
