import { sql } from "kysely";
import type { OpenDay } from "../../domain/months/open-days.ts";
import { UsageError } from "../../errors.ts";
import { lockScopesWhere } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";
import { type Database, query, queryOne } from "../db/query.ts";
import { type Actor, recordAction } from "../work/operator-actions.ts";
import { type OpenDays, openDaysOf } from "./open-days.ts";

export interface BillingPeriod {
  readonly start: string;
  readonly end: string;
  readonly isStartKnown: boolean;
  readonly isCalendarMonth: boolean;
  readonly isOver: boolean;
}

/** In the order of their ends. */
export async function billingPeriods(db: Database, sourceId: number): Promise<BillingPeriod[]> {
  return query<BillingPeriod>(db)`
    select p.period_start::text as start, p.period_end::text as "end", p.is_start_known as "isStartKnown",
           p.is_calendar_month as "isCalendarMonth", p.ends_at <= now() as "isOver"
    from reporting_detail.dim_billing_period p join usage.source s on s.slug = p.source_id
    where s.source_id = ${sourceId} order by p.period_end
  `;
}

export type PeriodResult =
  | { readonly state: "closed"; readonly totals: number; readonly traces: number; readonly accepted: number }
  | { readonly state: "closed_before"; readonly closedAt: string }
  | { readonly state: "open"; readonly open: readonly OpenDay[] };

/**
 * Stores the totals of a billing period, if every day of it is loaded, final and proved, as a close of a month does; else
 * returns the open days. Loads of the source wait meanwhile. A period closes once. Error: `period_before_data`.
 */
export async function closePeriod(
  store: Store,
  request: {
    sourceId: number;
    period: BillingPeriod;
    acceptDisagreements: boolean;
    settleAfterMs: number;
    by: Actor;
  },
): Promise<PeriodResult> {
  const { sourceId, period, acceptDisagreements, settleAfterMs, by } = request;
  const { start, end } = period;
  return store.transaction(async ({ db }) => {
    await lockScopesWhere(db, sql`source_id = ${sourceId} and stride = 'day'`);
    const sources = await query<{ starts: boolean; closed: Date | null }>(db)`
      select data_start <= ${start}::date as starts,
             (select closed_at from usage.period_close c where c.source_id = s.source_id and c.period_end = ${end}::date) as closed
      from usage.source s where source_id = ${sourceId} for no key update
    `;
    const closed = sources[0]?.closed ?? null;
    if (closed !== null) return { state: "closed_before", closedAt: closed.toISOString() };
    // Usage before the data start is unknown, so the period has no total.
    if (sources[0]?.starts !== true) throw beforeData(period);
    const range = { start: Date.parse(start), end: Date.parse(end) };
    const asked = { sourceId, ranges: [range], without: [], acceptDisagreements };
    const { required, open, accepted } = (await openDaysOf(db, asked))[0] as OpenDays;
    if (open.length > 0) return { state: "open", open };
    const ids = required.map(({ entityId }) => entityId);
    const { totals, traces } = await queryOne<{ totals: number; traces: number }>(db)`
      with kept as (
        insert into usage.period_close (source_id, period_start, period_end, settle_after_seconds, accepted_disagreements)
        values (${sourceId}, ${start}::date, ${end}::date, ${settleAfterMs / 1000}, ${accepted})
        returning period_close_id
      ), written as (
        insert into usage.period_total (period_close_id, group_by, workspace, external_id, traces)
        select k.period_close_id, c.group_by, w.external_id, e.external_id, sum(r.traces)
        from kept k
        cross join usage.trace_scope c
        join usage.entity w on w.entity_id = c.workspace_id
        join usage.series s using (scope_id)
        join usage.entity e on e.entity_id = s.entity_id
        join usage.dated_record r using (series_id)
        where c.workspace_id = any (${ids}::integer[]) and c.stride = 'day'
          and r.bucket_start >= ${start}::date and r.bucket_start < ${end}::date
        group by 1, 2, 3, 4
        having sum(r.traces) > 0
        returning group_by, traces
      )
      select count(*)::integer as totals, coalesce(sum(traces) filter (where group_by = 'workspace'), 0)::bigint as traces
      from written
    `;
    const detail = `billing period ${start} to ${end}: ${traces} traces in ${totals} totals`;
    await recordAction(db, by, { sourceId, action: "period.close", detail });
    return { state: "closed", totals, traces, accepted };
  });
}

function beforeData({ start, end }: BillingPeriod): UsageError {
  return new UsageError({
    code: "period_before_data",
    message: `The billing period ${start} to ${end} begins before the data start.`,
    next: "Choose a later period. `usage-etl data-start` shows the data start of each source.",
  });
}
