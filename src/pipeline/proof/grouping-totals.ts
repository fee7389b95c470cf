import { METER } from "../../domain/usage/meter.ts";
import { drawStamp } from "../../store/load/fetch-ledger.ts";
import { type Finding, keepFindings } from "../../store/proof/control-findings.ts";
import { compareGroupings, type GroupingDifference } from "../../store/proof/control-totals.ts";
import type { CheckContext } from "./check-context.ts";
import { refetchDays } from "./refetch-days.ts";

/**
 * Checks the sums by project, user and key against those by workspace, day by day. Both sides of a day that differs are
 * fetched again. A workspace may have more traces than a dimension names: the views show them as unattributed.
 */
export async function checkGroupings(context: CheckContext) {
  const { source, states, range, known } = context;
  const { measures } = METER[context.meter];
  const { store } = source;
  const scopeIds = states.map((state) => state.scopeId);
  const before = await compareGroupings(store, { scopeIds, measures, range });
  const isKnown = (one: GroupingDifference) =>
    known.some(
      (finding) =>
        finding.kind === "grouping_total" &&
        finding.scopeId === one.scopeId &&
        finding.measure === one.measure &&
        finding.start === one.start &&
        finding.storedTraces === one.storedTraces &&
        finding.controlTraces === one.controlTraces,
    );
  const doubtful = before.differences.filter((one) => !isKnown(one));
  const refetched = await refetchDays(
    source,
    states,
    doubtful.flatMap(({ scopeId, totalScopeId, start, end }) => [
      { scopeId, start, end },
      { scopeId: totalScopeId, start, end },
    ]),
    context.meter,
  );
  const after = doubtful.length === 0 ? before : await compareGroupings(store, { scopeIds, measures, range });
  const findings = after.differences.map(
    ({ totalScopeId: _, ...one }): Finding => ({
      ...one,
      kind: "grouping_total",
      state: (one.controlTraces ?? 0) > (one.storedTraces ?? 0) ? "unattributed" : "platform_disagrees",
    }),
  );
  const { fetchNumber } = await drawStamp(store.db);
  const compared = states.map(({ scopeId }) => ({ scopeId, period: range }));
  await keepFindings(store, { kind: "grouping_total", compared, fetchNumber }, findings);
  const { requests, restated, failed } = refetched;
  return { requests, restated, refetchFailures: failed };
}
