import { systemClock } from "../clock.ts";
import type { Config } from "../config/config.ts";
import { UnreachableError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Store } from "../store/db/database.ts";
import type { ProcessState } from "./http/health.ts";
import { createMetrics } from "./http/metrics.ts";
import { startHttpServer } from "./http/server.ts";
import { pageServices, pagesOf } from "./pages.ts";
import type { Service } from "./serve.ts";

/** Health, metrics and pages of a process that works without Redis. It is never ready: nobody takes jobs. */
export async function servePages(given: { config: Config; store: Store; log: Logger }): Promise<Service> {
  const { config, store } = given;
  const pages = pageServices(given);
  const state: ProcessState = {
    startedAt: systemClock.now(),
    takesJobs: false,
    lastJobAt: undefined,
    fetching: new Map(),
    storeFaults: new Map(),
    draining: false,
  };
  const http = await startHttpServer({
    ...{ host: config.httpHost, port: config.httpPort, state, reader: store.db, clock: systemClock },
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
