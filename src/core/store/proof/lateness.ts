import { type LatenessClass, LOOK_BACK_DAYS, tierSettleAfterMs } from "../../domain/proof/lateness.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import { type Database, query } from "../db/query.ts";

/** Reads only counts by workspace, which have each trace once. */
export async function latenessOf(
  db: Database,
  { sourceId, meter = "traces" }: { sourceId: number; meter?: Meter },
): Promise<LatenessClass[]> {
  return query<LatenessClass>(db)`
    select age_hours as "ageHours", was_final as "wasFinal", sum(changes)::bigint as changes,
           sum(traces_moved)::bigint as "tracesMoved", (now() at time zone 'UTC')::date - min(observed_on) as "sinceDays"
    from usage.late_change
    where source_id = ${sourceId} and trace_tier = ${METER[meter].tier} and group_by = 'workspace' and stride = 'day'
      and observed_on > (now() at time zone 'UTC')::date - ${LOOK_BACK_DAYS}::integer
    group by 1, 2
    order by 1, 2
  `;
}

/** Returns how long after its end a day of the meter becomes final, ms. Traces may change their tier late. */
export async function settleAfterOf(
  db: Database,
  { sourceId, meter, settleAfterMs }: { sourceId: number; meter: Meter; settleAfterMs: number },
): Promise<number> {
  if (METER[meter].tier === METER.traces.tier) return settleAfterMs;
  return tierSettleAfterMs(await latenessOf(db, { sourceId, meter }), settleAfterMs);
}
