import { iso } from "../../core/store/db/expressions.ts";
import { type Database, query } from "../../core/store/db/query.ts";

export interface Settlement {
  readonly matchId: number;
  /** Null: nothing was left to explain. */
  readonly reason: string | null;
  /** Exact decimal. */
  readonly remainder: string;
  readonly settledAt: string;
  readonly settledBy: string;
  /** Settlements that this one corrects. */
  readonly corrected: number;
}

/** The settlement that counts: the last one. */
export async function settlementOf(db: Database, invoiceId: number): Promise<Settlement | null> {
  const rows = await query<Settlement>(db)`
    select s.match_id as "matchId", s.reason, trim_scale(m.remainder)::text as remainder, ${iso("s.settled_at")} as "settledAt",
           s.settled_by as "settledBy", (count(*) over () - 1)::integer as corrected
    from usage.invoice_settlement s join usage.invoice_match m using (match_id)
    where s.invoice_id = ${invoiceId}
    order by s.settlement_id desc limit 1
  `;
  return rows[0] ?? null;
}

export async function keepSettlement(
  db: Database,
  settled: { invoiceId: number; matchId: number; reason: string | null; settledBy: string },
): Promise<void> {
  await db
    .insertInto("usage.invoice_settlement")
    .values({
      ...{ invoice_id: settled.invoiceId, match_id: settled.matchId },
      ...{ reason: settled.reason, settled_by: settled.settledBy },
    })
    .execute();
}
