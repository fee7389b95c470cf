import type { CalendarMonth } from "../../domain/months/month.ts";
import { type ProviderMonth, providerMonth } from "../../store/bill/provider-month.ts";
import type { Store } from "../../store/db/database.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import { type CloseResult, closeMonth } from "../../store/months/month-close.ts";
import { type OtherUsage, otherUsage } from "../../store/months/other-usage.ts";
import type { Actor } from "../../store/work/operator-actions.ts";
import { leftOut, monthOf, sourcesToClose, withinMonth } from "./asked.ts";

export interface CloseOrder {
  /** Such as `2026-03`. */
  readonly month: string;
  /** Slugs of the configured sources; none: all that are stored. */
  readonly slugs: readonly string[];
  /** Platform ids of workspaces to leave out. */
  readonly without?: readonly string[];
  readonly acceptDisagreements?: boolean;
  readonly settleAfterMs: number;
  readonly by: Actor;
  /** Digests of what somebody looked at, one for each source: see `CloseRequest`. */
  readonly expectedDigests?: readonly string[];
}

export interface ClosedSource {
  readonly source: string;
  /** The workspaces of this source that were asked to be left out. */
  readonly asked: readonly string[];
  readonly result: CloseResult;
  /** What the billing provider's totals say of the month. */
  readonly provider: ProviderMonth;
  /** What is known of other usage than traces of all tiers, as far as it is wanted or loaded. */
  readonly others: readonly OtherUsage[];
}

/**
 * Closes a month of each source that has days in it. Errors: `month_invalid`, `month_not_over`, `month_before_data`,
 * `source_unloaded`, `workspace_unknown`, `workspaces_unknown`, `month_changed`; then nothing was closed of that source and those after it.
 */
export async function closeSources(
  store: Store,
  order: CloseOrder,
): Promise<{ month: CalendarMonth; closed: ClosedSource[] }> {
  const { slugs, without = [], acceptDisagreements = false, settleAfterMs } = order;
  const month = monthOf(order.month, await storeNow(store.db));
  const sources = await sourcesToClose(store.db, slugs);
  const out = leftOut(
    without,
    sources.flatMap(({ workspaceIds }) => workspaceIds),
  );
  const closed: ClosedSource[] = [];
  for (const { sourceId, source, workspaceIds } of withinMonth(month, sources)) {
    const asked = out.filter((id) => workspaceIds.includes(id));
    const result = await closeMonth(store, {
      ...{ sourceId, monthStart: month.start, without: asked },
      ...{ settleAfterMs, acceptDisagreements, by: order.by },
      ...(order.expectedDigests === undefined ? {} : { expectedDigests: order.expectedDigests }),
    });
    const provider = await providerMonth(store.db, { sourceId, monthStart: month.start });
    const range = { start: Date.parse(month.start), end: Date.parse(month.end) };
    const others = await otherUsage(store.db, { sourceId, range });
    closed.push({ source, asked, result, provider, others });
  }
  return { month, closed };
}

/** Whether the month is closed, and without the workspaces that were asked to be left out, and no others. */
export function isAsAsked({ result, asked }: Pick<ClosedSource, "result" | "asked">): boolean {
  return result.state !== "open" && [...asked].sort().join() === result.without.join();
}
