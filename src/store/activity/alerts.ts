import { sql } from "kysely";
import type { AlertKind } from "../../domain/bill/alert-route.ts";
import type { UnpricedUsage } from "../../domain/bill/price.ts";
import type { LimitUse } from "../../domain/bill/usage-limit.ts";
import { limitsOf } from "../bill/bill-terms.ts";
import { unpricedBySource } from "../bill/prices.ts";
import type { Database } from "../db/database.ts";

interface Found {
  readonly count: number;
  /** When the newest was found, epoch milliseconds; 0 without any. */
  readonly newest: number;
}

/** The state of a source that alerts depend on. */
export interface AlertFacts {
  readonly source: string;
  /** Of the database's clock, epoch milliseconds. */
  readonly now: number;
  /** The same as a timestamp, exact. */
  readonly readAt: string;
  /** Counts of any meter on which the platform contradicts itself: its JSON and its export differ after a second request. */
  readonly differences: Found;
  /** Control totals of any meter on which the platform contradicts itself, and tiers that do not add up, after a second request. */
  readonly controlTotals: Found;
  /** Months of workspaces of which the billing provider has another total, after a second request. */
  readonly providerTotals: Found;
  /** Restatements of the last day, and the number of the newest one (0: none). */
  readonly finalChanges: Found;
  /** Seconds since the last load; without any load, since the source was registered. */
  readonly quietSeconds: number;
  readonly isRefused: boolean;
  /** Workspaces that the key lost, by the platform's ids, and their zeros that were withdrawn: daily figures. */
  readonly lostWorkspaces: Found & { readonly ids: readonly string[] };
  readonly withdrawnZeros: number;
  readonly unpriced: UnpricedUsage;
  readonly limits: readonly LimitUse[];
}

/** Of one source, or of all. */
export async function alertFacts(db: Database, sourceId?: number): Promise<AlertFacts[]> {
  const { rows } = await sql<AlertFacts>`
    select
      s.slug as source, floor(extract(epoch from now()) * 1000)::float8 as now, now()::text as "readAt",
      (select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(d.found_at)) * 1000, 0)::bigint)
       from usage.reconciliation_difference d join usage.scope c using (scope_id)
       where c.source_id = s.source_id and d.state = 'platform_disagrees') as differences,
      (select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(d.found_at)) * 1000, 0)::bigint)
       from usage.control_difference d join usage.scope c using (scope_id)
       where c.source_id = s.source_id and d.state = 'platform_disagrees' and d.kind <> 'provider_total') as "controlTotals",
      (select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(d.found_at)) * 1000, 0)::bigint)
       from usage.control_difference d join usage.scope c using (scope_id)
       where c.source_id = s.source_id and d.state = 'platform_disagrees' and d.kind = 'provider_total') as "providerTotals",
      json_build_object('count', r.changes, 'newest', coalesce(r.newest, 0)) as "finalChanges",
      extract(epoch from now() - coalesce(
        (select max(v.fetched_at) from usage.coverage v join usage.trace_scope c using (scope_id) where c.source_id = s.source_id),
        s.created_at
      ))::integer as "quietSeconds",
      s.refused_at is not null as "isRefused", l.workspaces as "lostWorkspaces", l.zeros as "withdrawnZeros",
      json_build_object('prices', u.prices, 'days', u.days, 'traces', u.traces, 'firstDay', u."firstDay", 'lastDay', u."lastDay")
        as unpriced,
      (select coalesce(json_agg(x), '[]') from (${limitsOf(sql`s.source_id`)}) x) as limits
    from usage.source s
    join (${unpricedBySource()}) u using (source_id)
    cross join lateral (
      select count(*) as changes, max(r.restatement_id) as newest
      from usage.restatement r join usage.series x using (series_id) join usage.trace_scope c using (scope_id)
      where c.source_id = s.source_id and r.restated_at > now() - interval '1 day'
    ) r
    cross join lateral (
      select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(lost_at)) * 1000, 0)::bigint,
                               'ids', coalesce(json_agg(external_id order by external_id), '[]')) as workspaces,
             coalesce(sum(zeros), 0)::integer as zeros
      from usage.lost_workspace where source_id = s.source_id
    ) l
    where ${sourceId === undefined ? sql`true` : sql`s.source_id = ${sourceId}`}
    order by s.slug
  `.execute(db);
  return rows;
}

/** What a route was last told of an incident. */
export interface Told {
  readonly source: string;
  readonly route: string;
  readonly kind: AlertKind;
  /** Null: nobody's. */
  readonly owner: string | null;
  readonly told: number;
  readonly newest: number;
  /** When this incident began to be told, epoch milliseconds. */
  readonly since: number;
  /** ISO instants. Null: nobody knows whether it arrived. */
  readonly toldAt: string | null;
  readonly clearedAt: string | null;
}

const ISO = sql.lit(`YYYY-MM-DD"T"HH24:MI:SS"Z"`);

/** Of one source, or of all; of one route, or of all. What is over is among them. */
export async function toldAlerts(
  db: Database,
  { sourceId, route }: { sourceId?: number; route?: string } = {},
): Promise<Told[]> {
  const { rows } = await sql<Told>`
    select slug as source, route, kind, nullif(owner, '') as owner, told, newest, floor(extract(epoch from since) * 1000)::float8 as since,
           to_char(told_at at time zone 'UTC', ${ISO}) as "toldAt", to_char(cleared_at at time zone 'UTC', ${ISO}) as "clearedAt"
    from usage.alert join usage.source using (source_id)
    where ${sourceId === undefined ? sql`true` : sql`source_id = ${sourceId}`} and ${route === undefined ? sql`true` : sql`route = ${route}`}
    order by slug, route, kind, owner
  `.execute(db);
  return rows;
}

type Key = Pick<Told, "kind" | "owner">;

/** A route that nobody else sends to now. Whoever has lost it stores nothing of it any more. */
export interface Claim {
  readonly sourceId: number;
  readonly route: string;
  readonly claim: string;
}

function isHeld({ sourceId, route, claim }: Claim) {
  return sql`exists (select from usage.route_state where source_id = ${sourceId} and route = ${route} and claim = ${claim})`;
}

/**
 * Stores what is about to be told: an incident that may have arrived is told when it is over, also if this process dies in between.
 * Returns since when each is told.
 */
export async function noteSending(
  db: Database,
  claim: Claim,
  alerts: readonly Key[],
): Promise<(Key & { since: number })[]> {
  const { rows } = await sql<Key & { since: number }>`
    insert into usage.alert as a (source_id, route, kind, owner, told, newest, since)
    select ${claim.sourceId}, ${claim.route}, x.kind, coalesce(x.owner, ''), 0, -1, now()
    from jsonb_to_recordset(${JSON.stringify(alerts.map(keyOf))}::jsonb) x (kind text, owner text)
    where ${isHeld(claim)}
    on conflict (source_id, route, kind, owner) do update
    set told = case when a.cleared_at is null then a.told else 0 end, newest = case when a.cleared_at is null then a.newest else -1 end,
        told_at = case when a.cleared_at is null then a.told_at end, since = case when a.cleared_at is null then a.since else now() end,
        cleared_at = null
    returning kind, nullif(owner, '') as owner, floor(extract(epoch from since) * 1000)::float8 as since
  `.execute(db);
  return rows;
}

/** Removes what certainly never arrived. */
export async function noteRefused(db: Database, claim: Claim, alerts: readonly Key[]): Promise<void> {
  await sql`
    delete from usage.alert a
    using jsonb_to_recordset(${JSON.stringify(alerts.map(keyOf))}::jsonb) x (kind text, owner text)
    where ${isHeld(claim)} and a.source_id = ${claim.sourceId} and a.route = ${claim.route} and a.kind = x.kind and a.owner = coalesce(x.owner, '') and a.told_at is null
  `.execute(db);
}

/** Stores what has arrived. */
export async function noteTold(
  db: Database,
  claim: Claim,
  alerts: readonly (Key & { told: number; newest: number; isOver: boolean })[],
): Promise<void> {
  await sql`
    insert into usage.alert as a (source_id, route, kind, owner, told, newest, since, told_at, cleared_at)
    select ${claim.sourceId}, ${claim.route}, x.kind, coalesce(x.owner, ''), x.told, x.newest, now(), now(), case when x."isOver" then now() end
    from jsonb_to_recordset(${JSON.stringify(alerts)}::jsonb)
      x (kind text, owner text, told bigint, newest bigint, "isOver" boolean)
    where ${isHeld(claim)}
    on conflict (source_id, route, kind, owner) do update
    set told = excluded.told, newest = excluded.newest, told_at = excluded.told_at, cleared_at = excluded.cleared_at
  `.execute(db);
}

function keyOf({ kind, owner }: Key): Key {
  return { kind, owner };
}
