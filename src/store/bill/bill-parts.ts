import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** What of the organisation's bill is read beside usage, each by itself: a key may read some of it. */
const BILL_PARTS = ["provider_totals", "usage_limits", "billing_period"] as const;
export type BillPart = (typeof BILL_PARTS)[number];

export interface LearnedBillPart {
  readonly part: BillPart;
  /** What the server answered in place of it; null: it answers. */
  readonly refusal: string | null;
  readonly askedAt: Date;
  /** Whether it may be asked for again by itself. A command asks at any time. */
  readonly isDue: boolean;
}

/** Keeps how the last request for a part ended. */
export async function noteBillPart(
  db: Database,
  { sourceId, part, refusal }: { sourceId: number; part: BillPart; refusal: string | null },
): Promise<void> {
  await sql`
    insert into usage.bill_part (source_id, part, refusal, asked_at) values (${sourceId}, ${part}, ${refusal}, now())
    on conflict (source_id, part) do update set refusal = excluded.refusal, asked_at = excluded.asked_at
  `.execute(db);
}

/** A part that was refused is due after a day; the nightly run may begin a little earlier than the last one. */
export async function billPartsOf(db: Database, sourceId: number): Promise<LearnedBillPart[]> {
  const { rows } = await sql<LearnedBillPart>`
    select part, refusal, asked_at as "askedAt", refusal is null or asked_at < now() - interval '23 hours' as "isDue"
    from usage.bill_part where source_id = ${sourceId}
    order by array_position(${[...BILL_PARTS]}::text[], part)
  `.execute(db);
  return rows;
}
