import { METER_NAME, type Meter } from "../usage/meter.ts";

/**
 * What a close has to do with a meter. `checked`: the source keeps its days, so they have to be loaded, final and without a
 * difference. `not_counted`, `not_known`: wanted, but the server does not count it, or nobody has learned whether it does.
 * `not_wanted`: loaded, and kept no more: a difference of it counts, a gap does not.
 */
type OtherState = "checked" | "not_counted" | "not_known" | "not_wanted";

export interface KnownUsage {
  readonly meter: Meter;
  readonly state: OtherState;
  /** What the server answered where it does not count it; else null. */
  readonly evidence: string | null;
  /** Daily figures that are final, and those that were compared with a whole export. */
  readonly finalDays: number;
  readonly reconciledDays: number;
  /** Differences that are left, from the export or from a total. */
  readonly differences: number;
}

/** Said of a close. */
export const OTHER_STATES: Readonly<Record<OtherState, string>> = {
  checked: "checked too",
  not_counted: "NOT in it, for the server is not known to count it",
  not_known: "NOT in it, for no sync has learned yet whether the server counts it",
  not_wanted: "not checked for gaps, for it is kept no more (USAGE_KINDS, USAGE_TIERS)",
};

/** What a close says of other usage than traces of all tiers. */
export function describeOtherUsage(known: readonly KnownUsage[]): string {
  return known
    .map((one) => {
      const { meter, state, evidence, finalDays, reconciledDays, differences } = one;
      const why = evidence === null ? "" : ` (${evidence})`;
      const isLoaded = state === "checked" || finalDays + reconciledDays + differences > 0;
      const left = differences === 0 ? "no difference" : `${count(differences)} DIFFERENT`;
      const figures = isLoaded
        ? `; daily figures: ${count(finalDays)} final, ${count(reconciledDays)} reconciled; ${left}`
        : "";
      return `${METER_NAME[meter]}: ${OTHER_STATES[state]}${why}${figures}.`;
    })
    .join(" ");
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}
