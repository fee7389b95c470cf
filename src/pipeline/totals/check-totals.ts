import { type Reach, rangeOfReach } from "../../domain/planning/control.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { ensureScopes, type ScopeState, scopeStates } from "../../store/catalog/scopes.ts";
import { storeNow } from "../../store/load/fetch-ledger.ts";
import {
  type CheckCounts,
  type Finding,
  knownFindings,
  noteCheck,
} from "../../store/reconcile/control-findings.ts";
import type { OpenSource } from "../source/source.ts";
import type { CheckContext, TotalsFailure } from "./check-context.ts";
import { checkGroupings } from "./grouping-totals.ts";
import { checkStrides } from "./stride-totals.ts";

export { REACHES } from "../../domain/planning/control.ts";

export interface TotalsResult extends CheckCounts {
  /** The settled days that were to be proved. */
  readonly range: Interval;
  /** What stands after both sides were asked for once more, with the words that a reader needs. */
  readonly findings: readonly NamedFinding[];
  readonly failed: readonly TotalsFailure[];
}

interface NamedFinding extends Finding {
  readonly groupBy: ScopeState["groupBy"];
  readonly workspaceId: string;
}

/**
 * Holds settled days against totals: their sums against windows of whole weeks, months and years, one request for up to
 * a year of days, and the groupings' sums against the workspace's. Where a total differs the days are fetched once more:
 * equal then, it was a restatement; else it is kept as a difference, on the guilty day where that can be found.
 */
export async function checkTotals(
  source: OpenSource,
  reach: Reach,
  onProgress: (progress: { done: number; total: number }) => void = () => {},
): Promise<TotalsResult> {
  const { sourceId, store, dataStart } = source;
  const now = await storeNow(store.db);
  const settled = { start: dataStart, end: floorToGrid(now - source.settings.settleAfterMs, DAY_MS) };
  const range = rangeOfReach(reach, settled);
  if (range.start >= range.end) return { ...NOTHING, range, findings: [], failed: [] };
  await ensureScopes(store.db, { sourceId, groupings: GROUPINGS, strides: ["day"] });
  const all = await scopeStates(store.db, { sourceId, groupings: GROUPINGS, strides: ["day"] });
  const ids = new Set(source.workspaces.map((w) => w.workspaceId));
  const states = all.filter((state) => ids.has(state.workspaceId));
  // Which side is wrong is not known, and the days are not asked for again: the widest check does that, to see them healed.
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

const NOTHING: CheckCounts = {
  requests: 0,
  daysProved: 0,
  daysWaiting: 0,
  restated: 0,
  differences: 0,
  failures: 0,
};
