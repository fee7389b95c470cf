import { type RawBuilder, sql } from "kysely";
import { type Database, query, type Row } from "../db/query.ts";

/** Postgres stores costs by day (usage.charge, usage.charge_day) at the end of each transaction that changes their inputs. */

export interface StoredCharges {
  readonly charges: number;
  readonly chargesChanged: number;
}

/** Makes all charges of a source, or of one month, due. Modules call it when they change data that decides charges. */
export async function chargesDue(
  db: Database,
  sourceId: number,
  monthStart: string | null = null,
): Promise<void> {
  await sql`select usage.charges_due(${sourceId}::smallint, ${monthStart}::date)`.execute(db);
}

/**
 * Returns one statement that makes a change, and makes all charges of each returned `source_id` due. `change` returns null for
 * a row that decides no charge.
 */
export function notingCharges(change: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    with changed as (${change})
    select usage.charges_due(source_id, null)
    from (select distinct source_id from changed where source_id is not null) c`;
}

export async function storeDueCharges(db: Database): Promise<void> {
  await sql`set constraints usage.charges_follow immediate`.execute(db);
  await sql`set constraints usage.charges_follow deferred`.execute(db);
}

export async function recomputeCharges(db: Database): Promise<StoredCharges> {
  await sql`select usage.charges_due(null, null)`.execute(db);
  await storeDueCharges(db);
  const rows = await query<StoredCharges>(db)`
    select (select count(*)::integer from usage.charge) as charges,
           coalesce(nullif(current_setting('usage.charges_changed', true), ''), '0')::integer as "chargesChanged"
  `;
  // If the tables had been empty, the planner would still expect a few rows.
  await sql`analyze usage.charge, usage.charge_day`.execute(db);
  return rows[0] as StoredCharges;
}

export interface WrongCharge extends Row<"usage.charge", "sku"> {
  readonly workspaceId: string;
  readonly day: string;
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
