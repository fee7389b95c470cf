import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Costs by day (usage.charge). Postgres stores them by itself, at the end of each transaction that changes what they follow from. */

export interface StoredCharges {
  /** Workspace x day x SKU x volume tier, at the prices of now. */
  readonly charges: number;
  /** Rows that this transaction has changed so far. */
  readonly chargesChanged: number;
}

/** Stores the charges that follow from what the transaction has changed so far, for whoever reads them before it ends. */
export async function storeDueCharges(db: Database): Promise<void> {
  await sql`set constraints usage.charges_follow immediate`.execute(db);
  await sql`set constraints usage.charges_follow deferred`.execute(db);
}

/** Computes all charges of every source anew, and stores those that differ. */
export async function recomputeCharges(db: Database): Promise<StoredCharges> {
  await sql`select usage.charges_due(null, null)`.execute(db);
  await storeDueCharges(db);
  const { rows } = await sql<StoredCharges>`
    select (select count(*)::integer from usage.charge where not is_closed) as charges,
           coalesce(nullif(current_setting('usage.charges_changed', true), ''), '0')::integer as "chargesChanged"
  `.execute(db);
  // There may have been none: then the planner would take them for a few.
  await sql`analyze usage.charge`.execute(db);
  return rows[0] as StoredCharges;
}

/** A charge that is stored and should not be, or the other way round. */
export interface WrongCharge {
  /** The platform's id; `(forgotten)` of a workspace that is gone. */
  readonly workspaceId: string;
  /** ISO day, UTC. */
  readonly day: string;
  readonly sku: string;
}

/** Checks all charges of a source. `first` is the first that is wrong. */
export async function checkCharges(
  db: Database,
  sourceId: number,
): Promise<{ wrong: number; first: WrongCharge | undefined }> {
  const { rows } = await sql<WrongCharge & { all: number }>`
    select coalesce(e.external_id, '(forgotten)') as "workspaceId", to_char(w.usage_date, 'YYYY-MM-DD') as day, w.sku, (count(*) over ())::integer as all
    from usage.wrong_charges(${sourceId}::smallint) w left join usage.entity e on e.entity_id = w.workspace_id
    order by w.usage_date limit 1
  `.execute(db);
  const [found] = rows;
  if (found === undefined) return { wrong: 0, first: undefined };
  const { all, ...first } = found;
  return { wrong: all, first };
}
