import type { Command } from "commander";
import type { Finality } from "../../domain/finality.ts";
import { knownSyncBudget, type SyncBudget } from "../../pipeline/sync/sync-budget.ts";
import type { Database } from "../../store/db/database.ts";
import { listSources, type SourceStatus, sourceStatuses } from "../../store/report/overview.ts";
import { describeFinality, finalityOf } from "../report/lateness-report.ts";
import { table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

export function addStatusCommand(program: Command): void {
  program
    .command("status")
    .description("how far each source is loaded, and what is wrong")
    .action(inSession(run));
}

async function run(session: Session): Promise<number> {
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
