import { METER, METER_NAME, type Measure, type Meter } from "../usage/meter.ts";

export interface RestatementCount {
  /** A newer release may store other meters. */
  readonly meter: Meter | string;
  readonly measure: Measure;
  /** Counts every dimension and stride. */
  readonly restatements: number;
  /** Counts only days by workspace, as does `net`, which is in the measure's unit. */
  readonly ofDays: number;
  readonly net: number;
  readonly newest: number;
}

export function meteredName({ meter, measure }: Pick<RestatementCount, "meter" | "measure">): string {
  if (!(meter in METER)) return `${meter} (${measure})`;
  const known = meter as Meter;
  return METER[known].measures.length > 1 ? `${METER_NAME[known]} (${measure})` : METER_NAME[known];
}

export function describeRestatements(counts: readonly RestatementCount[]): string {
  if (counts.length === 0) return "no final figure";
  return counts
    .map((one, nth) => {
      const figures = one.restatements === 1 ? "final figure" : "final figures";
      return `${one.restatements.toLocaleString("en-US")} ${nth === 0 ? `${figures} ` : ""}of ${meteredName(one)}`;
    })
    .join(", ");
}
