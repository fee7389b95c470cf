import { EXIT } from "../../src/terminal/exit.ts";
import type { Served } from "./backfill-server.ts";
import { type Company, daysOf, tracesOf } from "./company.ts";
import { backendsOf, openDatabases, startChild, storedTraces } from "./harness.ts";
import { runCommand } from "./processes.ts";

/** What `usage-etl backfill --inline` took, and Postgres meanwhile. */
export interface Backfilled {
  readonly ms: number;
  readonly cpuMs: number;
  readonly postgresMs: number;
  readonly peakMb: number;
}

/** Of one program: into an empty database, and the same again. */
export interface Round {
  readonly empty: Backfilled;
  readonly unchanged: Backfilled;
}

/**
 * Runs the command of several checkouts in turn, each in databases that its own `migrate` made. `clis` are their src/cli.js.
 * Each round has the results in the order of `clis`.
 */
export async function* backfillRounds(
  company: Company,
  clis: readonly string[],
  nodeOptions: readonly string[] = [],
): AsyncGenerator<readonly Round[], void, undefined> {
  const databases = await openDatabases();
  const served: Served = company;
  const platform = await startChild<{ url: string }>("./backfill-server.ts", served);
  const environmentOf = (url: string) => ({
    DATABASE_URL: url,
    USAGE_BASE_URL: platform.response.url,
    USAGE_API_KEY: "bench-key",
    USAGE_METERS: "traces",
    USAGE_RATE_LIMIT: "1000000",
  });
  const backfill = async (cli: string, url: string): Promise<Backfilled> => {
    await databases.settle(url);
    const { from, to } = daysOf(company);
    const before = await backendsOf(url);
    const args = ["backfill", "--inline", "--reprocess", "all", "--from", from, "--to", to];
    const used = await runCommand(environmentOf(url), args, { cli, nodeOptions });
    const postgresMs = (await backendsOf(url)) - before;
    const stored = await storedTraces(url);
    if (used.exit !== EXIT.done || stored.some((traces) => traces !== tracesOf(company)))
      throw new Error(`${cli}: exit ${used.exit}, stored ${stored.join(", ")}: ${used.out}`);
    return { ...used, postgresMs };
  };
  try {
    for (let round = 0; ; round++) {
      const results: Round[] = [];
      for (let i = 0; i < clis.length; i++) {
        // Every other round in the other order.
        const at = round % 2 === 0 ? i : clis.length - 1 - i;
        const cli = clis[at] as string;
        const url = await databases.createEmpty();
        await runCommand(environmentOf(url), ["migrate"], { cli });
        results[at] = { empty: await backfill(cli, url), unchanged: await backfill(cli, url) };
        await databases.drop(url);
      }
      yield results;
    }
  } finally {
    await platform.close();
    await databases.close();
  }
}
