import { sql } from "kysely";
import type { Database, Store } from "../db/database.ts";

/** A limit as it is kept. */
export interface StoredLimit {
  /** The platform's id; empty: of the organization. */
  readonly workspaceId: string;
  readonly limitType: string;
  /** Null: there is no limit. */
  readonly value: number | null;
  readonly isRejecting: boolean;
}

/** Replaces the limits of a source by those that were read. */
export async function keepUsageLimits(
  store: Store,
  { sourceId, limits }: { sourceId: number; limits: readonly StoredLimit[] },
): Promise<void> {
  const rows = limits.map((one) => ({
    ...{ workspace: one.workspaceId, limit_type: one.limitType, limit_value: one.value },
    is_rejecting: one.isRejecting,
  }));
  await store.transaction(async ({ db }) => {
    // Two looks at once: the one that ends last counts.
    await sql`select from usage.source where source_id = ${sourceId} for no key update`.execute(db);
    await sql`delete from usage.usage_limit where source_id = ${sourceId}`.execute(db);
    await sql`
      insert into usage.usage_limit (source_id, workspace, limit_type, limit_value, is_rejecting, read_at)
      select ${sourceId}, workspace, limit_type, limit_value, is_rejecting, now()
      from json_populate_recordset(null::usage.usage_limit, ${JSON.stringify(rows)}::json)
    `.execute(db);
  });
}

/** Keeps the billing period that is under way. Earlier ones stay. */
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
    insert into usage.billing_period (source_id, ends_at, plan_tier, plan_started_at, plan_ends_at, first_read_at, read_at)
    values (${period.sourceId}, ${at(period.endsAt)}, ${period.planTier}, ${at(period.planStartedAt)}, ${at(period.planEndsAt)}, now(), now())
    on conflict (source_id, ends_at) do update
    set plan_tier = excluded.plan_tier, plan_started_at = excluded.plan_started_at, plan_ends_at = excluded.plan_ends_at,
        read_at = excluded.read_at
  `.execute(db);
}
