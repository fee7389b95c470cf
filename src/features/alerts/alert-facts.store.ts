import { type RawBuilder, sql } from "kysely";
import type { RestatementCount } from "../../core/domain/proof/restatement.ts";
import { UNKNOWN_METERS, type UnknownMeter } from "../../core/store/catalog/source-meters.ts";
import { isIfGiven } from "../../core/store/db/expressions.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import { restatementCounts } from "../../core/store/proof/restatement-counts.ts";
import { IS_NOT_EXPECTED, limitsOf } from "../costs/bill-terms.store.ts";
import type { UnpricedUsage } from "../costs/price.ts";
import { unpricedBySource } from "../costs/prices.store.ts";
import type { LimitUse } from "../costs/usage-limit.ts";

interface Found {
  readonly count: number;
  readonly newest: number;
}

export interface AlertFacts {
  readonly source: string;
  /** Postgres's clock: epoch ms, and the exact timestamp. */
  readonly now: number;
  readonly readAt: string;
  /** Counts of all meters for which JSON and export still differ after a second request. */
  readonly differences: Found;
  /** Totals of all meters that still differ from the sum of their days or tiers after a second request. */
  readonly controlTotals: Found;
  /** Monthly totals of the billing provider that still differ from the stored sum after a second request. */
  readonly providerTotals: Found;
  /** Restatements of the last day. */
  readonly finalChanges: readonly RestatementCount[];
  /** Seconds since the last load, or since the source was registered. */
  readonly secondsWithoutLoad: number;
  readonly isRefused: boolean;
  readonly lostWorkspaces: Found & { readonly ids: readonly string[] };
  /** Zeros (daily figures) of lost workspaces that are no longer trusted. */
  readonly invalidatedZeros: number;
  /** Workspaces with traces that no sync loads, if the source loads all workspaces. `newest`: start of their latest month. */
  readonly unloadedWorkspaces: Found & { readonly traces: number };
  /** Issued invoices that nobody has settled, with a difference above tolerance that nothing explains. */
  readonly openInvoices: Found;
  /** True if invoices are imported, and none that was issued after the last month. */
  readonly isInvoiceMissing: boolean;
  readonly unknownMeters: readonly UnknownMeter[];
  readonly unpriced: UnpricedUsage;
  readonly limits: readonly LimitUse[];
}

function disagreements(which: RawBuilder<unknown>) {
  return sql`(
    select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(d.found_at)) * 1000, 0)::bigint)
    from usage.difference d join usage.scope c using (scope_id)
    where c.source_id = s.source_id and d.state = 'platform_disagrees' and ${which}
  )`;
}

/** Days after the end of a month within which its invoice is expected. */
const INVOICE_DAYS = 10;

export async function alertFacts(db: Database, sourceId?: number): Promise<AlertFacts[]> {
  return query<AlertFacts>(db)`
    select
      s.slug as source, floor(extract(epoch from now()) * 1000)::float8 as now, now()::text as "readAt",
      ${disagreements(sql`d.compared_with = 'export'`)} as differences,
      ${disagreements(sql`d.compared_with not in ('export', 'provider_total')`)} as "controlTotals",
      ${disagreements(sql`d.compared_with = 'provider_total'`)} as "providerTotals",
      ${restatementCounts(sql`c.source_id = s.source_id and t.restated_at > now() - interval '1 day'`)} as "finalChanges",
      extract(epoch from now() - coalesce(
        (select max(v.fetched_at) from usage.coverage v join usage.trace_scope c using (scope_id) where c.source_id = s.source_id),
        s.created_at
      ))::integer as "secondsWithoutLoad",
      s.refused_at is not null as "isRefused", l.workspaces as "lostWorkspaces", l.zeros as "invalidatedZeros",
      (
        select json_build_object('count', count(distinct u.workspace), 'traces', coalesce(sum(u.traces), 0),
                                 'newest', coalesce(extract(epoch from max(u.month_start)) * 1000, 0)::bigint)
        from (
          select source_id, month_start, workspace, traces from usage.unloaded_workspace
          union all
          select source_id, month_start, workspace, value from usage.provider_total
          where outcome = 'unknown_workspace' and meter = 'traces' and workspace <> '' and value > 0
        ) u
        -- Other workspaces of a source that names its own are left out on purpose.
        where u.source_id = s.source_id and s.workspace_ids = '{}' and ${IS_NOT_EXPECTED}
          -- Older months are not read again.
          and u.month_start >= date_trunc('month', now() at time zone 'UTC') - interval '1 month'
      ) as "unloadedWorkspaces",
      (
        select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(i.imported_at)) * 1000, 0)::bigint)
        from usage.compared_invoice i
        where i.source_id = s.source_id and i.status = 'issued' and i.settled_at is null and exists (
          select from usage.invoice_cause c where c.match_id = i.match_id and c.cause = 'unexplained' and not c.is_tolerated
        )
      ) as "openInvoices",
      (now() at time zone 'UTC')::date >= date_trunc('month', now() at time zone 'UTC')::date + ${INVOICE_DAYS}::integer and exists (
        select from usage.invoice i where i.source_id = s.source_id
      ) and not exists (
        select from usage.invoice i
        where i.source_id = s.source_id and i.replaced_at is null and i.issued_on >= date_trunc('month', now() at time zone 'UTC')::date
      ) as "isInvoiceMissing",
      ${UNKNOWN_METERS} as "unknownMeters",
      json_build_object('prices', u.prices, 'days', u.days, 'traces', u.traces, 'firstDay', u."firstDay", 'lastDay', u."lastDay")
        as unpriced,
      (select coalesce(json_agg(x), '[]') from (${limitsOf(sql`s.source_id`)}) x) as limits
    from usage.source s
    join (${unpricedBySource()}) u using (source_id)
    cross join lateral (
      select json_build_object('count', count(*), 'newest', coalesce(extract(epoch from max(lost_at)) * 1000, 0)::bigint,
                               'ids', coalesce(json_agg(external_id order by external_id), '[]')) as workspaces,
             coalesce(sum(zeros), 0)::integer as zeros
      from usage.lost_workspace where source_id = s.source_id
    ) l
    where ${isIfGiven("s.source_id", sourceId)}
    order by s.slug
  `;
}
