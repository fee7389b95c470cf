import { type Command, InvalidArgumentError, Option } from "commander";
import { describeDuration } from "../../../clock.ts";
import { UsageError } from "../../../errors.ts";
import { outcomeOf } from "../../../pipeline/run-outcome.ts";
import { listRuns, type Run, type RunOutcome, requestsOfRun, runOf } from "../../../store/activity/runs.ts";
import { type FailedTask, failedTasks } from "../../../store/work/backfills.ts";
import { RUN_KINDS, type RunKind } from "../../../store/work/runs.ts";
import { instant, rowsOf, second, table, wrapped } from "../../report/output.ts";
import { EXIT } from "../../session/exit.ts";
import { inSession, type Session } from "../../session/session.ts";

interface ListOptions {
  readonly kind?: RunKind;
  readonly source?: string;
  readonly limit: number;
}

export function define(runs: Command): void {
  runs
    .command("list", { isDefault: true })
    .description("show the newest syncs, backfills, reconciliations, checks of totals, probes and files")
    .addOption(new Option("--kind <kind>", "only runs of this kind").choices(RUN_KINDS))
    .option("--source <slug>", "only runs of this source")
    .option("--limit <count>", "how many", parseLimit, 20)
    .action(inSession(list));
  runs
    .command("show <id>")
    .description("show one run: its requests by dimension, and its reason")
    .action(inSession((session: Session, _options: object, id: string) => show(session, id)));
}

async function list(session: Session, { kind, source, limit }: ListOptions): Promise<undefined> {
  const { db } = await session.migratedStore();
  session.output.data(await listRuns(db, { kind, source, most: limit }), describeRuns);
}

/** Ends with the exit code of the run: 3 where something failed, 4 where figures differ. */
async function show(session: Session, id: string): Promise<number> {
  const { db } = await session.migratedStore();
  const run = await runOf(db, toId(id));
  const requests = await requestsOfRun(db, run.runId);
  const failed = run.backfillId === null ? [] : await failedTasks(db, run.backfillId);
  session.output.data({ ...run, byRequest: requests, failedTasks: failed }, () =>
    [
      describeRun(run),
      ...(requests.length === 0
        ? []
        : [
            table(
              ["dimension", "stride", "outcome", "code", "requests", "records"],
              rowsOf(requests, ["groupBy", "stride", "outcome", "code", "requests", "records"]),
            ),
          ]),
      ...failed.map(describeFailed),
    ].join("\n"),
  );
  return exitOfOutcome(run.outcome);
}

const MOST = 1000;

function parseLimit(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count > 0 && count <= MOST) return count;
  throw new InvalidArgumentError(`It is not a number from 1 to ${MOST}.`);
}

function toId(text: string): number {
  const id = Number(text);
  if (Number.isSafeInteger(id) && id > 0 && id < 2 ** 31) return id;
  throw new UsageError({
    code: "run_unknown",
    message: `${text} is not the number of a run.`,
    next: "Run `usage-etl runs list` to see their numbers.",
  });
}

export function describeRuns(runs: readonly Run[]): string {
  if (runs.length === 0) return "Nothing ran yet. Run `usage-etl sync --inline`.";
  const hasSources = new Set(runs.map(({ source }) => source)).size > 1;
  const head = [
    "run",
    ...(hasSources ? ["source"] : []),
    "kind",
    "started (UTC)",
    "took",
    "requests",
    "outcome",
  ];
  const rows = runs.map((run) => [
    run.runId,
    ...(hasSources ? [run.source] : []),
    ...[nameOf(run), second(run.startedAt).slice(0, -":00".length), describeDuration(run.seconds * 1000)],
    ...[run.requests, outcomeOf(run)],
  ]);
  const width = Math.max(...runs.map(({ runId }) => String(runId).length));
  const reasons = runs
    .filter(({ reason }) => reason !== null)
    .map((run) => wrapped(`${String(run.runId).padStart(width)}  `, reasonOf(run)));
  return [table(head, rows), ...(reasons.length === 0 ? [] : ["", ...reasons])].join("\n");
}

function reasonOf({ reason, code }: Run): string {
  return `${reason ?? ""}${code === null ? "" : ` [${code}]`}`;
}

export function describeRun(run: Run): string {
  const { runId, source, startedAt, finishedAt, seconds, requests, reason } = run;
  const lines = [
    `Run ${runId}: ${nameOf(run)} of source ${source}, ${outcomeOf(run)}`,
    `started   ${second(startedAt)} UTC`,
    finishedAt === null
      ? `running   for ${describeDuration(seconds * 1000)}`
      : `finished  ${second(finishedAt)} UTC, after ${describeDuration(seconds * 1000)}`,
    `requests  ${requests === null ? "none, or not counted" : requests.toLocaleString("en-US")}`,
  ];
  if (reason !== null) lines.push(wrapped("reason    ", reasonOf(run)));
  return lines.join("\n");
}

function nameOf({ kind, backfillId }: Run): string {
  return backfillId === null ? kind : `backfill ${backfillId}`;
}

/** The exit code of the command that ran, as far as the tables know it. */
export function exitOfOutcome(outcome: RunOutcome): number {
  if (outcome === "differs") return EXIT.mismatch;
  return outcome === "failed" || outcome === "partly_failed" || outcome === "lost"
    ? EXIT.partlyFailed
    : EXIT.done;
}

export function describeFailed(task: FailedTask): string {
  const { workspaceIds } = task;
  const where = workspaceIds.length === 1 ? workspaceIds[0] : `${workspaceIds.length} workspaces`;
  const when = `${instant(task.from)} to ${instant(task.to)}`;
  return wrapped(
    "failed: ",
    `${task.groupBy} ${task.stride} ${when}, ${where}: ${task.message} [${task.code}]`,
  );
}
