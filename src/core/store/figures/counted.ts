import { MEASURES, METER, type Measure, type Meter, meterOfMeasure } from "../../domain/usage/meter.ts";
import { type Database, queryValues } from "../db/query.ts";

/** Short-lived traces have no records, because they are computed as a difference. */
export type Counted = Measure | "longlived";
export const COUNTED: readonly Counted[] = MEASURES.flatMap((measure) =>
  measure === "traces" ? [measure, "longlived" as const] : [measure],
);

export function meterOfCounted(counted: Counted): Meter {
  return counted === "longlived" ? counted : meterOfMeasure(counted);
}

export function seriesTermsOf(counted: Counted): { kind: string; tier: string; measure: Measure } {
  const { kind, tier } = METER[meterOfCounted(counted)];
  return { kind, tier, measure: counted === "longlived" ? "traces" : counted };
}

export async function meterStart(
  db: Database,
  { sourceId, counted }: { sourceId: number; counted: Counted },
): Promise<string | undefined> {
  const { kind, tier } = seriesTermsOf(counted);
  const [start] = await queryValues<string>(db)`
    select coalesce(m.starts_on, s.data_start)::text as start
    from usage.source s
    left join usage.source_meter m on m.source_id = s.source_id and m.meter = ${meterOfCounted(counted)}
    where s.source_id = ${sourceId}
      and exists (select from usage.scope c where c.source_id = s.source_id and c.kind = ${kind} and c.trace_tier = ${tier})
  `;
  return start;
}
