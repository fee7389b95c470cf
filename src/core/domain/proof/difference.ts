import { METER_NAME, meterOf } from "../usage/meter.ts";

export const DIFFERENCE_KINDS = {
  missing_in_store: "the export has it, and nothing is stored",
  missing_in_export: "it is stored, and the export lacks it",
  traces_differ: "the counts differ",
  name_differs: "the names differ",
  bucket_end_differs: "the export's bucket ends elsewhere",
  stride_total: "a total differs from the sum of the stored days",
  grouping_total: "the dimension names more traces than its workspace has",
  tier_total: "the short-lived traces are not all traces less the long-lived ones",
  tier_exceeds: "more long-lived traces than traces",
  provider_total: "the billing provider's total of the month differs",
  restated: "a final figure changed",
} as const;
export type DifferenceKind = keyof typeof DIFFERENCE_KINDS;

export const DIFFERENCE_STATES = {
  open: { word: "open", about: "The next nightly comparison checks it again." },
  platform_disagrees: {
    word: "the platform contradicts itself",
    about: "Requested twice, it gives both numbers. Report it to the platform; the stored number is kept.",
  },
  repaired: { word: "repaired", about: "What was stored was outdated, and was replaced." },
  withdrawn: { word: "withdrawn", about: "The platform now agrees with what was stored." },
  closed: { word: "closed", about: "A later check did not show it." },
  not_configured: { word: "not configured", about: "Its workspace is no longer configured." },
  hours_dropped: { word: "hours dropped", about: "Its hours were removed, so nothing can check it again." },
  restated: { word: "restated", about: "The newer count is stored, and the old one is kept here." },
} as const;
export type DifferenceState = keyof typeof DIFFERENCE_STATES;

export function describeOtherDifferences(
  others: readonly { kind: string; tier: string; open: number; platformDisagrees: number }[],
): string {
  return others
    .map(({ kind, tier, open, platformDisagrees }) => {
      const meter = meterOf(kind, tier);
      const name = meter === undefined ? kind : METER_NAME[meter];
      const count = (number: number) => number.toLocaleString("en-US");
      return `; of ${name}: ${count(open)} open, ${count(platformDisagrees)} where the platform contradicts itself`;
    })
    .join("");
}
