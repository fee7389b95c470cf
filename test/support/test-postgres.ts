import { resolvePostgres } from "../../src/features/servers/postgres.ts";
import type { Service } from "../../src/features/servers/start-server.ts";

/**
 * The odd time zone shows that nothing depends on it. Autovacuum would start a process for each of the tests' hundreds of
 * databases. With the default iterations, hashing the password would take 8 ms per connection.
 */
export const TEST_SETTINGS: readonly string[] = [
  "timezone=America/St_Johns",
  "autovacuum_naptime=1h",
  "scram_iterations=1",
];

/** The Postgres that `DATABASE_URL` names, else one that is started here for tests and benchmarks. */
export function resolveTestPostgres(env: NodeJS.ProcessEnv = process.env): Promise<Service> {
  return resolvePostgres({ env, settings: TEST_SETTINGS });
}
