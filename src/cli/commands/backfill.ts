import { type Command, Option } from "commander";
import { enqueueJob } from "../../../jobs/feed.ts";
import { systemClock } from "../../clock.ts";
import { UsageError } from "../../errors.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { clipToFuture, type PlanRequest, planSource } from "../../pipeline/sync/plan.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  type Backfill,
  backfillOf,
  createBackfill,
  type FailedSlice,
  failedSlices,
  listBackfills,
  steerBackfill,
} from "../../store/work/backfills.ts";
import { slicesInFlight } from "../../store/work/slices.ts";
import { instant, table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import { loadInline } from "../session/load-inline.ts";
import {
  groupingsOf,
  type RangeOptions,
  rangeOf,
  type SelectionOptions,
  withRange,
  withSelection,
  workspacesOf,
} from "../session/options.ts";
import { openControl, requireRedis } from "../session/queue.ts";
import { inSession, requireSchema, type Session } from "../session/session.ts";

interface BackfillOptions extends RangeOptions, SelectionOptions {
  readonly reprocess: "missing" | "all";
  readonly dryRun?: boolean;
  readonly inline?: boolean;
  readonly detach?: boolean;
}

/** How often a waiting person is told how far it is. */
const LOOK_EVERY_MS = 500;

export function addBackfillCommands(program: Command): void {
  const backfill = withSelection(withRange(program.command("backfill")))
    .description("load a range on demand, by default through the queue and waiting for its end")
    .addOption(
      new Option("--reprocess <what>", "leave settled time alone, or fetch all of it again")
        .choices(["missing", "all"])
        .default("missing"),
    )
    .option("--dry-run", "only say what would be fetched")
    .addOption(new Option("--inline", "in this process, without the queue").conflicts(["wait", "detach"]))
    .addOption(new Option("--wait", "wait for its end (the default)").conflicts(["inline", "detach"]))
    .addOption(new Option("--detach", "enter it and return").conflicts(["inline", "wait"]))
    .action(inSession(start));
  backfill.command("list").description("all backfills and how far they are").action(inSession(list));
  backfill
    .command("show <id>")
    .description("one backfill, with the slices that failed")
    .action(inSession((session: Session, _options: object, id: string) => show(session, toId(id))));
  for (const action of ["pause", "resume", "cancel"] as const) {
    backfill
      .command(`${action} <id>`)
      .description(`${action} a backfill`)
      .action(
        inSession((session: Session, _options: object, id: string) => steer(session, toId(id), action)),
      );
  }
}

async function start(session: Session, options: BackfillOptions): Promise<number> {
  const range = rangeOf(options);
  const { stride, reprocess } = options;
  const groupings = groupingsOf(options);
  const request = async (source: OpenSource, now: number): Promise<PlanRequest> => {
    refuseOutside(source, range, now);
    const clipped = clipToFuture(source, range, stride, now);
    return {
      wanted: clipped === undefined ? [] : [{ stride, range: clipped }],
      groupings,
      workspaceIds: workspacesOf(
        options.workspace,
        source.workspaces.map((w) => w.workspaceId),
      ),
      reprocess,
    };
  };
  if (options.dryRun === true) return showDryRun(session, request);
  if (options.inline === true) return loadInline(session, request);

  const redis = requireRedis(session);
  const started: Backfill[] = [];
  const exit = await session.eachSource(async (source) => {
    const plan = await request(source, await storeNow(source.store.db));
    const inFlight = await slicesInFlight(source.store.db, source.sourceId);
    const slices = await planSource(source, { ...plan, inFlight });
    await tellOfOverlaps(session, source, { range, stride });
    const workspaces = plan.workspaceIds?.length ?? source.workspaces.length;
    const { sourceId, store } = source;
    const id = await createBackfill(store, {
      sourceId,
      range,
      stride,
      groupings,
      workspaces,
      reprocess,
      slices,
    });
    const queue = openControl(session, redis, source.config.slug);
    // A nudge: without it the next feed comes within seconds anyway.
    await queue.add(enqueueJob.name, {}, { ...enqueueJob.options, jobId: `feed-for-backfill-${id}` });
    started.push(await backfillOf(store.db, id));
    return EXIT.done;
  });
  if (options.detach === true || exit !== EXIT.done) {
    session.output.data(started, describeBackfills);
    return exit;
  }
  const exits = [];
  for (const { backfillId } of started) exits.push(await waitFor(session, backfillId));
  return exits.find((code) => code !== EXIT.done) ?? EXIT.done;
}

/** How many requests a demand takes, and how long at the budget. */
async function showDryRun(
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

/** What another unfinished backfill fetches already is left to it; the person should know. */
async function tellOfOverlaps(
  { output }: Session,
  source: OpenSource,
  wanted: { range: { start: number; end: number }; stride: string },
): Promise<void> {
  for (const other of await listBackfills(source.store.db)) {
    const isUnfinished = other.state === "running" || other.state === "paused";
    const overlaps = Date.parse(other.from) < wanted.range.end && Date.parse(other.to) > wanted.range.start;
    if (!isUnfinished || !overlaps || other.stride !== wanted.stride || other.source !== source.config.slug)
      continue;
    output.note(
      other.state === "running"
        ? `Backfill ${other.backfillId} overlaps and is running: what it has in flight is left to it.`
        : `Backfill ${other.backfillId} overlaps and is paused: its slices are fetched by this one too.`,
    );
  }
}

/** Shows how a backfill goes until it ends or is interrupted; it goes on without anybody watching. */
async function waitFor(session: Session, backfillId: number): Promise<number> {
  const { output, signal } = session;
  const store = await session.store();
  const progress = output.progress(`backfill ${backfillId}`);
  try {
    for (;;) {
      const backfill = await backfillOf(store.db, backfillId);
      const { total, done, failed, state } = backfill;
      progress.update({ done: done + failed, total });
      if (state === "done" || state === "cancelled") break;
      if (signal.aborted) {
        output.note(
          `Backfill ${backfillId} goes on by itself; \`usage-etl backfill show ${backfillId}\` shows it.`,
        );
        return EXIT.done;
      }
      await systemClock.wait(LOOK_EVERY_MS);
    }
  } finally {
    progress.stop();
  }
  return show(session, backfillId);
}

async function list(session: Session): Promise<undefined> {
  const store = await session.store();
  await requireSchema(store);
  session.output.data(await listBackfills(store.db), describeBackfills);
}

async function show(session: Session, backfillId: number): Promise<number> {
  const store = await session.store();
  await requireSchema(store);
  const backfill = await backfillOf(store.db, backfillId);
  const failed = await failedSlices(store.db, backfillId);
  session.output.data({ ...backfill, failedSlices: failed }, () =>
    [describeBackfills([backfill]), ...failed.map(describeFailed)].join("\n"),
  );
  return failed.length > 0 ? EXIT.partlyFailed : EXIT.done;
}

async function steer(
  session: Session,
  backfillId: number,
  action: "pause" | "resume" | "cancel",
): Promise<undefined> {
  const store = await session.store();
  await requireSchema(store);
  session.output.data(await steerBackfill(store, { backfillId, action }), (backfill) =>
    describeBackfills([backfill]),
  );
}

function describeBackfills(backfills: readonly Backfill[]): string {
  if (backfills.length === 0) return "There is no backfill.";
  return table(
    ["id", "source", "state", "stride", "from", "to", "slices", "done", "failed", "waiting"],
    backfills.map((b) => [
      b.backfillId,
      b.source,
      b.state,
      b.stride,
      instant(Date.parse(b.from)),
      instant(Date.parse(b.to)),
      b.total,
      b.done,
      b.failed,
      b.waiting,
    ]),
  );
}

function describeFailed(slice: FailedSlice): string {
  const whom =
    slice.workspaceIds.length === 1 ? slice.workspaceIds[0] : `${slice.workspaceIds.length} workspaces`;
  const when = `${instant(Date.parse(slice.from))} to ${instant(Date.parse(slice.to))}`;
  return `failed: ${slice.groupBy} ${slice.stride} ${when}, ${whom}: ${slice.message} [${slice.code}]`;
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

function toId(text: string): number {
  const id = Number(text);
  if (Number.isSafeInteger(id) && id > 0) return id;
  throw new UsageError({
    code: "backfill_unknown",
    message: `${text} is not the number of a backfill.`,
    next: "`usage-etl backfill list` shows those there are.",
  });
}
