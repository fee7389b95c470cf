import { sql } from "kysely";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { Database } from "../db/database.ts";

export type LearnableMeter = Exclude<Meter, "traces">;

export interface LearnedMeter {
  readonly meter: LearnableMeter;
  readonly isAvailable: boolean;
  /** The server's response, for people. */
  readonly evidence: string;
  /** First UTC day with usage, `YYYY-MM-DD`, for deployments; null for tiers, which begin with the source's data start. */
  readonly startsOn: string | null;
  readonly learnedAt: Date;
  readonly isDue: boolean;
}

/** How long a result stays valid. */
const ASK_AGAIN_AFTER = {
  // An update of the server may end support, and every later response is zero.
  available: sql`interval '1 hour'`,
  notAvailable: sql`interval '1 day'`,
  // Unknown, such as before the first trace.
  unknown: sql`interval '0'`,
} as const;

/**
 * A beginning only moves earlier: usage that the platform has dropped since stays stored. Failures of an unavailable meter are
 * removed.
 */
export async function learnMeter(
  db: Database,
  learned: {
    sourceId: number;
    meter: LearnableMeter;
    state: keyof typeof ASK_AGAIN_AFTER;
    evidence: string;
    startsOn?: string;
  },
): Promise<void> {
  const { sourceId, meter, state, evidence, startsOn = null } = learned;
  const isAvailable = state === "available";
  await sql`
    insert into usage.source_meter as m (source_id, meter, is_available, evidence, starts_on, ask_again_at)
    values (${sourceId}, ${meter}, ${isAvailable}, ${evidence}, ${startsOn}::date, now() + ${ASK_AGAIN_AFTER[state]})
    on conflict (source_id, meter) do update
    set is_available = excluded.is_available, evidence = excluded.evidence, ask_again_at = excluded.ask_again_at,
        starts_on = case when excluded.is_available then least(m.starts_on, excluded.starts_on) end,
        learned_at = case when m.is_available = excluded.is_available then m.learned_at else now() end
  `.execute(db);
  if (state !== "notAvailable") return;
  const { kind, tier } = METER[meter];
  await sql`
    delete from usage.failure f using usage.scope c
    where c.scope_id = f.scope_id and c.source_id = ${sourceId} and c.kind = ${kind} and c.trace_tier = ${tier}
  `.execute(db);
}

export async function learnedMeters(db: Database, sourceId: number): Promise<LearnedMeter[]> {
  const { rows } = await sql<LearnedMeter>`
    select meter, is_available as "isAvailable", evidence, starts_on as "startsOn", learned_at as "learnedAt",
           ask_again_at <= now() as "isDue"
    from usage.source_meter where source_id = ${sourceId} order by meter
  `.execute(db);
  return rows;
}

export type MeterStarts = readonly (readonly [Meter, number])[];

/** SQL: meters of the server of source `s`, each with its beginning, epoch milliseconds. */
export const METER_STARTS = sql<MeterStarts>`(
  select json_agg(json_build_array(m.meter, extract(epoch from m.start::timestamp at time zone 'UTC') * 1000)
    order by m.meter <> 'traces', m.meter)
  from (
    select 'traces' as meter, s.data_start as start
    union all
    select l.meter, coalesce(l.starts_on, s.data_start) from usage.source_meter l
    where l.source_id = s.source_id and l.is_available
  ) m
)`;

export async function meterStartsOf(db: Database, sourceId: number): Promise<Map<Meter, number>> {
  const { rows } = await sql<{ starts: MeterStarts }>`
    select ${METER_STARTS} as starts from usage.source s where source_id = ${sourceId}
  `.execute(db);
  return new Map(rows[0]?.starts);
}
