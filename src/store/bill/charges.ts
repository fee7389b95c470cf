import { sql } from "kysely";
import { type Database, query } from "../db/query.ts";

/** Postgres stores costs by day (usage.charge) at the end of each transaction that changes what they derive from. */

export interface StoredCharges {
  /** Workspace x day x SKU x volume tier, at today's prices. */
  readonly charges: number;
  readonly chargesChanged: number;
}

/** Stores due charges at once, for reads within the transaction. */
export async function storeDueCharges(db: Database): Promise<void> {
  await sql`set constraints usage.charges_follow immediate`.execute(db);
  await sql`set constraints usage.charges_follow deferred`.execute(db);
}

/** Computes all charges of every source anew, and stores those that differ. */
export async function recomputeCharges(db: Database): Promise<StoredCharges> {
  await sql`select usage.charges_due(null, null)`.execute(db);
  await storeDueCharges(db);
  const rows = await query<StoredCharges>(db)`
    select (select count(*)::integer from usage.charge where not is_closed) as charges,
           coalesce(nullif(current_setting('usage.charges_changed', true), ''), '0')::integer as "chargesChanged"
  `;
  // If the table was empty, the planner would still expect a few rows.
  await sql`analyze usage.charge`.execute(db);
  return rows[0] as StoredCharges;
}

export interface WrongCharge {
  /** The platform's id; `(forgotten)` of a removed workspace. */
  readonly workspaceId: string;
  readonly day: string;
  readonly sku: string;
}

export async function checkCharges(
  db: Database,
  sourceId: number,
): Promise<{ wrong: number; first: WrongCharge | undefined }> {
  const [found] = await query<WrongCharge & { all: number }>(db)`
    select coalesce(e.external_id, '(forgotten)') as "workspaceId", to_char(w.usage_date, 'YYYY-MM-DD') as day, w.sku, (count(*) over ())::integer as all
    from usage.wrong_charges(${sourceId}::smallint) w left join usage.entity e on e.entity_id = w.workspace_id
    order by w.usage_date limit 1
  `;
  if (found === undefined) return { wrong: 0, first: undefined };
  const { all, ...first } = found;
  return { wrong: all, first };
}
