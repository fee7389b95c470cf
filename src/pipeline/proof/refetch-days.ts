import { planTasks } from "../../domain/planning/plan-tasks.ts";
import { spanOf } from "../../domain/time/intervals.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { runInline } from "../extract/run-inline.ts";
import type { OpenSource } from "../source/source.ts";

/** Fetches days of some scopes of a meter again, in the fewest windows that cover them. `restated`: final counts that changed. */
export async function refetchDays(
  source: OpenSource,
  states: readonly ScopeState[],
  days: readonly (Interval & { readonly scopeId: number })[],
  meter: Meter = "traces",
) {
  const byScope = Map.groupBy(days, (one) => one.scopeId);
  const tasks = planTasks({
    meter,
    scopes: states.map((state) => ({ ...state, missing: byScope.get(state.scopeId) ?? [] })),
    wanted: [{ stride: "day", range: spanOf(days) }],
    dataStart: source.meters.get(meter) ?? source.dataStart,
  });
  const { counts, failures } = await runInline(source, tasks, { isRepair: true });
  return {
    requests: counts.reduce((sum, one) => sum + one.requests, 0),
    restated: counts.reduce((sum, one) => sum + one.rows.restated, 0),
    failed: failures.length,
  };
}
