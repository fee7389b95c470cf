import type { Command } from "commander";
import type { RedisView } from "../../../jobs/redis-view.ts";
import { type SourceConfig, sourceFlagsOf } from "../../core/base/config.ts";
import { EtlError, UsageError } from "../../core/base/errors.ts";
import { dataStartProblem } from "../../core/pipeline/source/data-start.ts";
import { freshnessOf, type ListedSource, listSources } from "../../core/store/activity/overview.ts";
import type { Database } from "../../core/store/db/database.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { EXIT, firstExit } from "../../terminal/exit.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { limitUses } from "../costs/bill-terms.store.ts";
import { unpricedUsage } from "../costs/prices.store.ts";
import { daysByStride } from "../coverage/coverage-lines.store.ts";
import { commandToProve, reportOnSources, type SourceReport } from "./advice.ts";
import { describeInShort, describeStatus, exitOfStatus, type ShownStatus } from "./status-report.ts";

export const examples = [
  ["status", "all sources"],
  ["status --source emea", "everything about one source"],
] as const;

export function define(command: Command): void {
  command.option("--source <slug>", "only this source").action(inSession(run));
}

function describeAll(all: readonly ShownStatus[], now: number): string {
  const [first] = all;
  if (first === undefined || all.length === 1) return all.map((one) => describeStatus(one, now)).join();
  const more = `\`usage-etl status --source ${first.source}\` shows everything about a source.`;
  return [...all.map((one) => describeInShort(one, now)), more].join("\n\n");
}

/** Sends no request to the platform, so the command works while the platform is down. */
async function run(session: Session, { source: only }: { source?: string }): Promise<number> {
  const { config, output } = session;
  const { db } = await session.migratedStore();
  const now = await storeNow(db);
  const { view, problem } = await lookAtService(session);
  const queues = { sources: view?.sources, problem: problem?.message ?? null };
  const [reports, details] = await Promise.all([
    reportOnSources(db, { config, now, queues, masked: false }),
    detailsOfSources(db),
  ]);
  const statuses = reports.flatMap(({ status, trust, progress, budget, ...report }): ShownStatus[] => {
    if (status.source !== (only ?? status.source)) return [];
    const seen = view?.sources.get(status.source);
    const detail = details.get(status.source);
    const found = config.sources.find(({ slug }) => slug === status.source);
    if (detail === undefined) return [];
    const shown = {
      ...status,
      ...progress,
      ...report,
      ...detail,
      budget,
      provedUntil: trust.provedUntil,
      unknownMeters: trust.unknownMeters,
      otherGaps: trust.otherGaps,
      proveWith: commandToProve(trust, sourceFlagsOf(config, status.source)),
      dataStartProblem:
        found && dataStartProblem(found.slug, { stored: status.dataStart, configured: found.dataStart }),
      workers: seen?.workers ?? null,
      schedulers: view?.schedulers ?? null,
      hasRedis: config.redis !== undefined,
      hasSchedules: (seen?.schedules.size ?? 0) > 0,
      redis: problem,
    };
    return [shown];
  });
  if (only !== undefined && statuses.length === 0 && !config.sources.some(({ slug }) => slug === only)) {
    throw new UsageError({
      code: "source_unknown",
      message: `Source ${only} is neither stored nor configured.`,
      next: "Choose one of those that `usage-etl source list` shows.",
    });
  }
  output.data(statuses, (all) =>
    reports.length === 0
      ? "No source was ever opened. Run `usage-etl sync --inline`."
      : describeAll(all, now),
  );
  const isMeant = ({ slug }: { slug: string }) => slug === (only ?? slug);
  const unopened = neverOpened(session, reports, config.sources.filter(isMeant));
  return firstExit([...statuses.map(exitOfStatus), ...(unopened > 0 ? [EXIT.partlyFailed] : [])]);
}

type SourceDetails = Awaited<ReturnType<typeof detailsOf>>;

async function detailsOfSources(db: Database): Promise<Map<string, SourceDetails>> {
  const sources = await listSources(db);
  return new Map(
    await Promise.all(sources.map(async (source) => [source.source, await detailsOf(db, source)] as const)),
  );
}

async function detailsOf(db: Database, { source, sourceId }: ListedSource) {
  const [freshness, days, costs, limits] = await Promise.all([
    freshnessOf(db, source),
    daysByStride(db, source),
    unpricedUsage(db, sourceId),
    limitUses(db, sourceId),
  ]);
  return { freshness, days, costs, limits };
}

function neverOpened(
  { output }: Session,
  reports: readonly SourceReport[],
  configured: readonly SourceConfig[],
): number {
  if (reports.length === 0) return 0;
  const added = configured.filter(({ slug }) => !reports.some(({ status }) => status.source === slug));
  for (const { slug } of added) {
    output.note(
      `Source ${slug} was never opened, so nothing of it is loaded. Run \`usage-etl sync --inline\`, or look at the log of the service.`,
    );
  }
  return added.length;
}

async function lookAtService({
  config,
}: Session): Promise<{ view?: RedisView; problem: ShownStatus["redis"] }> {
  if (config.redis === undefined) return { problem: null };
  const { lookAtRedis } = await import("../../../jobs/redis-view.ts");
  try {
    const slugs = config.sources.map(({ slug }) => slug);
    return { view: await lookAtRedis(config.redis, slugs), problem: null };
  } catch (error) {
    if (!(error instanceof EtlError)) throw error;
    return { problem: { code: error.code, message: error.message } };
  }
}
