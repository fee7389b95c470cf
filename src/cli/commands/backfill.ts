import { type Command, Option } from "commander";
import { enqueueJob } from "../../../jobs/enqueue.ts";
import { UsageError } from "../../errors.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { type Asked, type KnownSource, statusOfAsked } from "../../pipeline/sync/asked-range.ts";
import { clipToFuture, planSource } from "../../pipeline/sync/plan.ts";
import { capabilitiesOf } from "../../store/catalog/server-capabilities.ts";
import type { Database } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { listSources } from "../../store/report/overview.ts";
import {
  type Backfill,
  backfillOf,
  createBackfill,
  failedSlices,
  listBackfills,
  steerBackfill,
} from "../../store/work/backfills.ts";
import {
  describeBackfills,
  describeFailed,
  followBackfill,
  noteOverlaps,
} from "../report/backfill-report.ts";
import { endsInFuture } from "../report/plan-report.ts";
import { describeRange, exitOfRange, rangeToData } from "../report/range-report.ts";
import { EXIT, firstExit } from "../session/exit.ts";
import { type LoadPlan, loadInline } from "../session/load-inline.ts";
import {
  groupingsOf,
  type RangeOptions,
  rangeOf,
  type SelectionOptions,
  withRange,
  withSelection,
  workspacesOf,
} from "../session/options.ts";
import { refuseOutside, showPreview } from "../session/preview.ts";
import { addJob, askRedis, openSessionQueue } from "../session/queue.ts";
import { inSession, type Session } from "../session/session.ts";

interface BackfillOptions extends RangeOptions, SelectionOptions {
  readonly reprocess: "missing" | "all";
  readonly dryRun?: boolean;
  readonly inline?: boolean;
  readonly detach?: boolean;
}

export function define(backfill: Command): void {
  withSelection(withRange(backfill))
    .addOption(
      new Option("--reprocess <what>", "missing: skip what is final; all: fetch everything again")
        .choices(["missing", "all"])
        .default("missing"),
    )
    .option("--dry-run", "only show what would be fetched")
    .addOption(new Option("--inline", "run in this process, without Redis").conflicts(["wait", "detach"]))
    .addOption(new Option("--wait", "wait until it is done (default)").conflicts(["inline", "detach"]))
    .addOption(new Option("--detach", "start it and return").conflicts(["inline", "wait"]))
    .action(inSession(start));
  backfill.command("list").description("show all backfills and their progress").action(inSession(list));
  backfill
    .command("show <id>")
    .description("show one backfill and its failed fetch tasks")
    .action(inSession((session: Session, _options: object, id: string) => show(session, [toId(id)])));
  for (const action of ["pause", "resume", "cancel"] as const) {
    backfill
      .command(`${action} <id>`)
      .description(`${action} a backfill`)
      .action(
        inSession(async (session: Session, _options: object, id: string) => {
          const backfillId = toId(id);
          const steered = await steerBackfill(await session.migratedStore(), { backfillId, action });
          session.output.data([steered], describeBackfills);
        }),
      );
  }
}

async function start(session: Session, options: BackfillOptions): Promise<number> {
  if (options.dryRun === true) return showPreview(session, options);
  const range = rangeOf(options);
  const { stride, reprocess } = options;
  const groupings = groupingsOf(options);
  const planOf = async (source: OpenSource, now: number): Promise<LoadPlan> => {
    refuseOutside(source, range, now);
    const known = source.workspaces.map((w) => w.workspaceId);
    const workspaceIds = workspacesOf(options.workspace, known);
    const asked = { ...askedOf(source, { range, stride, now }), groupings, workspaceIds };
    const future = endsInFuture(range.end, asked.wanted[0]?.range.end);
    if (future !== undefined) session.output.note(future);
    // Somebody waits: failures are asked about again now, whatever their retry time.
    return { asked, slices: await planSource(source, { ...asked, reprocess, retry: "all" }) };
  };
  if (options.inline === true) return loadInline(session, "backfill", planOf);

  const redisUrl = await askRedis(session);
  const started: Backfill[] = [];
  const exit = await session.eachSource(async (source) => {
    const { sourceId, store } = source;
    // Time that a sync or another backfill is loading is planned too: this backfill ends when all of its range is loaded.
    const { asked, slices } = await planOf(source, await storeNow(store.db));
    await noteOverlaps(session, source, { range, stride });
    const { workspaceIds } = asked;
    const id = await createBackfill(store, {
      ...{ sourceId, range, stride, groupings, workspaceIds, reprocess, slices },
    });
    const queue = await openSessionQueue(session, "control", { redisUrl, slug: source.config.slug });
    // Saves some seconds: the schedule enqueues its tasks anyway, so a Redis that went away meanwhile does not matter.
    const options = { ...enqueueJob.options, jobId: `feed-for-backfill-${id}` };
    await addJob(queue, { redisUrl, name: enqueueJob.name, options }).catch(() => {});
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
    else exits.push(end === "refused" ? EXIT.refused : EXIT.done);
  }
  if (ended.length > 0) exits.push(await show(session, ended));
  return firstExit(exits);
}

/** The part of the range that can have usage, in the stride that was asked for. */
function askedOf(
  source: Pick<KnownSource, "capabilities">,
  { range, stride, now }: { range: { start: number; end: number }; stride: Backfill["stride"]; now: number },
): Pick<Asked, "wanted"> {
  const clipped = clipToFuture(source, range, stride, now);
  return { wanted: clipped === undefined ? [] : [{ stride, range: clipped }] };
}

async function list(session: Session): Promise<undefined> {
  const { db } = await session.migratedStore();
  session.output.data(await listBackfills(db), describeBackfills);
}

/** Shows backfills, the tasks of them that failed, and what the tables say about their ranges now. */
async function show(session: Session, ids: readonly number[]): Promise<number> {
  const { db } = await session.migratedStore();
  const shown = await Promise.all(
    ids.map(async (backfillId) => {
      const backfill = await backfillOf(db, backfillId);
      const [failed, range] = [await failedSlices(db, backfillId), await rangeOfBackfill(db, backfill)];
      return { backfill, failed, range };
    }),
  );
  session.output.data(
    shown.map(({ backfill, failed, range }) => ({
      ...backfill,
      failedSlices: failed,
      range: rangeToData(range),
    })),
    () =>
      shown
        .flatMap(({ backfill, failed, range }) => [
          describeBackfills([backfill]),
          ...failed.map(describeFailed),
          describeRange(range),
        ])
        .join("\n"),
  );
  // Tasks that wait are no failure: only a finished backfill lacks what is not loaded.
  return firstExit(
    shown.map(({ backfill, range }) => (backfill.finishedAt === null ? EXIT.done : exitOfRange(range))),
  );
}

async function rangeOfBackfill(db: Database, backfill: Backfill) {
  const known = (await listSources(db)).find(({ source }) => source === backfill.source);
  if (known === undefined) return [];
  const source: KnownSource = {
    sourceId: known.sourceId,
    dataStart: Date.parse(`${known.dataStart}T00:00:00Z`),
    capabilities: new Set((await capabilitiesOf(db, known.sourceId)).map(({ capability }) => capability)),
  };
  const { from, to, stride, createdAt, groupings, workspaceIds } = backfill;
  const range = { start: Date.parse(from), end: Date.parse(to) };
  const asked = askedOf(source, { range, stride, now: Date.parse(createdAt) });
  return statusOfAsked(db, source, { ...asked, groupings, workspaceIds });
}

function toId(text: string): number {
  const id = Number(text);
  // The number of a backfill is a Postgres integer.
  if (Number.isSafeInteger(id) && id > 0 && id < 2 ** 31) return id;
  throw new UsageError({
    code: "backfill_unknown",
    message: `${text} is not the number of a backfill.`,
    next: "Run `usage-etl backfill list` to see their numbers.",
  });
}
