import { sql } from "kysely";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { METER_OF_SCOPE } from "../catalog/scopes.ts";
import type { Database } from "../db/database.ts";

/** The meters of a source of which any time is loaded by day, in their order. */
export async function loadedMeters(db: Database, sourceId: number): Promise<Meter[]> {
  const { rows } = await sql<{ meter: Meter | null }>`
    select distinct ${METER_OF_SCOPE} as meter from usage.scope c
    where c.source_id = ${sourceId} and c.stride = 'day'
      and exists (select from usage.coverage v where v.scope_id = c.scope_id)
  `.execute(db);
  return METERS.filter((meter) => rows.some((row) => row.meter === meter));
}
