import { intersect, subtract, totalMs } from "../../domain/time/intervals.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { bucketsOf } from "../../store/proof/differences.ts";
import { statesOf } from "../source/source.ts";
import type { CheckContext } from "./check-context.ts";

/**
 * Days x scopes of a check, each counted once: proved by a total, disproved, or waiting for a window that fits. A day on which a
 * difference is left is disproved, whoever found it: a total, or the export.
 */
export async function countDays(
  { source, meter, range }: CheckContext,
  given: {
    proved: ReadonlyMap<number, readonly Interval[]>;
    contradictions: readonly (Interval & { readonly scopeId: number })[];
  },
) {
  // As they are after the check.
  const states = await statesOf(source, "day", GROUPINGS, meter);
  const scopeIds = states.map(({ scopeId }) => scopeId);
  const buckets = await bucketsOf(source.store.db, {
    ...{ scopeIds, range },
    states: ["open", "platform_disagrees"],
  });
  const differing = buckets.map(({ scopeId, bucketStart: start }) => {
    return { scopeId, start, end: start + DAY_MS };
  });
  const wrong = Map.groupBy([...given.contradictions, ...differing], (one) => one.scopeId);
  const days = { daysProved: 0, daysDisproved: 0, daysWaiting: 0, daysNotFinal: 0 };
  for (const { scopeId, coverage } of states) {
    const disproved = intersect(wrong.get(scopeId) ?? [], [range]);
    const proved = subtract(intersect(given.proved.get(scopeId) ?? [], [range]), disproved);
    const final = coverage.filter((loaded) => loaded.final);
    days.daysProved += totalMs(proved) / DAY_MS;
    days.daysDisproved += totalMs(disproved) / DAY_MS;
    days.daysNotFinal += totalMs(subtract([range], final)) / DAY_MS;
    days.daysWaiting += totalMs(subtract([range], [...disproved, ...proved])) / DAY_MS;
  }
  return days;
}
