import type { Command } from "commander";
import { describeSettings } from "../../config/settings.ts";
import type { Finality } from "../../domain/finality.ts";
import { knownSyncBudget, type SyncBudget } from "../../pipeline/sync/sync-budget.ts";
import type { Database } from "../../store/db/database.ts";
import {
  type CoverageLine,
  coverageLines,
  listSources,
  type SourceStatus,
  sourceStatuses,
} from "../../store/report/overview.ts";
import { describeFinality, finalityOf } from "../report/lateness-report.ts";
import { table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import { type RangeOptions, rangeOf, withRange } from "../session/options.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

/** Days that somebody should look at: required, and without a figure that can be trusted. */
const GAPS = ["failed", "missing", "unverified"];

/** `coverage`, `status` and `config`: what is there, without asking the platform. */
export function addLookCommands(program: Command): void {
  withRange(program.command("coverage"))
    .description("which days are loaded and settled, by grouping and stride")
    .option("--fail-on-gaps", "exit with 4 where a day that is over is failed, missing or unverified")
    .action(inSession(coverage));
  program
    .command("status")
    .description("how far each source is loaded, and what is wrong")
    .action(inSession(status));
  program
    .command("config")
    .description("the configuration that is read, secrets hidden")
    .action(inSession(config));
}

async function coverage(session: Session, options: RangeOptions & { failOnGaps?: boolean }): Promise<number> {
  const store = await session.store();
  await requireSchema(store);
  const isWhole = options.from === undefined && options.to === undefined;
  const lines = await coverageLines(
    store.db,
    isWhole ? undefined : rangeOf(options, { start: 0, end: Date.now() }),
  );
  session.output.data(lines, describeCoverage);
  const hasGaps = lines.some((line) => GAPS.includes(line.status) && line.endedDays > 0);
  return options.failOnGaps === true && (hasGaps || lines.length === 0) ? EXIT.mismatch : EXIT.done;
}

function describeCoverage(lines: readonly CoverageLine[]): string {
  if (lines.length === 0)
    return "Nothing is expected in that range, or nothing is known yet: `usage-etl status` shows what is loaded.";
  return table(
    ["source", "group_by", "stride", "status", "days x workspaces", "first", "last"],
    lines.map((l) => [l.source, l.groupBy, l.stride, l.status, l.days, l.firstDay, l.lastDay]),
  );
}

async function status(session: Session): Promise<number> {
  const store = await session.store();
  await requireSchema(store);
  const { settleAfterMs } = session.config;
  const ids = new Map((await listSources(store.db)).map(({ source, sourceId }) => [source, sourceId]));
  const statuses = await Promise.all(
    (await sourceStatuses(store.db)).map(async (source) => ({
      ...source,
      rounds: await roundsOf(session, store.db, source.source),
      finality: await finalityOf(store.db, { sourceId: ids.get(source.source) ?? 0, settleAfterMs }),
    })),
  );
  session.output.data(statuses, (all) => describeStatus(all, settleAfterMs));
  if (statuses.some((source) => source.refused !== null)) return EXIT.refused;
  return statuses.some((source) => source.failures.length > 0) ? EXIT.partlyFailed : EXIT.done;
}

/** What a round needs of the rate budget; null for a source that this configuration does not name. */
async function roundsOf({ config }: Session, db: Database, slug: string): Promise<SyncBudget | null> {
  const source = config.sources.find((one) => one.slug === slug);
  if (source === undefined) return null;
  return (await knownSyncBudget(db, { config: source, settings: config })) ?? null;
}

type ShownStatus = SourceStatus & { readonly rounds: SyncBudget | null; readonly finality: Finality };

function describeStatus(statuses: readonly ShownStatus[], settleAfterMs: number): string {
  if (statuses.length === 0) return "No source was ever opened: run `usage-etl sync --inline`.";
  return statuses
    .map((source) =>
      [
        `${source.source}: ${source.baseUrl}, organization ${source.organizationId ?? "not known"}, ${source.workspaces} workspaces`,
        table(
          ["group_by", "stride", "loaded until", "settled until"],
          source.freshness.map((f) => [f.groupBy, f.stride, f.loadedUntil, f.settledUntil]),
        ),
        ...(source.refused === null ? [] : [`The platform refuses the key: ${source.refused}`]),
        ...(source.rounds?.problem === undefined
          ? []
          : [
              `${source.rounds.problem.message} ${source.rounds.problem.next} [${source.rounds.problem.code}]`,
            ]),
        ...source.failures.map(
          (f) => `${f.parts} parts ${f.state} with ${f.code}; asked again from ${f.nextRetry}`,
        ),
        ...source.unlistedWorkspaces.map(
          (id) => `Workspace ${id} is gone from the listing without being deleted.`,
        ),
        `${source.openDifferences} open differences, ${source.platformDisagrees} where the platform contradicts itself, ${source.restatements} restatements of settled counts`,
        ...describeFinality(source.finality, settleAfterMs),
      ].join("\n"),
    )
    .join("\n\n");
}

async function config({ config: read, output }: Session): Promise<undefined> {
  output.data(read, () =>
    [
      table(
        ["setting", "meaning"],
        describeSettings().map(({ name, about }) => [name, about]),
      ),
      "",
      JSON.stringify(read, null, 2),
    ].join("\n"),
  );
}
