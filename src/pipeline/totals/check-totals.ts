import { type Reach, rangeOfReach } from "../../domain/planning/control.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  type CheckCounts,
  knownFindings,
  type NamedFinding,
  noteCheck,
} from "../../store/reconcile/control-findings.ts";
import { endUnread } from "../../store/reconcile/ended.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import { statesOf } from "../source/scope-states.ts";
import type { OpenSource } from "../source/source.ts";
import type { CheckContext, TotalsFailure } from "./check-context.ts";
import { countDays } from "./count-days.ts";
import { checkGroupings } from "./grouping-totals.ts";
import { checkStrides } from "./stride-totals.ts";

export { REACHES } from "../../domain/planning/control.ts";

export interface TotalsResult extends CheckCounts {
  /** The settled days that the check is about. */
  readonly range: Interval;
  /** Days x scopes in which a difference is left: from a total, or from the export. */
  readonly daysDisproved: number;
  /** Days x scopes that are not loaded and final. They are among those that wait. */
  readonly daysNotFinal: number;
  /** Windows that were not checked: access to the workspace is not proven. */
  readonly unverified: number;
  /** What differs in the range after the check, whoever found it. */
  readonly findings: readonly NamedFinding[];
  readonly failed: readonly TotalsFailure[];
}

/**
 * Checks settled days against totals: their sums against windows of whole weeks, months and years, one request for up to
 * a year of days, and the sums of each dimension against the workspace's. Where a total differs, the days are fetched
 * again. If they are equal then, it was a restatement; else the window is kept as a difference with both numbers.
 */
export async function checkTotals(
  source: OpenSource,
  reach: Reach,
  onProgress?: OnProgress,
): Promise<TotalsResult> {
  const { sourceId, store, dataStart, workspaces } = source;
  const now = await storeNow(store.db);
  const settled = { start: dataStart, end: floorToGrid(now - source.settings.settleAfterMs, DAY_MS) };
  const range = rangeOfReach(reach, settled);
  if (range.start >= range.end) return { ...NOTHING, range, findings: [], failed: [] };
  await endUnread(store.db, { sourceId, workspaceIds: workspaces.map((one) => one.workspaceId) });
  const states = await statesOf(source, "day");
  // Which side is wrong is not known, so known differences are not fetched again. The widest check does, to end healed ones.
  const known = reach === "all" ? [] : await knownFindings(store.db, { sourceId, range: settled });
  const context: CheckContext = { source, states, settled, range, known };

  const strides = await checkStrides(context, onProgress);
  const groupings = await checkGroupings(context);
  const findings = await knownFindings(store.db, { sourceId, range });
  const contradictions = findings.filter((finding) => finding.state === "platform_disagrees");
  const counts = {
    requests: strides.requests + groupings.requests,
    ...(await countDays(context, { proved: strides.proved, contradictions })),
    restated: strides.restated + groupings.restated,
    differences: contradictions.length,
    failures: strides.failed.length + groupings.refetchFailures + strides.refetchFailures,
    unverified: strides.unverified,
  };
  await noteCheck(store.db, { sourceId, range, counts });
  return { ...counts, range, findings, failed: strides.failed };
}

const NOTHING = {
  ...{ requests: 0, restated: 0, differences: 0, failures: 0, unverified: 0 },
  ...{ daysProved: 0, daysWaiting: 0, daysDisproved: 0, daysNotFinal: 0 },
};
