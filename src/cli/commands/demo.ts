import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { fetchQueueOf } from "../../../jobs/queues.ts";
import { type Config, Secret, type SourceConfig } from "../../config/config.ts";
import { fewestRequests, type UsageRequest } from "../../domain/planning/request.ts";
import { UnreachableError } from "../../errors.ts";
import { createLogger } from "../../log.ts";
import { runInline } from "../../pipeline/extract/run-inline.ts";
import { abandonProbe, type ProbeResult, probeMeter } from "../../pipeline/probe/probe.ts";
import { reconcile } from "../../pipeline/reconcile/reconcile.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { statusOfAsked } from "../../pipeline/sync/asked-range.ts";
import { enqueueSlices, requeueLost } from "../../pipeline/sync/enqueue.ts";
import { planSource, routineDemand } from "../../pipeline/sync/plan.ts";
import { planSync } from "../../pipeline/sync/sync.ts";
import { deploymentClientsOf } from "../../platform/clients.ts";
import { serve } from "../../service/serve.ts";
import { resolvePostgres, resolveRedis } from "../../services/resolve.ts";
import { startStandin } from "../../standin/server.ts";
import { migrate } from "../../store/db/migrate.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { dailyTotals, fetchTotals, newestFetch } from "../../store/report/load-totals.ts";
import { dueSlices } from "../../store/work/slices.ts";
import { describeDemo } from "../report/demo-report.ts";
import type { Output } from "../report/output.ts";
import { exitOfRange, rangeToData } from "../report/range-report.ts";
import { EXIT } from "../session/exit.ts";
import { openSessionQueue } from "../session/queue.ts";
import { createSession, inSession, type Session } from "../session/session.ts";
import { exitOfProbe } from "./probe.ts";

const DATA_DIR = fileURLToPath(new URL("../../../.usage-etl/demo", import.meta.url));
/** The stand-in serves only this demo. */
const RATE_LIMIT = 1000;
const SYNC_EVERY_MS = 30_000;
const LOOK_EVERY_MS = 100;
/** The stand-in bills at once. */
const PROBE_TIMES = { withinMs: 60_000, settleForMs: 1_000 };

interface DemoOptions {
  readonly once?: boolean;
  readonly inline?: boolean;
  readonly dataDir: string;
}

export function define(command: Command): void {
  command
    .option("--once", "stop after the first sync instead of on Ctrl-C")
    .option("--inline", "run in this process, without Redis")
    .option("--data-dir <folder>", "folder of its database, kept between runs", DATA_DIR)
    .action(inSession(demo, { alone: true }));
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
    `Postgres: ${postgres.origin}. Queue: ${redisUrl === undefined ? "none (inline)" : "BullMQ"}. Platform: the stand-in on ${standin.url}.`,
  );

  const config = demoConfig(given.config, postgres.url, standin);
  const session = createSession({ ...given, config });
  const log = createLogger(config.logLevel, output.logTo);
  const store = await session.store();
  await migrate(store);
  return session.eachSource(async (source) => {
    let work = async (slices: readonly UsageRequest[]) => {
      await output.progress({ label: "load", unit: "requests" }, (update) =>
        runInline(source, slices, update),
      );
    };
    if (redisUrl !== undefined) {
      // No scheduler yet: a scheduled sync would fetch again what the first sync counts.
      const service = await serve({ config, store, redisUrl, role: "worker", log });
      onClose(() => service.close());
      output.note(`Health and metrics: ${service.url}/readyz, ${service.url}/metrics`);
      work = () => throughQueue(source, redisUrl, session);
    }
    const exit = await firstSync(source, output, work);
    if (options.once === true || exit !== EXIT.done) return exit;
    output.note(
      `\nThe demo syncs every ${SYNC_EVERY_MS / 1000} s until Ctrl-C. Query the views with\n  psql '${postgres.url}' -c 'SELECT * FROM reporting.fct_usage_workspace_daily ORDER BY 2 DESC LIMIT 10'`,
    );
    if (redisUrl !== undefined) {
      const scheduler = await serve({ config, store, redisUrl, role: "scheduler", log });
      onClose(() => scheduler.close());
    }
    return runOn(source, { output, signal, isInline: redisUrl === undefined });
  });
}

/** An empty Redis is enough: Postgres holds the state. Without Redis the demo runs inline and says so. */
async function findRedis({ output, onClose }: Session): Promise<string | undefined> {
  try {
    const redis = await resolveRedis({ say: output.note });
    onClose(() => redis.close());
    return redis.url;
  } catch (error) {
    if (!(error instanceof UnreachableError)) throw error;
    output.note(`${error.message} The demo runs inline.`);
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
    // The stand-in names its project like this.
    probeProject: "agent-server",
  };
  return {
    ...config,
    databaseUrl: new Secret(databaseUrl),
    sources: [source],
    syncEveryMs: SYNC_EVERY_MS,
    // Any free port: the service may run on the same machine.
    httpPort: 0,
  };
}

/** Enqueues a sync as the scheduler does, and waits until the workers have done it. */
async function throughQueue(source: OpenSource, redisUrl: string, session: Session): Promise<void> {
  const { store, sourceId, config, clock } = source;
  const { slug } = config;
  const queue = fetchQueueOf(await openSessionQueue(session, "fetch", { redisUrl, slug }));
  await session.output.progress({ label: "load", unit: "fetch tasks" }, async (update) => {
    // A killed run may have left tasks marked as queued in a Redis that is gone.
    await requeueLost(store, { sourceId, queue });
    await planSync(source);
    await enqueueSlices(store, { sourceId, queue });
    let total = 0;
    for (;;) {
      const due = (await dueSlices(store.db)).find((one) => one.source === slug);
      const left = (due?.waiting ?? 0) + (due?.queued ?? 0);
      total = Math.max(total, left);
      update({ done: total - left, total });
      if (left === 0) return;
      await clock.wait(LOOK_EVERY_MS, session.signal);
    }
  });
}

/** One sync, then a reconciliation of all final days, then one probe. */
async function firstSync(
  source: OpenSource,
  output: Output,
  work: (slices: readonly UsageRequest[]) => Promise<void>,
): Promise<number> {
  const { store, config, clock } = source;
  const startedAt = clock.now();
  const before = await newestFetch(store.db);
  const now = await storeNow(store.db);
  const wanted = routineDemand(source, now);
  const slices = await planSource(source, { wanted, reprocess: "missing" });
  await work(slices);
  const workspaceIds = source.workspaces.map((one) => one.workspaceId);
  const loaded = await statusOfAsked(store.db, source, { wanted, workspaceIds });
  const extracted = (await fetchTotals(store.db, { source: config.slug, after: before })).map((totals) => {
    const own = slices.filter((s) => s.groupBy === totals.groupBy && s.window.stride === totals.stride);
    return { ...totals, windows: own.length, fewest: fewestRequests(own) };
  });
  const range = { start: source.dataStart, end: now };
  const proof = await output.progress({ label: "reconcile", unit: "windows" }, (update) =>
    reconcile(source, { range, stride: "day", repair: false }, update),
  );
  const totals = await dailyTotals(store.db, config.slug);
  const probe = await probeOnce(source);
  output.data({ extracted, range: rangeToData(loaded), reconciliation: proof, totals, probe }, () =>
    describeDemo({ extracted, loaded, proof, totals, probe, seconds: (clock.now() - startedAt) / 1000 }),
  );
  if (proof.failures.length > 0 || exitOfRange(loaded) !== EXIT.done) return EXIT.partlyFailed;
  return proof.differences.length > 0 ? EXIT.mismatch : exitOfProbe(probe);
}

/** Traces of the stand-in are free, so the demo does not ask first. */
async function probeOnce(source: OpenSource): Promise<ProbeResult> {
  const deployment = deploymentClientsOf(source.config);
  const { probeProject: project = "" } = source.config;
  try {
    // A killed demo leaves an open probe of a stand-in that is gone.
    await abandonProbe(source);
    return await probeMeter(source, { deployment, project, assistantId: "agent", ...PROBE_TIMES });
  } finally {
    await deployment.close();
  }
}

/** Prints what each further sync did, until Ctrl-C. */
async function runOn(
  source: OpenSource,
  { output, signal, isInline }: { output: Output; signal: AbortSignal; isInline: boolean },
): Promise<number> {
  const { store, clock, config } = source;
  for (;;) {
    const before = await newestFetch(store.db);
    try {
      await clock.wait(SYNC_EVERY_MS, signal);
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
      `${new Date(clock.now()).toISOString()}: ${requests} requests for what is not final, ${failed} failed`,
    );
  }
}
