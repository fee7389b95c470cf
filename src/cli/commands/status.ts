import type { Command } from "commander";
import type { Finality } from "../../domain/lateness.ts";
import { dataStartProblem } from "../../pipeline/source/data-start.ts";
import { knownSyncBudget, type SyncBudget } from "../../pipeline/sync/sync-budget.ts";
import type { Database } from "../../store/db/database.ts";
import { listSources, type SourceStatus, sourceStatuses } from "../../store/report/overview.ts";
import {
  type ListedOnly,
  listedOnly,
  type WithdrawnZeros,
  withdrawnZeros,
} from "../../store/report/zeros.ts";
import { describeFinality, finalityOf } from "../report/lateness-report.ts";
import { table } from "../report/output.ts";
import { describeListedOnly, describeWithdrawn } from "../report/zeros-report.ts";
import { EXIT } from "../session/exit.ts";
import { inSession, type Session } from "../session/session.ts";

export function define(command: Command): void {
  command.action(inSession(run));
}

async function run(session: Session): Promise<number> {
  const { db } = await session.migratedStore();
  const { settleAfterMs } = session.config;
  const ids = new Map((await listSources(db)).map(({ source, sourceId }) => [source, sourceId]));
  const statuses = await Promise.all(
    (await sourceStatuses(db)).map(async (source) => {
      const sourceId = ids.get(source.source) ?? 0;
      return {
        ...source,
        rounds: await syncBudgetOf(session, db, source.source),
        dataStartProblem: dataStartProblemOf(session, source),
        finality: await finalityOf(db, { sourceId, settleAfterMs }),
        withdrawnZeros: await withdrawnZeros(db, sourceId),
        listedOnly: await listedOnly(db, sourceId),
      };
    }),
  );
  session.output.data(statuses, (all) =>
    all.length === 0
      ? "No source was ever opened. Run `usage-etl sync --inline`."
      : all.map((one) => describeStatus(one, settleAfterMs)).join("\n\n"),
  );
  if (statuses.some((source) => source.refused !== null)) return EXIT.refused;
  return statuses.some((source) => source.failures.length > 0) ? EXIT.partlyFailed : EXIT.done;
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

/** `rounds` is the name in `--json`. */
type ShownStatus = SourceStatus & {
  readonly rounds: SyncBudget | null;
  readonly dataStartProblem: ReturnType<typeof dataStartProblem>;
  readonly finality: Finality;
  readonly withdrawnZeros: readonly WithdrawnZeros[];
  readonly listedOnly: readonly ListedOnly[];
};

function describeStatus(source: ShownStatus, settleAfterMs: number): string {
  const lines = [
    `${source.source}: ${source.baseUrl}, organization ${source.organizationId ?? "not known"}, ${source.workspaces} workspaces`,
    table(
      ["dimension", "stride", "loaded until", "final until"],
      source.freshness.map((f) => [f.groupBy, f.stride, f.loadedUntil, f.settledUntil]),
    ),
  ];
  if (source.refused !== null) lines.push(`The platform refuses the key: ${source.refused}`);
  for (const problem of [source.rounds?.problem, source.dataStartProblem]) {
    if (problem !== undefined) lines.push(`${problem.message} ${problem.next} [${problem.code}]`);
  }
  lines.push(...source.failures.map(describeFailures));
  for (const id of source.unlistedWorkspaces) {
    lines.push(`Workspace ${id} is no longer listed, but not deleted.`);
  }
  lines.push(
    ...describeWithdrawn(source.withdrawnZeros),
    `${source.openDifferences} open differences, ${source.platformDisagrees} where the platform contradicts itself, ${source.restatements} restatements of final counts`,
    ...describeFinality(source.finality, settleAfterMs),
    ...describeListedOnly(source.listedOnly),
  );
  return lines.join("\n");
}

function describeFailures({ state, code, parts, due, notAsked, nextRetry }: ShownStatus["failures"][number]) {
  const later = parts - due - notAsked;
  return [
    `${parts} ranges are ${state} with ${code}.`,
    due > 0 ? `${due} of them are fetched again with the next sync.` : "",
    later > 0 ? `${later} of them wait for ${due > 0 ? "their retry time" : nextRetry}.` : "",
    notAsked > 0
      ? `${notAsked} of them are not fetched again: the server does not answer in their stride, or the configuration no longer names their workspace.`
      : "",
  ]
    .filter((sentence) => sentence !== "")
    .join(" ");
}
