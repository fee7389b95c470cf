import { type Reach, rangeOfReach } from "../../domain/planning/control.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  type CheckCounts,
  type Finding,
  knownFindings,
  noteCheck,
} from "../../store/reconcile/control-findings.ts";
import type { OnProgress } from "../extract/sequentially.ts";
import { statesOf } from "../source/scope-states.ts";
import type { OpenSource } from "../source/source.ts";
import type { CheckContext, TotalsFailure } from "./check-context.ts";
import { checkGroupings } from "./grouping-totals.ts";
import { checkStrides } from "./stride-totals.ts";

export { REACHES } from "../../domain/planning/control.ts";

export interface TotalsResult extends CheckCounts {
  /** The settled days that the check is about. */
  readonly range: Interval;
  /** What still differs after both sides were asked for again. */
  readonly findings: readonly NamedFinding[];
  readonly failed: readonly TotalsFailure[];
}

interface NamedFinding extends Finding {
  readonly groupBy: ScopeState["groupBy"];
  readonly workspaceId: string;
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
  const { sourceId, store, dataStart } = source;
  const now = await storeNow(store.db);
  const settled = { start: dataStart, end: floorToGrid(now - source.settings.settleAfterMs, DAY_MS) };
  const range = rangeOfReach(reach, settled);
  if (range.start >= range.end) return { ...NOTHING, range, findings: [], failed: [] };
  const states = await statesOf(source, "day");
  // Which side is wrong is not known, so known differences are not fetched again. The widest check does, to end healed ones.
  const known = reach === "all" ? [] : await knownFindings(store.db, sourceId);
  const context: CheckContext = { source, states, settled, range, known };

  const strides = await checkStrides(context, onProgress);
  const groupings = await checkGroupings(context);
  const byId = new Map(states.map((state) => [state.scopeId, state]));
  const findings = [...strides.findings, ...groupings.findings].flatMap((finding) => {
    const state = byId.get(finding.scopeId);
    return state === undefined
      ? []
      : [{ ...finding, groupBy: state.groupBy, workspaceId: state.workspaceId }];
  });
  const counts: CheckCounts = {
    requests: strides.requests + groupings.requests,
    daysProved: strides.daysProved,
    daysWaiting: strides.daysWaiting,
    restated: strides.restated + groupings.restated,
    differences: findings.filter((finding) => finding.state === "platform_disagrees").length,
    failures: strides.failed.length + groupings.refetchFailures + strides.refetchFailures,
  };
  await noteCheck(store.db, { sourceId, range, counts });
  return { ...counts, range, findings, failed: strides.failed };
}

const NOTHING = { requests: 0, daysProved: 0, daysWaiting: 0, restated: 0, differences: 0, failures: 0 };
