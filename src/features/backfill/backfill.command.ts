import { type Command, Option } from "commander";
import { enqueueJob } from "../../../jobs/enqueue.ts";
import { systemClock } from "../../core/base/clock.ts";
import { METER_NAME } from "../../core/domain/usage/meter.ts";
import { learnRequested } from "../../core/pipeline/source/learn-meters.ts";
import { type OpenSource, startOf } from "../../core/pipeline/source/source.ts";
import { rangeOfBackfill } from "../../core/pipeline/sync/requested-range.ts";
import {
  type Backfill,
  backfillOf,
  createBackfill,
  describeRequested,
  failedTasks,
  listBackfills,
  steerBackfill,
} from "../../core/store/work/backfills.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { recordAction } from "../../core/store/work/operator-actions.ts";
import { EXIT, firstExit } from "../../terminal/exit.ts";
import { describeRange, exitOfRange, rangeToData } from "../../terminal/load-report.ts";
import {
  numberOf,
  type RangeOptions,
  type SelectionOptions,
  withRange,
  withSelection,
  withSource,
} from "../../terminal/options.ts";
import { instant, linesOf, tableOf } from "../../terminal/output.ts";
import { addJob, openSessionQueue, queryRedis } from "../../terminal/queue.ts";
import { commandActor, inSession, inSessionOfSource, type Session } from "../../terminal/session.ts";
import { eachSource, type LoadPlan, loadInline } from "../../terminal/sources.ts";
import { endsInFuture, refuseOutside, workspacesOf } from "./backfill-request.ts";
import { backfillRequestOf, showPreview } from "./plan.command.ts";
import { planBackfill, previewedOpen } from "./plan-backfill.ts";
import { describeFailed } from "./runs.command.ts";
import { overlapNotes } from "./start-backfill.ts";

interface BackfillOptions extends RangeOptions, SelectionOptions {
  readonly reprocess: "missing" | "all";
  readonly dryRun?: boolean;
  readonly inline?: boolean;
  readonly detach?: boolean;
}

export const examples = [
  ["backfill --from 2026-01-01 --to 2026-03-01", "load two months and wait"],
  [
    "backfill --from 2026-01-01 --to 2026-03-01 --reprocess all --dry-run",
    "what loading them again would request",
  ],
] as const;

export function define(backfill: Command): void {
  withSelection(withRange(withSource(backfill)))
    .addOption(
      new Option("--reprocess <what>", "missing: skip what is final; all: fetch everything again")
        .choices(["missing", "all"])
        .default("missing"),
    )
    .option("--dry-run", "only show what would be fetched")
    .addOption(new Option("--inline", "run in this process, without Redis").conflicts(["wait", "detach"]))
    .addOption(new Option("--wait", "wait until it is done (default)").conflicts(["inline", "detach"]))
    .addOption(new Option("--detach", "start it and return").conflicts(["inline", "wait"]))
    .action(inSessionOfSource(start));
  backfill.command("list").description("show all backfills and their progress").action(inSession(list));
  backfill
    .command("show <id>")
    .description("show one backfill and its failed fetch tasks")
    .action(
      inSession((session: Session, _options: object, id: string) =>
        show(session, [numberOf("backfill", id)]),
      ),
    );
  for (const [action, description] of STEERING) {
    backfill
      .command(`${action} <id>`)
      .description(description)
      .action(
        inSession(async (session: Session, _options: object, id: string) => {
          const order = { backfillId: numberOf("backfill", id), action, by: commandActor() };
          const steered = await steerBackfill(await session.migratedStore(), order);
          session.output.data([steered], describeBackfills);
        }),
      );
  }
}

const STEERING = [
  ["pause", "pause a backfill"],
  ["resume", "resume a backfill"],
  ["cancel", "cancel a backfill"],
  ["retry", "fetch the failed fetch tasks of a backfill again"],
] as const;

async function start(session: Session, options: BackfillOptions): Promise<number> {
  if (options.dryRun === true) return showPreview(session, options);
  const backfillRequest = backfillRequestOf(options);
  const { meter, range, stride, groupings, reprocess } = backfillRequest;
  const planOf = async (source: OpenSource, now: number): Promise<LoadPlan> => {
    const uncounted = await learnRequested(source, meter);
    if (uncounted !== undefined) {
      const { slug } = source.config;
      session.output.note(
        `The server of source ${slug} is not known to count ${METER_NAME[meter]}, so nothing of that is loaded: ${uncounted}`,
      );
    }
    refuseOutside({ dataStart: startOf(source, meter) }, range, now);
    const known = previewedOpen(source);
    const workspaceIds = workspacesOf(options.workspace, known.workspaceIds);
    const planned = await planBackfill({ ...known, workspaceIds }, backfillRequest, now);
    const future = endsInFuture(range.end, planned.range?.end);
    if (future !== undefined) session.output.note(future);
    const wanted = planned.range === undefined ? [] : [{ meter, stride, range: planned.range }];
    const requested = { wanted, groupings, workspaceIds };
    return { requested, tasks: planned.tasks, isRepair: reprocess === "all" };
  };
  if (options.inline === true) {
    return loadInline(session, "backfill", async (source, now) => {
      const plan = await planOf(source, now);
      const { workspaceIds } = plan.requested;
      await recordAction(source.store.db, commandActor(), {
        sourceId: source.sourceId,
        action: "backfill.start",
        detail: `inline: ${describeRequested({ ...backfillRequest, tasks: plan.tasks, workspaceIds })}`,
      });
      return plan;
    });
  }

  const redis = await queryRedis(session);
  const started: Backfill[] = [];
  const exit = await eachSource(session, async (source) => {
    const { sourceId, store } = source;
    // Includes time that others are loading, because the backfill ends when its whole range is loaded.
    const { requested, tasks } = await planOf(source, await storeNow(store.db));
    const overlaps = await overlapNotes(store.db, { slug: source.config.slug, range, stride });
    for (const note of overlaps) session.output.note(note);
    const { workspaceIds } = requested;
    const order = { ...backfillRequest, sourceId, workspaceIds, tasks, by: commandActor() };
    const id = await createBackfill(store, order);
    const queue = await openSessionQueue(session, "control", { redis, slug: source.config.slug });
    // Saves some seconds. The schedule enqueues the tasks anyway, so an error of Redis is ignored.
    const options = { ...enqueueJob.options, jobId: `enqueue-for-backfill-${id}` };
    await addJob(queue, { redis, name: enqueueJob.name, options }).catch(() => {});
    started.push(await backfillOf(store.db, id));
    return EXIT.done;
  });
  if (options.detach === true || exit !== EXIT.done) {
    session.output.data(started, describeBackfills);
    return exit;
  }
  const ended: number[] = [];
  const exits: number[] = [];
  for (const { backfillId } of started) {
    const end = await followBackfill(session, backfillId);
    if (end === "ended") ended.push(backfillId);
    else exits.push(end === "refused" ? EXIT.refused : EXIT.interrupted);
  }
  if (ended.length > 0) exits.push(await show(session, ended));
  return firstExit(exits);
}

async function list(session: Session): Promise<undefined> {
  const { db } = await session.migratedStore();
  session.output.data(await listBackfills(db), describeBackfills);
}

async function show(session: Session, ids: readonly number[]): Promise<number> {
  const { db } = await session.migratedStore();
  const shown = await Promise.all(
    ids.map(async (backfillId) => {
      const backfill = await backfillOf(db, backfillId);
      const failed = await failedTasks(db, backfillId);
      return { backfill, failed, range: await rangeOfBackfill(db, backfill) };
    }),
  );
  session.output.data(
    shown.map(({ backfill, failed, range }) => ({
      ...backfill,
      failedTasks: failed,
      range: rangeToData(range),
    })),
    () =>
      linesOf(
        shown.flatMap(({ backfill, failed, range }) => [
          describeBackfills([backfill]),
          ...failed.map(describeFailed),
          describeRange(range),
        ]),
      ),
  );
  // Waiting tasks are no failure, so only a finished backfill can fail.
  return firstExit(
    shown.map(({ backfill, range }) => (backfill.finishedAt === null ? EXIT.done : exitOfRange(range))),
  );
}

const LOOK_EVERY_MS = 500;

/** Shows progress until the backfill ends. After Ctrl-C or a refused key, the backfill continues in the service. */
async function followBackfill(
  session: Session,
  backfillId: number,
): Promise<"ended" | "interrupted" | "refused"> {
  const { output, signal } = session;
  const { db } = await session.store();
  return output.progress({ label: `backfill ${backfillId}`, unit: "fetch tasks" }, async (update) => {
    for (;;) {
      const { total, done, failed, state, refused } = await backfillOf(db, backfillId);
      update({ done: done + failed, total, paused: state === "paused" });
      if (state === "done" || state === "cancelled") return "ended";
      if (signal.aborted || refused !== null) {
        if (refused !== null) output.note(`The platform refuses the key: ${refused}`);
        const when = refused === null ? "" : " once the key is accepted";
        output.note(
          `Backfill ${backfillId} continues in the service${when}. \`usage-etl backfill show ${backfillId}\` shows its progress.`,
        );
        return refused === null ? "interrupted" : "refused";
      }
      await systemClock.wait(LOOK_EVERY_MS);
    }
  });
}

export function describeBackfills(backfills: readonly Backfill[]): string {
  if (backfills.length === 0) return "There is no backfill.";
  const hasSources = new Set(backfills.map(({ source }) => source)).size > 1;
  return tableOf(backfills, {
    id: "backfillId",
    source: hasSources && "source",
    state: ({ state, failed }) => (failed > 0 ? `${state}, ${failed} failed` : state),
    stride: "stride",
    from: ({ from }) => instant(from),
    to: ({ to }) => instant(to),
    "fetch tasks": "total",
    waiting: "waiting",
  });
}
