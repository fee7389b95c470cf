import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { UnreachableError } from "../../src/core/base/errors.ts";
import { resolveRedis } from "../../src/features/servers/redis.ts";
import type { Service } from "../../src/features/servers/start-server.ts";
import { resolveTestPostgres } from "./test-postgres.ts";

/**
 * One Postgres, one Redis and one browser for a whole run, each started when the first test asks for it: a run of unit
 * tests starts none. Tests run in worker processes, so they ask over HTTP (see services.ts).
 */

declare module "vitest" {
  interface ProvidedContext {
    services: string;
    runPrefix: string;
  }
}

type StartOnce = (kind: "postgres") => Promise<Service>;

const RESOLVERS = {
  postgres: () => resolveTestPostgres(),
  redis: () => resolveRedis(),
  browser: startBrowser,
  pooler: startPooler,
};

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const runPrefix = `usage_etl_test_${randomBytes(4).toString("hex")}_`;
  const started = new Map<string, Promise<Service>>();

  const startOnce = (kind: keyof typeof RESOLVERS): Promise<Service> => {
    const service = started.get(kind) ?? RESOLVERS[kind](startOnce);
    started.set(kind, service);
    return service;
  };
  const door = createServer(async (request, response) => {
    const service = startOnce((request.url ?? "").slice(1) as keyof typeof RESOLVERS);
    await service.then(
      ({ url }) => response.end(url),
      (error) =>
        response
          .writeHead(error instanceof UnreachableError ? 503 : 500)
          .end(`${error.message} ${error.next ?? ""}`),
    );
  });
  await new Promise<void>((listening) => door.listen(0, "127.0.0.1", listening));
  project.provide("services", `http://127.0.0.1:${(door.address() as AddressInfo).port}`);
  project.provide("runPrefix", runPrefix);

  return async () => {
    door.closeAllConnections();
    door.close();
    const services = await Promise.allSettled(
      [...started].map(async ([kind, it]) => [kind, await it] as const),
    );
    for (const final of services) {
      if (final.status === "rejected") continue;
      const [kind, service] = final.value;
      // A server we started goes with everything in it. On a named server, only this run's databases may go.
      if (kind === "postgres" && service.origin === "named") await dropDatabases(service.url, runPrefix);
      await service.close();
    }
  };
}

/** Tests of the pages are skipped without a browser, and say so once here. */
async function startBrowser(): Promise<Service> {
  const { startChromium } = await import("./browser/chromium.ts");
  const server = await startChromium().catch((error: Error) => {
    process.stderr.write(`The tests in a browser are skipped. ${error.message}\n`);
    throw error;
  });
  return { url: server.wsEndpoint(), origin: "local", close: () => server.close() };
}

/** PgBouncer before the run's Postgres: `npm run test:pgbouncer`. */
async function startPooler(startOnce: StartOnce): Promise<Service> {
  const { startPgBouncer } = await import("./pgbouncer.ts");
  const { url } = await startOnce("postgres");
  const pooler = await startPgBouncer(url);
  return { url: pooler.through(url), origin: "local", close: pooler.close };
}

async function dropDatabases(url: string, prefix: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ datname: string }>(
      "SELECT datname FROM pg_database WHERE starts_with(datname, $1)",
      [prefix],
    );
    for (const { datname } of rows) {
      await client.query(`DROP DATABASE ${client.escapeIdentifier(datname)} WITH (FORCE)`);
    }
  } finally {
    await client.end();
  }
}
