import { sql } from "kysely";
import type { AlertKind } from "../../domain/bill/alert-route.ts";
import type { Database } from "../db/database.ts";

/** Somebody has said that they look after an incident, as far as it had grown then. */
export interface Acknowledgement {
  readonly source: string;
  readonly kind: AlertKind;
  /** Null: nobody's. */
  readonly owner: string | null;
  readonly count: number;
  readonly newest: number;
  /** Null where nobody says. */
  readonly by: string | null;
  /** ISO instant. */
  readonly at: string;
}

/** Of one source, or of all. */
export async function listAcknowledgements(db: Database, sourceId?: number): Promise<Acknowledgement[]> {
  const { rows } = await sql<Acknowledgement>`
    select slug as source, kind, nullif(owner, '') as owner, told as count, newest, acknowledged_by as by,
           to_char(acknowledged_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at
    from usage.acknowledgement join usage.source using (source_id)
    where ${sourceId === undefined ? sql`true` : sql`source_id = ${sourceId}`}
    order by slug, kind, owner
  `.execute(db);
  return rows;
}

/** Takes the place of an earlier one. Returns the number of the source. */
export async function storeAcknowledgement(
  db: Database,
  { source, kind, owner, count, newest, by }: Omit<Acknowledgement, "at">,
): Promise<number> {
  const { rows } = await sql<{ sourceId: number }>`
    insert into usage.acknowledgement (source_id, kind, owner, told, newest, acknowledged_by)
    select source_id, ${kind}, ${owner ?? ""}, ${count}, ${newest}, ${by} from usage.source where slug = ${source}
    on conflict (source_id, kind, owner) do update
    set told = excluded.told, newest = excluded.newest, acknowledged_by = excluded.acknowledged_by, acknowledged_at = now()
    returning source_id as "sourceId"
  `.execute(db);
  return rows[0]?.sourceId as number;
}

/** Of incidents that are over: the next one of that kind is another. */
export async function removeAcknowledgements(
  db: Database,
  sourceId: number,
  ended: readonly Pick<Acknowledgement, "kind" | "owner">[],
): Promise<void> {
  await sql`
    delete from usage.acknowledgement a
    using jsonb_to_recordset(${JSON.stringify(ended)}::jsonb) x (kind text, owner text)
    where a.source_id = ${sourceId} and a.kind = x.kind and a.owner = coalesce(x.owner, '')
  `.execute(db);
}
