import type { FastifyInstance } from "fastify";
import { enqueueJob } from "../../jobs/enqueue.ts";
import { lookAtRedis } from "../../jobs/look.ts";
import { systemClock } from "../clock.ts";
import { type Config, requireDatabaseUrl, requireSources } from "../config/config.ts";
import type { Logger } from "../log.ts";
import type { RedisServer } from "../redis-server.ts";
import { openStore, type Store } from "../store/db/database.ts";
import { within } from "./http/within.ts";
import type { ServiceQueues } from "./queues.ts";
import type { Replica } from "./replica.ts";
import type { WebServices } from "./web/routes.ts";

/** A page that takes longer than this is wrong. */
const STATEMENT_TIMEOUT_MS = 8_000;
/** Apart from the workers' pool, so that neither waits for the other. */
const CONNECTIONS = 4;

/** Adds the pages to a server. Loaded where they are served: a worker does without them. */
export function pagesOf(services: WebServices): (app: FastifyInstance) => Promise<void> {
  return async (app) => (await import("./web/web.ts")).addPages(app, services);
}

interface PagesInput {
  readonly config: Config;
  readonly store: Store;
  readonly log: Logger;
  readonly replica?: Replica | undefined;
  /** Undefined: the process works without Redis. */
  readonly redis?: { readonly server: RedisServer; readonly queues: ServiceQueues };
}

/** What the pages need of the service, and what closes it. */
export function pageServices(given: PagesInput): WebServices & { close(): Promise<void> } {
  const { config, store, redis, log, replica } = given;
  const reader = openStore({
    url: requireDatabaseUrl(config),
    connectMs: config.pool.connectMs,
    maxConnections: CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const slugs = requireSources(config).map(({ slug }) => slug);
  return {
    ...{ config, store, reader: reader.db, replica, clock: systemClock, log },
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
