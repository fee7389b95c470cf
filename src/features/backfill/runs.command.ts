import { type Command, InvalidArgumentError, Option } from "commander";
import { describeDuration } from "../../core/base/clock.ts";
import { outcomeOf } from "../../core/pipeline/as-run.ts";
import {
  listRuns,
  type Run,
  type RunOutcome,
  requestsOfRun,
  runOf,
} from "../../core/store/activity/run-history.ts";
import { type FailedTask, failedTasks } from "../../core/store/work/backfills.ts";
import { RUN_KINDS, type RunKind } from "../../core/store/work/runs.ts";
import { EXIT } from "../../terminal/exit.ts";
import { numberOf } from "../../terminal/options.ts";
import { count, instant, linesOf, second, tableOf, wrapped } from "../../terminal/output.ts";
import { inSession, type Session } from "../../terminal/session.ts";

interface ListOptions {
  readonly kind?: RunKind;
  readonly source?: string;
  readonly limit: number;
}

export const examples = [
  ["runs list", "the newest twenty"],
  ["runs list --kind reconcile --limit 100", "only reconciliations"],
] as const;

export function define(runs: Command): void {
  runs
    .command("list", { isDefault: true })
    .description("show the newest runs of every kind")
    .addOption(new Option("--kind <kind>", "only runs of this kind").choices(RUN_KINDS))
    .option("--source <slug>", "only runs of this source")
    .option("--limit <count>", "how many", parseLimit, 20)
    .action(inSession(list));
  runs
    .command("show <id>")
    .description("show one run: its requests by dimension, and why it failed")
    .action(inSession(show));
}

async function list(session: Session, { kind, source, limit }: ListOptions): Promise<undefined> {
  const { db } = await session.migratedStore();
  session.output.data(await listRuns(db, { kind, source, most: limit }), describeRuns);
}

async function show(session: Session, _: object, id = ""): Promise<number> {
  const { db } = await session.migratedStore();
  const run = await runOf(db, numberOf("run", id));
  const requests = await requestsOfRun(db, run.runId);
  const failed = run.backfillId === null ? [] : await failedTasks(db, run.backfillId);
  session.output.data({ ...run, byRequest: requests, failedTasks: failed }, () =>
    linesOf(
      describeRun(run),
      requests.length > 0 &&
        tableOf(requests, {
          dimension: "groupBy",
          stride: "stride",
          outcome: "outcome",
          code: "code",
          requests: "requests",
          records: "records",
        }),
      failed.map(describeFailed),
    ),
  );
  return exitOfOutcome(run.outcome);
}

const MOST = 1000;

function parseLimit(text: string): number {
  const most = Number(text);
  if (Number.isSafeInteger(most) && most > 0 && most <= MOST) return most;
  throw new InvalidArgumentError(`It is not a number from 1 to ${MOST}.`);
}

function describeRuns(runs: readonly Run[]): string {
  if (runs.length === 0) return "Nothing ran yet. Run `usage-etl sync --inline`.";
  const hasSources = new Set(runs.map(({ source }) => source)).size > 1;
  const width = Math.max(...runs.map(({ runId }) => String(runId).length));
  const reasons = runs
    .filter(({ reason }) => reason !== null)
    .map((run) => wrapped(`${String(run.runId).padStart(width)}  `, reasonOf(run)));
  return linesOf(
    tableOf(runs, {
      run: "runId",
      source: hasSources && "source",
      kind: nameOf,
      "started (UTC)": ({ startedAt }) => second(startedAt).slice(0, -":00".length),
      took: ({ seconds }) => describeDuration(seconds * 1000),
      requests: "requests",
      outcome: outcomeOf,
    }),
    reasons.length > 0 && ["", ...reasons],
  );
}

function reasonOf({ reason, code }: Run): string {
  return `${reason ?? ""}${code === null ? "" : ` [${code}]`}`;
}

function describeRun(run: Run): string {
  const { runId, source, startedAt, finishedAt, seconds, requests, reason } = run;
  const took = describeDuration(seconds * 1000);
  return linesOf(
    `Run ${runId}: ${nameOf(run)} of source ${source}, ${outcomeOf(run)}`,
    `started   ${second(startedAt)} UTC`,
    finishedAt === null ? `running   for ${took}` : `finished  ${second(finishedAt)} UTC, after ${took}`,
    `requests  ${requests === null ? "none for usage" : count(requests)}`,
    reason !== null && wrapped("reason    ", reasonOf(run)),
  );
}

function nameOf({ kind, backfillId }: Run): string {
  return backfillId === null ? kind : `backfill ${backfillId}`;
}

function exitOfOutcome(outcome: RunOutcome): number {
  if (outcome === "differs") return EXIT.mismatch;
  return ["failed", "partly_failed", "lost"].includes(outcome) ? EXIT.partlyFailed : EXIT.done;
}

export function describeFailed({ workspaceIds, from, to, ...task }: FailedTask): string {
  const where = workspaceIds.length === 1 ? workspaceIds[0] : `${workspaceIds.length} workspaces`;
  const what = `${task.groupBy} ${task.stride} ${instant(from)} to ${instant(to)}, ${where}`;
  return wrapped("failed: ", `${what}: ${task.message} [${task.code}]`);
}
