import type { Finding } from "../../store/proof/control-findings.ts";
import type { TotalDifference } from "../../store/proof/control-totals.ts";

/** The findings (all of one kind) inside a difference that add up to it, to the trace; undefined where they do not. */
export function explain(difference: TotalDifference, findings: readonly Finding[]): Finding[] | undefined {
  const parts = findings.filter(
    (one) =>
      one.scopeId === difference.scopeId &&
      one.dimensionId === difference.dimensionId &&
      one.measure === difference.measure &&
      one.start >= difference.start &&
      one.end <= difference.end,
  );
  const sum = parts.reduce((total, one) => total + errorOf(one), 0);
  return parts.length > 0 && sum === errorOf(difference) ? parts : undefined;
}

/**
 * The findings without those that narrower ones explain. Windows overlap, so one wrong day can be in several findings.
 * Those that are not inside another stay.
 */
export function narrowest(findings: readonly Finding[]): Finding[] {
  const keyOf = ({ scopeId, measure, dimensionId, start, end }: Finding) =>
    `${scopeId} ${measure} ${dimensionId} ${start} ${end}`;
  const distinct = [...new Map(findings.map((one) => [keyOf(one), one])).values()];
  return distinct.filter(
    (one) =>
      explain(
        one,
        distinct.filter((other) => other !== one),
      ) === undefined,
  );
}

/** How many traces the total has more than the days. */
function errorOf({ storedTraces, controlTraces }: TotalDifference): number {
  return (controlTraces ?? 0) - (storedTraces ?? 0);
}
