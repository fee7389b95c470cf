import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { type Config, Secret, type SourceConfig } from "../config.ts";
import { fewestRequests } from "../domain/slice.ts";
import { type RunCounts, type RunResult, runInline } from "../pipeline/inline.ts";
import { planSource, routineDemand } from "../pipeline/plan.ts";
import { type ReconcileResult, reconcile } from "../pipeline/reconcile.ts";
import type { OpenSource } from "../pipeline/source.ts";
import { resolvePostgres } from "../services/resolve.ts";
import { startStandin } from "../standin/server.ts";
import { storeNow } from "../store/fetches.ts";
import { migrate } from "../store/migrate.ts";
import { dailyTotals, type WorkspaceTotal } from "../store/overview.ts";
import { EXIT } from "./exit.ts";
import { table } from "./output.ts";
import { describeReconcile } from "./reconcile-command.ts";
import { exitOfRun } from "./run-report.ts";
import { createSession, inSession, type Session } from "./session.ts";

const DATA_DIR = fileURLToPath(new URL("../../.usage-etl/demo", import.meta.url));
/** The stand-in is ours alone: what the live platform's gateway would let through. */
const RATE_LIMIT = 1000;
const NEXT_ROUND_MS = 30_000;

export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .description("the whole of it on this machine: stand-in, database, extraction, reconciliation")
    .option("--once", "end after the first round instead of running on until Ctrl-C")
    .option("--data-dir <folder>", "where its database lives from run to run", DATA_DIR)
    .action(inSession(demo));
}

async function demo(given: Session, options: { once?: boolean; dataDir: string }): Promise<number> {
  const { output, signal, onClose } = given;
  const postgres = await resolvePostgres({ dataDir: options.dataDir, say: output.note });
  onClose(() => postgres.close());
  const standin = await startStandin();
  onClose(() => standin.close());
  output.note(`Postgres: ${postgres.origin}. Platform: the stand-in on ${standin.url}.`);

  const session = createSession({ ...given, config: demoConfig(given.config, postgres.url, standin) });
  await migrate(await session.store());
  return session.eachSource(async (source) => {
    const exit = await round(session, source, true);
    if (options.once === true || exit !== EXIT.done) return exit;
    output.note(
      `\nRunning on: a round every ${NEXT_ROUND_MS / 1000} s, Ctrl-C ends it. Look at the views with\n  psql '${postgres.url}' -c 'SELECT * FROM reporting.fct_usage_workspace_daily ORDER BY 2 DESC LIMIT 10'`,
    );
    for (;;) {
      try {
        await source.clock.wait(NEXT_ROUND_MS, signal);
      } catch {
        return EXIT.done;
      }
      await round(session, source, false);
    }
  });
}

function demoConfig(config: Config, databaseUrl: string, standin: { url: string; apiKey: string }): Config {
  const source: SourceConfig = {
    slug: "demo",
    baseUrl: standin.url,
    apiKey: new Secret(standin.apiKey),
    organizationId: undefined,
    workspaceIds: [],
    dataStart: "2026-01-05",
    rateLimit: RATE_LIMIT,
  };
  return { ...config, databaseUrl: new Secret(databaseUrl), sources: [source] };
}

/** One round as the service will do it, then the export held against all that is settled. */
async function round(session: Session, source: OpenSource, isFirst: boolean): Promise<number> {
  const { output } = session;
  const startedAt = source.clock.now();
  const now = await storeNow(source.store.db);
  const slices = await planSource(source, { wanted: routineDemand(source, now), reprocess: "missing" });
  const progress = output.progress("extract");
  const run = await runInline(source, slices, progress.update).finally(progress.stop);
  if (!isFirst) {
    output.note(
      `${new Date(now).toISOString()}: ${slices.length} windows fetched again, ${changed(run)} records changed`,
    );
    return exitOfRun(run);
  }
  const bar = output.progress("reconcile");
  const range = { start: source.dataStart, end: now };
  const proof = await reconcile(source, { range, stride: "day", repair: false }, bar.update).finally(
    bar.stop,
  );
  const totals = await dailyTotals(source.store.db, source.config.slug);
  const extracted = run.counts.map((counts) => ({
    ...counts,
    fewest: fewestRequests(
      slices.filter(({ groupBy, window }) => groupBy === counts.groupBy && window.stride === counts.stride),
    ),
  }));
  output.data({ extracted, reconciliation: proof, totals }, () =>
    describeRound({ extracted, proof, totals, seconds: (source.clock.now() - startedAt) / 1000 }),
  );
  if (proof.differences.length > 0) return EXIT.mismatch;
  return exitOfRun(run);
}

function changed(run: RunResult): number {
  return run.counts.reduce((sum, { rows }) => sum + rows.inserted + rows.updated + rows.retired, 0);
}

function describeRound(shown: {
  extracted: readonly (RunCounts & { fewest: number })[];
  proof: ReconcileResult;
  totals: readonly WorkspaceTotal[];
  seconds: number;
}): string {
  const { extracted, proof, totals, seconds } = shown;
  return [
    table(
      ["group_by", "stride", "windows", "requests", "fewest possible", "records stored", "traces"],
      extracted.map(({ groupBy, stride, planned, requests, fewest, rows }) => {
        const stored = rows.inserted + rows.updated + rows.unchanged;
        return [groupBy, stride, planned, requests, fewest, stored, rows.traces];
      }),
    ),
    "",
    describeReconcile(proof),
    "",
    table(
      ["workspace", "days loaded", "traces", "last 7 days"],
      totals.map((t) => [t.workspace, t.days, t.traces, t.lastWeek]),
    ),
    "",
    `${seconds.toFixed(1)} s`,
  ].join("\n");
}
