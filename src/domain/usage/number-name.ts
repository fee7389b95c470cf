import { METER_NAME, type Measure, type Meter } from "./meter.ts";

/** What a number counts, for people: the measure where a record has several. */
export function numberName(meter: Meter, measure: Measure): string {
  return meter === "deployments" ? measure : METER_NAME[meter];
}
