import type { Command } from "commander";
import { syncJob } from "../../../jobs/sync.ts";
import { requireSources } from "../../config/config.ts";
import { WORKSPACES_PER_REQUEST } from "../../domain/planning/request.ts";
import { alignRange, planWindows } from "../../domain/planning/windows.ts";
import { type RunResult, runInline } from "../../pipeline/extract/run-inline.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { type PlanRequest, planSource, routineDemand } from "../../pipeline/sync/plan.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { retryAfterOutage } from "../../store/load/outage.ts";
import { instant, table } from "../report/output.ts";
import { describeRun, exitOfRun } from "../report/run-report.ts";
import { EXIT } from "../session/exit.ts";
import {
  groupingsOf,
  type RangeOptions,
  rangeOf,
  type SelectionOptions,
  withRange,
  withSelection,
} from "../session/options.ts";
import { openControl, requireRedis } from "../session/queue.ts";
import { inSession, type Session } from "../session/session.ts";

/** `plan`, `sync` and `backfill`: what would be fetched, and fetching it. */
export function addLoadCommands(program: Command): void {
  withSelection(withRange(program.command("plan")))
    .description("windows and requests of a range, without sending any")
    .action(inSession(plan));
  program
    .command("sync")
    .description("one round: whatever is required and not settled")
    .option("--inline", "in this process, without the queue")
    .action(inSession(sync));
}

async function plan(session: Session, options: RangeOptions & SelectionOptions): Promise<undefined> {
  const { config, output } = session;
  const dataStart = Date.parse(config.sources[0]?.dataStart ?? "2026-01-05");
  const range = alignRange(rangeOf(options), options.stride, dataStart);
  const windows = range === undefined ? [] : planWindows(range, options.stride);
  const ids = options.workspace ?? config.sources.flatMap((source) => source.workspaceIds);
  const workspaces = Math.max(1, ids.length);
  const requests = groupingsOf(options).map((groupBy) => ({
    groupBy,
    requests:
      windows.length *
      (groupBy === "workspace" ? Math.ceil(workspaces / WORKSPACES_PER_REQUEST) : workspaces),
  }));
  const shown = windows.map(({ stride, start, end }) => ({ stride, from: instant(start), to: instant(end) }));
  output.data({ windows: shown, workspaces, requests }, () =>
    [
      table(
        ["stride", "from", "to"],
        shown.map(({ stride, from, to }) => [stride, from, to]),
      ),
      `${windows.length} windows; requests for ${workspaces} workspace${workspaces > 1 ? "s" : ""}: ${requests
        .map((one) => `${one.groupBy} ${one.requests}`)
        .join(", ")}`,
    ].join("\n"),
  );
}

async function sync(session: Session, options: { inline?: boolean }): Promise<number> {
  if (options.inline !== true) return askForSync(session);
  return runAll(session, async (source, now) => {
    await retryAfterOutage(source.store.db, source.sourceId);
    return { wanted: routineDemand(source, now), reprocess: "missing" };
  });
}

/** Asks the service for a round now, instead of at its next tick. */
async function askForSync(session: Session): Promise<number> {
  const redis = requireRedis(session);
  const asked: string[] = [];
  for (const { slug } of requireSources(session.config)) {
    const queue = openControl(session, redis, slug);
    await queue.add(syncJob.name, {}, { ...syncJob.options, jobId: `asked-${Date.now()}` });
    asked.push(slug);
  }
  session.output.data(
    { asked },
    () => `The service was asked for a round of ${asked.join(", ")}; \`status\` shows it.`,
  );
  return EXIT.done;
}

/** How many requests a demand takes, and how long at the budget. */
export async function showDryRun(
  session: Session,
  request: (source: OpenSource, now: number) => Promise<PlanRequest>,
): Promise<number> {
  const planned: Record<string, { requests: number; seconds: number }> = {};
  const exit = await session.eachSource(async (source) => {
    const slices = await planSource(source, await request(source, await storeNow(source.store.db)));
    const seconds = Math.ceil((slices.length / source.config.rateLimit) * 10);
    planned[source.config.slug] = { requests: slices.length, seconds };
    return EXIT.done;
  });
  session.output.data(planned, () =>
    Object.entries(planned)
      .map(
        ([slug, { requests, seconds }]) =>
          `${slug}: ${requests} requests, at the budget in ${seconds} s or more`,
      )
      .join("\n"),
  );
  return exit;
}

/** Plans and runs every source in this process. */
export async function runAll(
  { eachSource, output }: Session,
  request: (source: OpenSource, now: number) => Promise<PlanRequest>,
): Promise<number> {
  const results: Record<string, RunResult> = {};
  const exit = await eachSource(async (source) => {
    const slices = await planSource(source, await request(source, await storeNow(source.store.db)));
    const progress = output.progress(source.config.slug);
    const run = await runInline(source, slices, progress.update).finally(progress.stop);
    results[source.config.slug] = run;
    return exitOfRun(run);
  });
  output.data(results, () =>
    Object.entries(results)
      .map(([slug, run]) => (Object.keys(results).length > 1 ? `${slug}\n` : "") + describeRun(run))
      .join("\n\n"),
  );
  return exit;
}
