import type { Command } from "commander";
import type { RedisView } from "../../../jobs/look.ts";
import { EtlError } from "../../errors.ts";
import { type Advice, adviseOn, failureOf } from "../../pipeline/advice.ts";
import { firingAlerts, staleAfterOf } from "../../pipeline/alerts.ts";
import { dataStartProblem } from "../../pipeline/source/data-start.ts";
import { knownSyncBudget, type SyncBudget } from "../../pipeline/sync/sync-budget.ts";
import {
  listSources,
  type SourceStatus,
  sourceProgress,
  sourceStatuses,
} from "../../store/activity/overview.ts";
import { listRuns } from "../../store/activity/runs.ts";
import { limitUses } from "../../store/bill/bill-terms.ts";
import { unpricedUsage } from "../../store/bill/prices.ts";
import { openDays } from "../../store/coverage/open-days.ts";
import { type SourceTrust, trustOfSources } from "../../store/coverage/trust.ts";
import { listedOnly, withdrawnZeros } from "../../store/coverage/zeros.ts";
import type { Database } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { describeStatus, exitOfStatus, finalityOf, type ShownStatus } from "../report/status-report.ts";
import { EXIT, firstExit } from "../session/exit.ts";
import { inSession, type Session } from "../session/session.ts";

export function define(command: Command): void {
  command.action(inSession(run));
}

/** Reads the tables and Redis, and asks the platform nothing: it shows the same while that is away. */
async function run(session: Session): Promise<number> {
  const { config, output } = session;
  const { db } = await session.migratedStore();
  const now = await storeNow(db);
  const { view, problem } = await lookAtService(session);
  const ids = new Map((await listSources(db)).map(({ source, sourceId }) => [source, sourceId]));
  const progress = await sourceProgress(db);
  const trusts = await trustOfSources(db);
  const alerts = await firingAlerts(db, { staleAfterMs: staleAfterOf(config.syncEveryMs) });
  const statuses = await Promise.all(
    (await sourceStatuses(db)).map(async (source): Promise<ShownStatus> => {
      const slug = source.source;
      const sourceId = ids.get(slug) ?? 0;
      const [lastSync = null] = await listRuns(db, { source: slug, kind: "sync", most: 1 });
      const queues = view?.sources.get(slug);
      const { settleAfterMs } = config;
      const shown = {
        ...source,
        rounds: await syncBudgetOf(session, db, slug),
        dataStartProblem: dataStartProblemOf(session, source),
        finality: await finalityOf(db, { sourceId, settleAfterMs }),
        withdrawnZeros: await withdrawnZeros(db, sourceId),
        listedOnly: await listedOnly(db, sourceId),
        lastSync,
        nextSync: queues?.nextSync === undefined ? null : new Date(queues.nextSync).toISOString(),
        workers: queues?.workers ?? null,
        schedulers: view?.schedulers ?? null,
        hasRedis: config.redis !== undefined,
        hasSchedules: (queues?.schedules.size ?? 0) > 0,
        redis: problem,
        ...progressOf(progress.find((one) => one.source === slug)),
        days: await openDays(db, slug),
        costs: await unpricedUsage(db, sourceId),
        limits: await limitUses(db, sourceId),
        alerts: alerts.get(slug) ?? [],
      };
      const trust = trusts.find((one) => one.source === slug);
      return { ...shown, advice: trust === undefined ? null : adviceOf(shown, trust) };
    }),
  );
  output.data(statuses, (all) =>
    all.length === 0
      ? "No source was ever opened. Run `usage-etl sync --inline`."
      : all.map((one) => describeStatus(one, now, config.settleAfterMs)).join("\n\n"),
  );
  const unopened = neverOpened(session, statuses);
  return firstExit([...statuses.map(exitOfStatus), ...(unopened > 0 ? [EXIT.partlyFailed] : [])]);
}

/** The same as the overview's page says. */
function adviceOf(shown: Omit<ShownStatus, "advice">, trust: SourceTrust): Advice {
  const { source, refused, workers, hasSchedules, redis, alerts, nextSync } = shown;
  return adviseOn({
    ...{ source, trust, refused, nextSync },
    // Who syncs by cron needs no worker.
    workers: hasSchedules ? workers : null,
    redis: redis?.message ?? null,
    lastSyncFailure: failureOf(shown.lastSync),
    isStale: alerts.some(({ kind }) => kind === "stale"),
    openDifferences: shown.openDifferences,
    unpriced: alerts.some(({ kind }) => kind === "unpriced"),
  });
}

/** Says which sources were added to a database that has others, and were not contacted yet. Returns how many there are. */
function neverOpened({ config, output }: Session, statuses: readonly ShownStatus[]): number {
  if (statuses.length === 0) return 0;
  const added = config.sources.filter(({ slug }) => !statuses.some(({ source }) => source === slug));
  for (const { slug } of added) {
    output.note(
      `Source ${slug} was never opened, so nothing of it is loaded. Run \`usage-etl sync --inline\`, or look at the log of the service.`,
    );
  }
  return added.length;
}

/** What Redis shows of the service, or why it does not. Without `REDIS_URL` there is nothing to ask. */
async function lookAtService({
  config,
}: Session): Promise<{ view?: RedisView; problem: ShownStatus["redis"] }> {
  if (config.redis === undefined) return { problem: null };
  const { lookAtRedis } = await import("../../../jobs/look.ts");
  try {
    const slugs = config.sources.map(({ slug }) => slug);
    return { view: await lookAtRedis(config.redis, slugs), problem: null };
  } catch (error) {
    if (!(error instanceof EtlError)) throw error;
    return { problem: { code: error.code, message: error.message } };
  }
}

const NOTHING = { waiting: 0, queued: 0, oldestSeconds: null, lastReconciledAt: null, lastTotalsAt: null };

function progressOf(progress: Awaited<ReturnType<typeof sourceProgress>>[number] | undefined) {
  if (progress === undefined) return NOTHING;
  const { source: _, ...rest } = progress;
  return rest;
}

/** Null for a source that is stored but not configured. */
async function syncBudgetOf({ config }: Session, db: Database, slug: string): Promise<SyncBudget | null> {
  const source = config.sources.find((one) => one.slug === slug);
  if (source === undefined) return null;
  return (await knownSyncBudget(db, { config: source, settings: config })) ?? null;
}

function dataStartProblemOf({ config }: Session, { source, dataStart: stored }: SourceStatus) {
  const found = config.sources.find((one) => one.slug === source);
  return found && dataStartProblem(source, { stored, configured: found.dataStart });
}
