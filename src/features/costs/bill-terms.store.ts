import { type RawBuilder, sql } from "kysely";
import { type CalendarMonth, monthBefore, monthTitle } from "../../core/domain/months/month.ts";
import { lockSource } from "../../core/store/catalog/scopes.ts";
import type { Store } from "../../core/store/db/database.ts";
import { iso, NOW } from "../../core/store/db/expressions.ts";
import { type Database, query, type Row } from "../../core/store/db/query.ts";
import type { UnloadedWorkspace } from "./bill.ts";
import { priceUnloaded, type TracePrice } from "./price-unloaded.ts";
import type { LimitUse } from "./usage-limit.ts";

/** `workspaceId`: empty for the organization. */
export type StoredLimit = Pick<LimitUse, "workspaceId" | "limitType" | "value" | "isRejecting">;

export async function keepUsageLimits(
  store: Store,
  { sourceId, limits }: { sourceId: number; limits: readonly StoredLimit[] },
): Promise<void> {
  const rows = limits.map((one) => ({
    workspace: one.workspaceId,
    limit_type: one.limitType,
    limit_value: one.value,
    is_rejecting: one.isRejecting,
  }));
  await store.transaction(async ({ db }) => {
    // If two processes read limits at once, the last one to finish wins.
    await lockSource(db, sourceId);
    await db.deleteFrom("usage.usage_limit").where("source_id", "=", sourceId).execute();
    await sql`
      insert into usage.usage_limit (source_id, workspace, limit_type, limit_value, is_rejecting, read_at)
      select ${sourceId}, workspace, limit_type, limit_value, is_rejecting, now()
      from json_populate_recordset(null::usage.usage_limit, ${JSON.stringify(rows)}::json)
    `.execute(db);
  });
}

export async function keepBillingPeriod(
  db: Database,
  period: {
    sourceId: number;
    endsAt: number;
    planTier: string | null;
    planStartedAt: number | null;
    planEndsAt: number | null;
  },
): Promise<void> {
  const at = (ms: number | null) => (ms === null ? null : new Date(ms));
  const plan = {
    plan_tier: period.planTier,
    plan_started_at: at(period.planStartedAt),
    plan_ends_at: at(period.planEndsAt),
    read_at: NOW,
  };
  await db
    .insertInto("usage.billing_period")
    .values({ source_id: period.sourceId, ends_at: new Date(period.endsAt), ...plan })
    .onConflict((known) => known.columns(["source_id", "ends_at"]).doUpdateSet(plan))
    .execute();
}

export const STATEMENT_PARTS = ["members", "gateway_spend", "engine_units", "engine_limit"] as const;
export type StatementPart = (typeof STATEMENT_PARTS)[number];

/** Requested separately, because a key may read only some parts. */
const BILL_PARTS = [
  "provider_totals",
  "usage_limits",
  "billing_period",
  "resource_tags",
  "names",
  "all_workspaces",
  "audit_log",
  ...STATEMENT_PARTS,
] as const;
export type BillPart = (typeof BILL_PARTS)[number];

/** `refusal` is the server's. Null: the server responds. */
export interface LearnedBillPart extends Row<"usage.bill_part", "part" | "refusal" | "requestedAt"> {
  /** True if the nightly job may request the part. A command always may. */
  readonly isDue: boolean;
  /** True if the part was requested within the last day: nightly runs vary by an hour. */
  readonly isRecent: boolean;
}

export async function noteBillPart(
  db: Database,
  { sourceId, part, refusal }: { sourceId: number; part: BillPart; refusal: string | null },
): Promise<void> {
  const response = { refusal, requested_at: NOW };
  await db
    .insertInto("usage.bill_part")
    .values({ source_id: sourceId, part, ...response })
    .onConflict((known) => known.columns(["source_id", "part"]).doUpdateSet(response))
    .execute();
}

/**
 * A refused part is due after 23 hours, because nightly runs vary. A server that requires workspace ids goes on requiring them
 * until it is upgraded, so it is asked once a week.
 */
export async function billPartsOf(db: Database, sourceId: number): Promise<LearnedBillPart[]> {
  return query<LearnedBillPart>(db)`
    select part, refusal, requested_at as "requestedAt", requested_at >= now() - interval '23 hours' as "isRecent", refusal is null
             or requested_at < now() - case part when 'all_workspaces' then interval '167 hours' else interval '23 hours' end as "isDue"
    from usage.bill_part where source_id = ${sourceId}
    order by array_position(${BILL_PARTS}::text[], part)
  `;
}

export async function keepUnloadedWorkspaces(
  store: Store,
  month: {
    sourceId: number;
    monthStart: string;
    found: readonly Pick<UnloadedWorkspace, "workspaceId" | "name" | "traces">[];
  },
): Promise<void> {
  const { sourceId, monthStart, found } = month;
  await store.transaction(async ({ db }) => {
    // If two readings run at once, the one that ends last counts.
    await lockSource(db, sourceId);
    const ofMonth = sql`source_id = ${sourceId} and month_start = ${monthStart}::date`;
    await sql`delete from usage.unloaded_workspace where ${ofMonth}`.execute(db);
    await sql`
      insert into usage.unloaded_workspace (source_id, month_start, workspace, name, traces, read_at)
      select ${sourceId}, ${monthStart}::date, f."workspaceId", f.name, f.traces, now()
      from json_to_recordset(${JSON.stringify(found)}::json) f ("workspaceId" text, name text, traces bigint)
      where f.traces > 0
    `.execute(db);
  });
}

/**
 * Excludes rows `u` (source, month, workspace) of which days are expected by now: older readings stay when a workspace is loaded
 * later, and its missing days are lines of the bill.
 */
export const IS_NOT_EXPECTED = sql<boolean>`not exists (
  select from usage.entity e join usage.required_workspace r on r.workspace_id = e.entity_id
  where e.source_id = u.source_id and e.dimension = 'workspace' and e.external_id = u.workspace
    and r.days && daterange(u.month_start, (u.month_start + interval '1 month')::date)
)`;

/**
 * Workspaces with traces in a month that no sync loads, by the platform's response without ids or by the totals of the billing
 * provider, and what the prices that are valid at the month's end would charge for them. The workspaces with the most traces come
 * first.
 */
export async function unloadedWorkspaces(
  db: Database,
  { source, monthStart }: { source: string; monthStart: string },
): Promise<UnloadedWorkspace[]> {
  const unloaded = await query<Omit<UnloadedWorkspace, "costs">>(db)`
    select workspace as "workspaceId", max(name) as name, max(traces) filter (where meter = 'traces')::float8 as traces,
           max(traces) filter (where meter = 'longlived')::float8 as longlived
    from (
      select source_id, month_start, workspace, name, traces, 'traces' as meter from usage.unloaded_workspace
      union all
      select source_id, month_start, workspace, null, value, meter from usage.provider_total
      where outcome = 'unknown_workspace' and meter in ('traces', 'longlived') and workspace <> '' and value >= 0
    ) u join usage.source s using (source_id)
    where s.slug = ${source} and u.month_start = ${monthStart}::date and ${IS_NOT_EXPECTED}
    group by workspace
    having max(traces) filter (where meter = 'traces') > 0
    order by max(traces) filter (where meter = 'traces') desc, workspace
  `;
  if (unloaded.length === 0) return [];
  return priceUnloaded(unloaded, await tracePrices(db, { source, monthStart }));
}

/** Also returns the workspaces of the month before, until the provider has totals of the current month. */
export async function expectedUnloaded(
  db: Database,
  { source, month, now }: { source: string; month: CalendarMonth; now: number },
): Promise<UnloadedWorkspace[]> {
  const known = await unloadedWorkspaces(db, { source, monthStart: month.start });
  if (known.length > 0 || Date.parse(month.end) <= now) return known;
  const read = await query(db)`
    select from usage.provider_total t join usage.source s using (source_id)
    where s.slug = ${source} and t.month_start = ${month.start}::date and t.meter = 'traces' and t.value is not null limit 1
  `;
  if (read.length > 0) return known;
  const before = monthBefore(month);
  const last = await unloadedWorkspaces(db, { source, monthStart: before.start });
  return last.map((one) => ({ ...one, asIn: monthTitle(before) }));
}

/**
 * Prices of traces that apply to a workspace without a price of its own, and what they were charged for: those at the month's
 * end, or else the last ones of the month.
 */
function tracePrices(
  db: Database,
  { source, monthStart }: { source: string; monthStart: string },
): Promise<TracePrice[]> {
  return query<TracePrice>(db)`
    select distinct on (p.sku_id) k.measure, p.currency, p.counted_over as "countedOver",
           (select json_agg(json_build_object('from', v.from_quantity, 'to', v.to_quantity, 'unitPrice', v.unit_price::text) order by v.from_quantity)
            from usage.volume_tier v where v.price_id = p.price_id) as tiers,
           (select coalesce(sum(c.quantity), 0)::float8 from usage.billed_charge c
            where c.source_id = s.source_id and c.billing_month = ${monthStart}::date and not c.is_correction and c.sku = k.name) as charged
    from usage.source s
    cross join (select (${monthStart}::date + interval '1 month')::date as next) m
    join usage.price p on (p.source_id is null or p.source_id = s.source_id) and p.workspace_id is null
      and p.valid_from < m.next and coalesce(p.valid_to, m.next) > ${monthStart}::date
    join usage.sku k using (sku_id)
    where s.slug = ${source} and k.measure in ('traces', 'longlived', 'shortlived')
    order by p.sku_id, coalesce(p.valid_to, m.next) >= m.next desc, p.source_id nulls last, p.valid_from desc
  `;
}

export async function limitUses(db: Database, sourceId: number): Promise<LimitUse[]> {
  const { rows } = await limitsOf(sql`${sourceId}`).execute(db);
  return rows;
}

export function limitsOf(sourceId: RawBuilder<unknown>): RawBuilder<LimitUse> {
  return sql<LimitUse>`
    select l.workspace_id as "workspaceId", l.workspace_name as "workspaceName", l.limit_type as "limitType",
           l.limit_value as value, l.is_rejecting as "isRejecting", l.month_start::text as month, l.traces_loaded as traces,
           l.is_complete as "isComplete", l.days_final as "daysFinal", l.used_percent::float8 as percent,
           l.reached_on::text as "reachedOn", l.workspaces_not_loaded as "workspacesNotLoaded",
           l.traces_not_loaded as "tracesNotLoaded", ${iso("l.read_at")} as "readAt"
    from reporting_detail.usage_limit l
    where l.source_id = (select f.slug from usage.source f where f.source_id = ${sourceId})
    order by l.is_rejecting desc, l.used_percent desc nulls last, l.workspace_id, l.limit_type
  `;
}

export interface BillingPeriod {
  readonly start: string;
  readonly end: string;
  readonly isStartKnown: boolean;
  readonly isCalendarMonth: boolean;
}

export async function billingPeriods(db: Database, sourceId: number): Promise<BillingPeriod[]> {
  return query<BillingPeriod>(db)`
    select p.period_start::text as start, p.period_end::text as "end", p.is_start_known as "isStartKnown",
           p.is_calendar_month as "isCalendarMonth"
    from reporting_detail.dim_billing_period p join usage.source s on s.slug = p.source_id
    where s.source_id = ${sourceId} order by p.period_end
  `;
}
