import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../../errors.ts";
import { listRuns, requestsOfRun, runOf } from "../../store/activity/runs.ts";
import { failedTasks } from "../../store/work/backfills.ts";
import { RUN_KINDS, type RunKind } from "../../store/work/runs.ts";
import { describeFailed } from "../report/backfill-report.ts";
import { rowsOf, table } from "../report/output.ts";
import { describeRun, describeRuns, exitOfOutcome } from "../report/runs-report.ts";
import { inSession, type Session } from "../session/session.ts";

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
