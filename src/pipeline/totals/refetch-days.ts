import { planSlices } from "../../domain/planning/slice.ts";
import { subtract } from "../../domain/time/intervals.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { ScopeState } from "../../store/catalog/scopes.ts";
import { runInline } from "../extract/run-inline.ts";
import type { OpenSource } from "../source/source.ts";

export interface Refetched {
  readonly requests: number;
  /** Settled counts that the platform has changed. */
  readonly restated: number;
  readonly failed: number;
}

/** Fetches days of some scopes once more, in the fewest windows that cover them. */
export async function refetchDays(
  source: OpenSource,
  states: readonly ScopeState[],
  wanted: readonly (Interval & { readonly scopeId: number })[],
): Promise<Refetched> {
  if (wanted.length === 0) return { requests: 0, restated: 0, failed: 0 };
  const range = {
    start: Math.min(...wanted.map((one) => one.start)),
    end: Math.max(...wanted.map((one) => one.end)),
  };
  const byScope = Map.groupBy(wanted, (one) => one.scopeId);
  const scopes = states.map((state) => ({
    ...state,
    done: subtract([range], byScope.get(state.scopeId) ?? []),
  }));
  const slices = planSlices({ scopes, wanted: [{ stride: "day", range }], dataStart: source.dataStart });
  const { counts, failures } = await runInline(source, slices);
  return {
    requests: counts.reduce((sum, one) => sum + one.requests, 0),
    restated: counts.reduce((sum, one) => sum + one.rows.restated, 0),
    failed: failures.length,
  };
}
