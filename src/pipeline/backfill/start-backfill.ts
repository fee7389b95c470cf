import {
  type PlanDifference,
  type PlannedWindow,
  planDifference,
  windowsOf,
} from "../../domain/planning/planned-windows.ts";
import { UsageError } from "../../errors.ts";
import { createBackfill } from "../../store/work/backfills.ts";
import type { Actor } from "../../store/work/operator-actions.ts";
import { type BackfillPlan, digestOf, planBackfill } from "./plan-backfill.ts";
import type { PreviewedSource } from "./previewed-source.ts";
import { refuseOutside, type Wish } from "./wish.ts";

/** What a preview showed, and when (epoch milliseconds by Postgres's clock). */
export interface ShownPlan {
  readonly digest: string;
  readonly shownAt: number;
  readonly windows: readonly PlannedWindow[];
}

export type Started =
  | { readonly outcome: "started"; readonly backfillId: number; readonly plan: BackfillPlan }
  /** The plan is another one by now. Nothing was entered. */
  | { readonly outcome: "changed"; readonly difference: PlanDifference };

/**
 * Starts what a preview showed, and only that: the plan is made again, and where it differs nothing is entered.
 *
 * Errors: `range_without_data`; `backfill_empty` where nothing would be fetched; `source_unloaded` before the first contact.
 */
export async function startShown(
  source: PreviewedSource,
  wish: Wish,
  given: { shown: ShownPlan; by: Actor; now: number },
): Promise<Started> {
  const { shown, by, now } = given;
  refuseOutside(source, wish.range, now);
  const plan = await planBackfill(source, wish, now);
  const difference = planDifference(shown.windows, windowsOf(plan.slices));
  if (digestOf(source, wish, plan.slices) !== shown.digest) return { outcome: "changed", difference };
  if (source.stored === undefined) {
    throw new UsageError({
      code: "source_unloaded",
      message: `Nothing is loaded for source ${source.slug}.`,
      next: "Run `usage-etl sync` first.",
    });
  }
  if (plan.slices.length === 0) {
    throw new UsageError({
      code: "backfill_empty",
      message: "Nothing would be fetched: all of that range is final.",
      next: "Choose another range, or fetch everything of it again (--reprocess all).",
    });
  }
  const { store, source: known } = source.stored;
  const { range, stride, groupings, reprocess } = wish;
  const backfillId = await createBackfill(store, {
    ...{ sourceId: known.sourceId, range, stride, groupings, reprocess, by },
    ...{ workspaceIds: source.workspaceIds, slices: plan.slices, shownAt: shown.shownAt },
  });
  return { outcome: "started", backfillId, plan };
}
