import { sql } from "kysely";
import type { UnpricedUsage } from "../../domain/bill/price.ts";
import type { LimitUse } from "../../domain/bill/usage-limit.ts";
import { limitsOf } from "../bill/bill-terms.ts";
import { unpricedBySource } from "../bill/prices.ts";
import type { Database } from "../db/database.ts";

export type AlertKind =
  | "difference"
  | "control_total"
  | "provider_total"
  | "usage_limit"
  | "budget"
  | "final_changed"
  | "stale"
  | "refused"
  | "access_lost"
  | "unpriced"
  | "unusual";

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
  /** Of all sources the one that was registered first. */
  readonly isFirst: boolean;
  /** Counts of any meter on which the platform contradicts itself: its JSON and its export differ after a second request. */
  readonly differences: Found;
  /** Control totals of any meter on which the platform contradicts itself, and tiers that do not add up, after a second request. */
  readonly controlTotals: Found;
  /** Months of workspaces of which the billing provider has another total, after a second request. */
  readonly providerTotals: Found;
  /** Restatements of the last day that no alert has reported, and the number of the newest one (0: none). */
  readonly finalChanges: number;
  readonly newestRestatement: number;
  readonly changedLately: boolean;
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
      s.slug as source, floor(extract(epoch from now()) * 1000)::float8 as now, s.source_id = (select min(source_id) from usage.source) as "isFirst",
      (select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(d.found_at)) * 1000, 0)::bigint)
       from usage.reconciliation_difference d join usage.scope c using (scope_id)
       where c.source_id = s.source_id and d.state = 'platform_disagrees') as differences,
      (select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(d.found_at)) * 1000, 0)::bigint)
       from usage.control_difference d join usage.scope c using (scope_id)
       where c.source_id = s.source_id and d.state = 'platform_disagrees' and d.kind <> 'provider_total') as "controlTotals",
      (select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(d.found_at)) * 1000, 0)::bigint)
       from usage.control_difference d join usage.scope c using (scope_id)
       where c.source_id = s.source_id and d.state = 'platform_disagrees' and d.kind = 'provider_total') as "providerTotals",
      r.untold::integer as "finalChanges", coalesce(r.newest, 0)::bigint as "newestRestatement",
      r.newest is not null as "changedLately",
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
      select coalesce(max(newest), 0) as newest from usage.alert a
      where a.source_id = s.source_id and a.kind = 'final_changed'
    ) told
    cross join lateral (
      select count(*) filter (where r.restatement_id > told.newest) as untold, max(r.restatement_id) as newest
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

/** Alerts of a source that the webhook has received and that are not over. */
export async function toldAlerts(db: Database, sourceId: number) {
  const { rows } = await sql<{ told: number; newest: number; kind: AlertKind }>`
    select told, newest, kind from usage.alert where source_id = ${sourceId} and cleared_at is null
  `.execute(db);
  return rows;
}

/** Stores what the webhook has received. */
export async function noteTold(
  db: Database,
  alerts: readonly { sourceId: number; kind: AlertKind; told: number; newest: number; isOver: boolean }[],
): Promise<void> {
  for (const { sourceId, kind, told, newest, isOver } of alerts) {
    await sql`
      insert into usage.alert as a (source_id, kind, told, newest, since, told_at, cleared_at)
      values (${sourceId}, ${kind}, ${told}, ${newest}, now(), now(), ${isOver ? sql`now()` : null})
      on conflict (source_id, kind) do update
      set told = excluded.told, newest = excluded.newest, told_at = now(), cleared_at = excluded.cleared_at,
          since = case when a.cleared_at is null then a.since else now() end
    `.execute(db);
  }
}
