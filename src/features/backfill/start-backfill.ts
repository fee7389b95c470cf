import { UsageError } from "../../core/base/errors.ts";
import type { Database, Store } from "../../core/store/db/database.ts";
import {
  type Backfill,
  createBackfill,
  listBackfills,
  startedSince,
} from "../../core/store/work/backfills.ts";
import type { Actor } from "../../core/store/work/operator-actions.ts";
import { type BackfillRequest, refuseOutside } from "./backfill-request.ts";
import { digestOf, type PreviewedSource, planBackfill } from "./plan-backfill.ts";

/** A previewed plan. `shownAt`: epoch ms by Postgres's clock. */
interface ShownPlan {
  readonly digest: string;
  readonly shownAt: number;
}

type Started =
  | { readonly outcome: "started"; readonly backfillId: number }
  /** The plan has changed. Nothing was created. */
  | { readonly outcome: "changed" };

/**
 * Starts exactly what a preview showed. If the plan has changed, nothing is created. If an equal backfill was started since,
 * returns that backfill. Errors: `range_without_data`; `backfill_empty` for an empty plan; `source_unloaded` before the first
 * contact.
 */
export async function startShown(
  store: Store,
  source: PreviewedSource,
  backfillRequest: BackfillRequest,
  given: { shown: ShownPlan; by: Actor; now: number },
): Promise<Started> {
  const { shown, by, now } = given;
  refuseOutside(source, backfillRequest.range, now);
  if (source.stored === undefined) {
    throw new UsageError({
      code: "source_unloaded",
      message: `Nothing is loaded for source ${source.slug}.`,
      next: "Run `usage-etl sync` first.",
    });
  }
  const { sourceId } = source.stored.source;
  const requested = {
    ...backfillRequest,
    sourceId,
    workspaceIds: source.workspaceIds,
    shownAt: shown.shownAt,
  };
  // Checked first, because an equal backfill may have changed the plan.
  const same = await startedSince(store.db, requested);
  if (same !== undefined) return { outcome: "started", backfillId: same };
  const { tasks } = await planBackfill(source, backfillRequest, now);
  if (digestOf(source, backfillRequest, tasks) !== shown.digest) return { outcome: "changed" };
  if (tasks.length === 0) {
    throw new UsageError({
      code: "backfill_empty",
      message: "The backfill has nothing to fetch in that range.",
      next: "Look at its preview for the reason. Choose another range, or add --reprocess all to fetch final days again.",
    });
  }
  return { outcome: "started", backfillId: await createBackfill(store, { ...requested, tasks, by }) };
}

export async function overlapNotes(
  db: Database,
  { slug, range, stride }: { slug: string } & Pick<BackfillRequest, "range" | "stride">,
): Promise<string[]> {
  const unfinished = await listBackfills(db, { source: slug, states: ["running", "paused"] });
  const isOverlapping = (other: Backfill) =>
    other.stride === stride && Date.parse(other.from) < range.end && Date.parse(other.to) > range.start;
  return unfinished
    .filter(isOverlapping)
    .map(({ backfillId, state }) =>
      state === "running"
        ? `Backfill ${backfillId} overlaps and is running. What it loads from now on is not fetched twice.`
        : `Backfill ${backfillId} overlaps and is paused. This one fetches its tasks too.`,
    );
}
