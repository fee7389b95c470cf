import { type RawBuilder, sql } from "kysely";
import type { Meter } from "../../domain/usage/meter.ts";
import { iso, NOW } from "../db/expressions.ts";
import { type Database, query, queryOne, queryValues, type Row } from "../db/query.ts";
import { notingCharges } from "../months/charges.ts";
import { clearFailures } from "./failures.ts";
import { isOfMeter } from "./scopes.ts";

export type LearnableMeter = Row<"usage.source_meter">["meter"];

/**
 * Whether the server counts a meter. `not_counted`: it says so, or responds without usage of the meter. `nothing_yet`: no usage
 * exists from which this could be learned, so a new organization is not incomplete. `not_known`: no request was sent yet, no
 * response could be used, or the last one contradicts earlier ones. All reports of completeness use this state.
 */
export type MeterState = Row<"usage.source_meter">["state"];

/**
 * `evidence`: the server's response, for people. `startsOn`: first UTC day with usage, for deployments; null for tiers,
 * which begin with the source's data start.
 */
export interface LearnedMeter
  extends Row<"usage.source_meter", "meter" | "state" | "evidence" | "startsOn" | "learnedAt"> {
  /** No workspace had usage of the meter until then. Null: this is not known. */
  readonly noneUntil: Date | null;
  readonly isDue: boolean;
}

const REQUEST_AGAIN_AFTER = {
  // An update of the server may end support; every later response is then zero.
  counted: "1 hour",
  not_counted: "1 day",
  nothing_yet: "0",
  not_known: "0",
} as const satisfies Record<MeterState, string>;

export async function expectMeters(
  db: Database,
  { sourceId, meters }: { sourceId: number; meters: readonly Meter[] },
): Promise<void> {
  await notingCharges(sql`
    insert into usage.source_meter (source_id, meter, state, evidence, request_again_at)
    select ${sourceId}, meter, 'not_known', 'not asked for yet', now()
    from unnest(${meters.filter((meter) => meter !== "traces")}::text[]) meter
    on conflict do nothing
    returning source_id
  `).execute(db);
}

/**
 * If the server says that it does not count a counted meter, the state becomes `not_known` first, because one wrong response
 * must hide nothing. A second such response makes it `not_counted`, which removes the meter's failures. A start only moves
 * earlier, because usage that the platform has dropped stays stored.
 */
export async function learnMeter(
  db: Database,
  learned: {
    sourceId: number;
    meter: LearnableMeter;
    state: MeterState;
    evidence: string;
    startsOn?: string;
    /**
     * When the first request was sent, epoch ms; default: now. It shows nothing about workspaces that became readable later.
     */
    requestedAt?: number;
  },
): Promise<void> {
  const { sourceId, meter, state, evidence, startsOn = null, requestedAt } = learned;
  const next = sql`case when m.state = 'counted' and excluded.state = 'not_counted' then 'not_known' else excluded.state end`;
  const { after } = await queryOne<{ after: MeterState }>(db)`
    with before as (
      select state, starts_on from usage.source_meter where source_id = ${sourceId} and meter = ${meter} for no key update
    ), learned as (
      insert into usage.source_meter as m (source_id, meter, state, evidence, starts_on, none_until, request_again_at)
      select ${sourceId}::smallint, ${meter}::text, ${state}::text, ${evidence}::text, ${startsOn}::date,
             case when ${state} in ('not_counted', 'nothing_yet') then coalesce(${requestedAt === undefined ? null : new Date(requestedAt)}::timestamptz, now()) end,
             now() + ${REQUEST_AGAIN_AFTER[state]}::interval
      -- Reads the row before, so that it is locked first.
      from (select count(*) from before) b
      on conflict (source_id, meter) do update
      set state = ${next}, evidence = excluded.evidence,
          request_again_at = case when ${next} = excluded.state then excluded.request_again_at else now() end,
          starts_on = case ${next} when 'counted' then least(m.starts_on, excluded.starts_on) when 'not_known' then m.starts_on end,
          none_until = case ${next} when 'counted' then null when 'not_known' then m.none_until else excluded.none_until end,
          learned_at = case when m.state = ${next} then m.learned_at else now() end
      returning m.state, m.starts_on
    )
    select l.state as after, case
      when (b.state, b.starts_on) is distinct from (l.state, l.starts_on)
        then usage.charges_due(${sourceId}::smallint, null)::text
    end
    from learned l left join before b on true
  `;
  if (after !== "not_counted") return;
  await clearFailures(db, sql`c.source_id = ${sourceId} and ${isOfMeter("c", meter)}`);
}

/** Makes all meters due again, over all time, because another key may read more. */
export async function forgetResponses(db: Database, sourceId: number): Promise<void> {
  const meters = db.updateTable("usage.source_meter").where("source_id", "=", sourceId);
  await meters.set({ request_again_at: NOW, none_until: null }).execute();
}

export async function learnedMeters(db: Database, sourceId: number): Promise<LearnedMeter[]> {
  // A request from before a workspace existed, or before the key read it, shows nothing about that workspace.
  return query<LearnedMeter>(db)`
    select m.meter, m.state, m.evidence, m.starts_on as "startsOn", m.learned_at as "learnedAt",
           case when not x.is_outdated then m.none_until end as "noneUntil", m.request_again_at <= now() or x.is_outdated as "isDue"
    from usage.source_meter m
    cross join lateral (
      select exists (
        select from usage.workspace w join usage.entity e using (entity_id)
        where e.source_id = m.source_id and w.readable_since > m.none_until
      ) as is_outdated
    ) x
    where m.source_id = ${sourceId} order by m.meter
  `;
}

export async function workspacesWith(
  db: Database,
  { sourceId, meter }: { sourceId: number; meter: Meter },
): Promise<ReadonlySet<string>> {
  const ids = await queryValues<string>(db)`
    select distinct e.external_id as id from usage.scope c join usage.entity e on e.entity_id = c.workspace_id
    where c.source_id = ${sourceId} and ${isOfMeter("c", meter)}
      and exists (select from usage.series x where x.scope_id = c.scope_id)
  `;
  return new Set(ids);
}

export interface UnknownMeter {
  readonly meter: LearnableMeter;
  readonly evidence: string;
  /** ISO instant. */
  readonly since: string;
  /** Age of `since` in seconds, by Postgres's clock. */
  readonly seconds: number;
  /** First UTC day whose usage of the meter is unknown. */
  readonly from: string;
}

export const UNKNOWN_METERS: RawBuilder<UnknownMeter[]> = sql`(
  select coalesce(json_agg(json_build_object('meter', u.meter, 'evidence', u.evidence, 'from', u.unknown_from,
      'since', ${iso("u.since")},
      'seconds', extract(epoch from now() - u.since)::integer) order by u.meter), '[]')
  from usage.unknown_meter u where u.source_id = s.source_id
)`;

export async function unknownMeters(db: Database, sourceId: number): Promise<UnknownMeter[]> {
  const [unknown] = await queryValues<UnknownMeter[]>(db)`
    select ${UNKNOWN_METERS} as unknown from usage.source s where source_id = ${sourceId}
  `;
  return unknown ?? [];
}

export type MeterStarts = readonly (readonly [Meter, number])[];

/** SQL: meters that the server of source `s` counts, each with its start, epoch ms. */
export const METER_STARTS = sql<MeterStarts>`(
  select json_agg(json_build_array(m.meter, extract(epoch from m.start::timestamp at time zone 'UTC') * 1000)
    order by m.meter <> 'traces', m.meter)
  from (
    select 'traces' as meter, s.data_start as start
    union all
    select l.meter, coalesce(l.starts_on, s.data_start) from usage.source_meter l
    where l.source_id = s.source_id and l.state = 'counted'
  ) m
)`;

export async function meterStartsOf(db: Database, sourceId: number): Promise<Map<Meter, number>> {
  const rows = await query<{ starts: MeterStarts }>(db)`
    select ${METER_STARTS} as starts from usage.source s where source_id = ${sourceId}
  `;
  return new Map(rows[0]?.starts);
}
