import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { fetchQueueOf, openQueue, producerConnection } from "../../../jobs/queues.ts";
import { type Config, Secret, type SourceConfig } from "../../config/config.ts";
import { fewestRequests, type UsageRequest } from "../../domain/planning/request.ts";
import { UnreachableError } from "../../errors.ts";
import { createLogger } from "../../log.ts";
import { runInline } from "../../pipeline/extract/run-inline.ts";
import { abandonProbe, type ProbeResult, probeMeter } from "../../pipeline/probe/probe.ts";
import { type ReconcileResult, reconcile } from "../../pipeline/reconcile/reconcile.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { enqueueSlices, requeueLost } from "../../pipeline/sync/enqueue.ts";
import { planSource, routineDemand } from "../../pipeline/sync/plan.ts";
import { planSync } from "../../pipeline/sync/sync.ts";
import { deploymentClientsOf } from "../../platform/clients.ts";
import { serve } from "../../service/serve.ts";
import { resolvePostgres, resolveRedis } from "../../services/resolve.ts";
import { startStandin } from "../../standin/server.ts";
import { migrate } from "../../store/db/migrate.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  dailyTotals,
  type FetchTotals,
  fetchTotals,
  newestFetch,
  type WorkspaceTotal,
} from "../../store/report/load-totals.ts";
import { dueSlices } from "../../store/work/slices.ts";
import { type Output, table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import { createSession, inSession, type Session } from "../session/session.ts";
import { describeProbe, exitOfProbe } from "./probe.ts";
import { describeReconcile } from "./reconcile.ts";

const DATA_DIR = fileURLToPath(new URL("../../../.usage-etl/demo", import.meta.url));
/** The stand-in is ours alone: what the live platform's gateway would let through. */
const RATE_LIMIT = 1000;
const NEXT_ROUND_MS = 30_000;
const LOOK_EVERY_MS = 100;
const PROBE_WITHIN_MS = 60_000;

interface DemoOptions {
  readonly once?: boolean;
  readonly inline?: boolean;
  readonly dataDir: string;
}

export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .description("the whole of it on this machine: stand-in, database, queue, extraction, reconciliation")
    .option("--once", "end after the first round instead of running on until Ctrl-C")
    .option("--inline", "without Redis: the same work in this process")
    .option("--data-dir <folder>", "where its database lives from run to run", DATA_DIR)
    .action(inSession(demo));
}

async function demo(given: Session, options: DemoOptions): Promise<number> {
  const { output, signal, onClose } = given;
  const { dataDir } = options;
  const postgres = await resolvePostgres({ dataDir, say: output.note });
  onClose(() => postgres.close());
  const redisUrl = options.inline === true ? undefined : await findRedis(given);
  const standin = await startStandin();
  onClose(() => standin.close());
  output.note(
    `Postgres: ${postgres.origin}. Queue: ${redisUrl === undefined ? "none, inline" : "BullMQ"}. Platform: the stand-in on ${standin.url}.`,
  );

  const config = demoConfig(given.config, postgres.url, standin);
  const session = createSession({ ...given, config });
  const log = createLogger(config.logLevel);
  const store = await session.store();
  await migrate(store);
  return session.eachSource(async (source) => {
    let work = (slices: readonly UsageRequest[]) => inline(source, slices, output);
    if (redisUrl !== undefined) {
      // Rounds by the clock come after the first: they would fetch again what it counts.
      const service = await serve({ config, store, redisUrl, role: "worker", log });
      onClose(() => service.close());
      output.note(`Health and metrics: ${service.url}/readyz, ${service.url}/metrics`);
      work = () => throughQueue(source, redisUrl, session);
    }
    const exit = await firstRound(source, output, work);
    if (options.once === true || exit !== EXIT.done) return exit;
    output.note(
      `\nRunning on: a round every ${NEXT_ROUND_MS / 1000} s, Ctrl-C ends it. Look at the views with\n  psql '${postgres.url}' -c 'SELECT * FROM reporting.fct_usage_workspace_daily ORDER BY 2 DESC LIMIT 10'`,
    );
    if (redisUrl !== undefined) {
      const scheduler = await serve({ config, store, redisUrl, role: "scheduler", log });
      onClose(() => scheduler.close());
    }
    return runOn(source, { output, signal, isInline: redisUrl === undefined });
  });
}

/** A Redis where one can be had, empty: Postgres knows all that matters. A notice where there is none. */
async function findRedis({ output, onClose }: Session): Promise<string | undefined> {
  try {
    const redis = await resolveRedis({ say: output.note });
    onClose(() => redis.close());
    return redis.url;
  } catch (error) {
    if (!(error instanceof UnreachableError)) throw error;
    output.note(`${error.message} The demo goes on inline.`);
    return undefined;
  }
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
    deploymentUrl: standin.url,
    // The stand-in's own name for it.
    probeProject: "agent-server",
  };
  return {
    ...config,
    databaseUrl: new Secret(databaseUrl),
    sources: [source],
    syncEveryMs: NEXT_ROUND_MS,
    // Any free port: the demo may run beside the service.
    httpPort: 0,
  };
}

async function inline(source: OpenSource, slices: readonly UsageRequest[], output: Output): Promise<void> {
  const progress = output.progress("extract");
  await runInline(source, slices, progress.update).finally(progress.stop);
}

/** Enters the round as the scheduler would, and waits until the workers have done all of it. */
async function throughQueue(source: OpenSource, redisUrl: string, session: Session): Promise<void> {
  const { output, signal } = session;
  const { store, sourceId, config, clock } = source;
  const connection = producerConnection(redisUrl);
  const queue = openQueue("fetch", config.slug, connection);
  const progress = output.progress("extract");
  try {
    const fetchQueue = fetchQueueOf(queue);
    // What a killed run left in the queue of a Redis that is gone.
    await requeueLost(store, { sourceId, queue: fetchQueue });
    await planSync(source);
    await enqueueSlices(store, { sourceId, queue: fetchQueue });
    let total = 0;
    for (;;) {
      const due = (await dueSlices(store.db)).find((one) => one.source === config.slug);
      const left = (due?.waiting ?? 0) + (due?.queued ?? 0);
      total = Math.max(total, left);
      progress.update({ done: total - left, total });
      if (left === 0) return;
      await clock.wait(LOOK_EVERY_MS, signal);
    }
  } finally {
    progress.stop();
    await queue.close();
    connection.disconnect();
  }
}

/** One round, then the export held against all that is settled. */
async function firstRound(
  source: OpenSource,
  output: Output,
  work: (slices: readonly UsageRequest[]) => Promise<void>,
): Promise<number> {
  const { store, config, clock } = source;
  const startedAt = clock.now();
  const before = await newestFetch(store.db);
  const now = await storeNow(store.db);
  const slices = await planSource(source, { wanted: routineDemand(source, now), reprocess: "missing" });
  await work(slices);
  const extracted = (await fetchTotals(store.db, { source: config.slug, after: before })).map((totals) => {
    const own = slices.filter((s) => s.groupBy === totals.groupBy && s.window.stride === totals.stride);
    return { ...totals, windows: own.length, fewest: fewestRequests(own) };
  });
  const bar = output.progress("reconcile");
  const range = { start: source.dataStart, end: now };
  const proof = await reconcile(source, { range, stride: "day", repair: false }, bar.update).finally(
    bar.stop,
  );
  const totals = await dailyTotals(store.db, config.slug);
  const probe = await probeOnce(source);
  output.data({ extracted, reconciliation: proof, totals, probe }, () =>
    describeRound({ extracted, proof, totals, probe, seconds: (clock.now() - startedAt) / 1000 }),
  );
  if (extracted.some((one) => one.failed > 0) || proof.failures.length > 0) return EXIT.partlyFailed;
  return proof.differences.length > 0 ? EXIT.mismatch : exitOfProbe(probe);
}

/** The stand-in's traces cost nothing, so nobody is asked. */
async function probeOnce(source: OpenSource): Promise<ProbeResult> {
  const deployment = deploymentClientsOf(source.config);
  const { probeProject: project = "" } = source.config;
  try {
    // A demo that was killed left it behind; the stand-in that it spoke to is gone.
    await abandonProbe(source);
    return await probeMeter(source, { deployment, project, assistantId: "agent", withinMs: PROBE_WITHIN_MS });
  } finally {
    await deployment.close();
  }
}

/** Says what each further round did, until Ctrl-C. */
async function runOn(
  source: OpenSource,
  { output, signal, isInline }: { output: Output; signal: AbortSignal; isInline: boolean },
): Promise<number> {
  const { store, clock, config } = source;
  for (;;) {
    const before = await newestFetch(store.db);
    try {
      await clock.wait(NEXT_ROUND_MS, signal);
    } catch {
      return EXIT.done;
    }
    if (isInline) {
      const wanted = routineDemand(source, await storeNow(store.db));
      await runInline(source, await planSource(source, { wanted, reprocess: "missing" }));
    }
    const totals = await fetchTotals(store.db, { source: config.slug, after: before });
    const requests = totals.reduce((sum, one) => sum + one.requests, 0);
    const failed = totals.reduce((sum, one) => sum + one.failed, 0);
    output.note(
      `${new Date(clock.now()).toISOString()}: ${requests} requests for what is not settled, ${failed} failed`,
    );
  }
}

function describeRound(shown: {
  extracted: readonly (FetchTotals & { windows: number; fewest: number })[];
  proof: ReconcileResult;
  totals: readonly WorkspaceTotal[];
  probe: ProbeResult;
  seconds: number;
}): string {
  const { extracted, proof, totals, probe, seconds } = shown;
  return [
    table(
      ["group_by", "stride", "windows", "requests", "fewest possible", "records stored", "traces"],
      extracted.map((one) => [
        one.groupBy,
        one.stride,
        one.windows,
        one.requests,
        one.fewest,
        one.records,
        one.traces,
      ]),
    ),
    "",
    describeReconcile(proof),
    "",
    table(
      ["workspace", "days loaded", "traces", "last 7 days"],
      totals.map((t) => [t.workspace, t.days, t.traces, t.lastWeek]),
    ),
    "",
    describeProbe(probe),
    "",
    `${seconds.toFixed(1)} s`,
  ].join("\n");
}
