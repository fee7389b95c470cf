import { sql } from "kysely";
import { METERS, type Meter, meterOf } from "../../domain/usage/meter.ts";
import type { Database } from "../db/database.ts";

/** The meters of a source of which any time is loaded by day, in their order. */
export async function loadedMeters(db: Database, sourceId: number): Promise<Meter[]> {
  const { rows } = await sql<{ kind: string; trace_tier: string }>`
    select distinct c.kind, c.trace_tier from usage.every_scope c
    where c.source_id = ${sourceId} and c.stride = 'day'
      and exists (select from usage.coverage v where v.scope_id = c.scope_id)
  `.execute(db);
  return METERS.filter((meter) => rows.some(({ kind, trace_tier }) => meterOf(kind, trace_tier) === meter));
}
