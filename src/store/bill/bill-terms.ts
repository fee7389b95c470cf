import { type RawBuilder, sql } from "kysely";
import type { LimitUse } from "../../domain/bill/usage-limit.ts";
import { lockSource } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";
import { iso } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";

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
    // Of two simultaneous readings, the one that ends last counts.
    await lockSource(db, sourceId);
    await sql`delete from usage.usage_limit where source_id = ${sourceId}`.execute(db);
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
  await sql`
    insert into usage.billing_period (source_id, ends_at, plan_tier, plan_started_at, plan_ends_at, read_at)
    values (${period.sourceId}, ${at(period.endsAt)}, ${period.planTier}, ${at(period.planStartedAt)}, ${at(period.planEndsAt)}, now())
    on conflict (source_id, ends_at) do update
    set plan_tier = excluded.plan_tier, plan_started_at = excluded.plan_started_at, plan_ends_at = excluded.plan_ends_at,
        read_at = excluded.read_at
  `.execute(db);
}

/** Each part is requested separately: a key may read some of them. */
const BILL_PARTS = ["provider_totals", "usage_limits", "billing_period", "resource_tags"] as const;
export type BillPart = (typeof BILL_PARTS)[number];

export interface LearnedBillPart {
  readonly part: BillPart;
  /** The server's refusal; null: it responds. */
  readonly refusal: string | null;
  readonly askedAt: Date;
  /** Whether it may be requested automatically. A command requests it at any time. */
  readonly isDue: boolean;
}

export async function noteBillPart(
  db: Database,
  { sourceId, part, refusal }: { sourceId: number; part: BillPart; refusal: string | null },
): Promise<void> {
  await sql`
    insert into usage.bill_part (source_id, part, refusal, asked_at) values (${sourceId}, ${part}, ${refusal}, now())
    on conflict (source_id, part) do update set refusal = excluded.refusal, asked_at = excluded.asked_at
  `.execute(db);
}

/** A refused part is due after a day, a little early because nightly runs vary. */
export async function billPartsOf(db: Database, sourceId: number): Promise<LearnedBillPart[]> {
  return query<LearnedBillPart>(db)`
    select part, refusal, asked_at as "askedAt", refusal is null or asked_at < now() - interval '23 hours' as "isDue"
    from usage.bill_part where source_id = ${sourceId}
    order by array_position(${BILL_PARTS}::text[], part)
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
           l.reached_on::text as "reachedOn", ${iso("l.read_at")} as "readAt"
    from reporting_detail.usage_limit l
    where l.source_id = (select f.slug from usage.source f where f.source_id = ${sourceId})
    order by l.is_rejecting desc, l.used_percent desc nulls last, l.workspace_id, l.limit_type
  `;
}
