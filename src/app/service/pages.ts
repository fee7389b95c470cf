import type { FastifyInstance } from "fastify";
import { enqueueJob } from "../../../jobs/enqueue.ts";
import { lookAtRedis } from "../../../jobs/redis-view.ts";
import { systemClock } from "../../core/base/clock.ts";
import { type Config, requireDatabaseUrl, requireSources } from "../../core/base/config.ts";
import { UnreachableError } from "../../core/base/errors.ts";
import type { Logger } from "../../core/base/log.ts";
import type { RedisServer } from "../../core/base/redis-server.ts";
import { openStore, type Store } from "../../core/store/db/database.ts";
import { processState, within } from "../../web/health.ts";
import { createMetrics } from "../../web/metrics.ts";
import { PAGES_POOL, type WebServices } from "../../web/routes.ts";
import { startHttpServer } from "../../web/server.ts";
import type { ServiceQueues } from "./queues.ts";
import { featureEndpoints } from "./registered.ts";

export function pagesOf(services: WebServices): (app: FastifyInstance) => Promise<void> {
  return async (app) => {
    const { addPages } = await import("./web.ts");
    await addPages(app, services);
    for (const add of await featureEndpoints()) await add(app, services);
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
      // This saves some seconds. If it fails, the schedule enqueues the tasks.
      if (redis === undefined) return;
      await within(redis.queues.of(slug).control.add(enqueueJob.name, {}, enqueueJob.options)).catch(
        () => {},
      );
    },
    close: () => reader.close(),
  };
}

/** Serves pages without Redis. `/readyz` always fails, because no worker takes jobs. */
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
        next: "There is nothing to do.",
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
