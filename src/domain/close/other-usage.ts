import { METER_NAME, type Meter } from "../usage/meter.ts";

interface Known {
  readonly meter: Meter;
  readonly finalDays: number;
  readonly reconciledDays: number;
  readonly differences: number;
}

/** A close checks traces of all tiers. What is known of the other usage that is loaded is said, and keeps no month open. */
export function describeOtherUsage(known: readonly Known[]): string {
  const parts = known.map(({ meter, finalDays, reconciledDays, differences }) => {
    const left = differences === 0 ? "no difference" : `${count(differences)} DIFFERENT`;
    return `${METER_NAME[meter]} (days x scopes: ${count(finalDays)} final, ${count(reconciledDays)} reconciled; ${left})`;
  });
  return `the close checks traces of all tiers, and not the other usage that is loaded: ${parts.join(", ")}.`;
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}
