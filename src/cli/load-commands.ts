import type { Command } from "commander";
import { Option } from "commander";
import { alignRange, planWindows } from "../domain/plan.ts";
import { WORKSPACES_PER_REQUEST } from "../domain/slice.ts";
import { UsageError } from "../errors.ts";
import { type RunResult, runInline } from "../pipeline/inline.ts";
import { clipToFuture, type PlanRequest, planSource, routineDemand } from "../pipeline/plan.ts";
import type { OpenSource } from "../pipeline/source.ts";
import { storeNow } from "../store/fetches.ts";
import { EXIT } from "./exit.ts";
import {
  groupingsOf,
  type RangeOptions,
  rangeOf,
  type SelectionOptions,
  withRange,
  withSelection,
  workspacesOf,
} from "./options.ts";
import { instant, table } from "./output.ts";
import { describeRun, exitOfRun } from "./run-report.ts";
import { inSession, type Session } from "./session.ts";

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
  withSelection(withRange(program.command("backfill")))
    .description("load a range on demand")
    .addOption(
      new Option("--reprocess <what>", "leave settled time alone, or fetch all of it again")
        .choices(["missing", "all"])
        .default("missing"),
    )
    .option("--dry-run", "only say what would be fetched")
    .option("--inline", "in this process, without the queue")
    .action(inSession(backfill));
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
  requireInline(options);
  return runAll(session, async (source, now) => ({
    wanted: routineDemand(source, now),
    reprocess: "missing",
  }));
}

interface BackfillOptions extends RangeOptions, SelectionOptions {
  readonly reprocess: "missing" | "all";
  readonly dryRun?: boolean;
  readonly inline?: boolean;
}

async function backfill(session: Session, options: BackfillOptions): Promise<number> {
  const range = rangeOf(options);
  const { stride, reprocess } = options;
  if (options.dryRun !== true) requireInline(options);
  const request = async (source: OpenSource, now: number): Promise<PlanRequest> => {
    refuseOutside(source, range, now);
    const clipped = clipToFuture(source, range, stride, now);
    return {
      wanted: clipped === undefined ? [] : [{ stride, range: clipped }],
      groupings: groupingsOf(options),
      workspaceIds: workspacesOf(
        options.workspace,
        source.workspaces.map((w) => w.workspaceId),
      ),
      reprocess,
    };
  };
  return options.dryRun === true ? dryRun(session, request) : runAll(session, request);
}

async function dryRun(
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

/** Plans and runs every source. */
async function runAll(
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

function refuseOutside(source: OpenSource, range: { start: number; end: number }, now: number): void {
  const reason =
    range.end <= source.dataStart
      ? `ends before the source's data start, ${instant(source.dataStart)}`
      : range.start > now
        ? "lies in the future"
        : undefined;
  if (reason === undefined) return;
  throw new UsageError({
    code: "range_without_data",
    message: `The range ${instant(range.start)} to ${instant(range.end)} ${reason}.`,
    next: "Ask for a range that holds usage; USAGE_DATA_START says where it begins.",
  });
}

function requireInline(options: { inline?: boolean }): void {
  if (options.inline === true) return;
  throw new UsageError({
    code: "queue_missing",
    message: "This release has no queue to hand the work to.",
    next: "Add --inline: the same work in this process.",
  });
}
