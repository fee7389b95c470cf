import { type Amount, amountOf, amountOfStored, amountText } from "../../core/domain/usage/amount.ts";
import type { Measure, Meter } from "../../core/domain/usage/meter.ts";
import { METER_OF_SCOPE } from "../../core/store/catalog/scopes.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import type { BillLine, CurrencyCost } from "../costs/bill.ts";

/** An open difference of a workspace: the platform reports another number than the stored one. */
export interface OpenDifference {
  readonly meter: Meter;
  readonly measure: Measure;
  readonly workspace: string;
  /** Days, ISO, the end not included. */
  readonly from: string;
  readonly to: string;
  readonly stored: Amount;
  readonly reported: Amount;
}

/** Open differences of days by workspace in a range. Those of other dimensions are parts of these, or have no money. */
export async function openDifferences(
  db: Database,
  { sourceId, from, to }: { sourceId: number; from: string; to: string },
): Promise<OpenDifference[]> {
  const rows = await query<
    Omit<OpenDifference, "stored" | "reported"> & { stored: number; reported: number }
  >(db)`
    select ${METER_OF_SCOPE} as meter, d.measure, coalesce(w.dimension_name, w.dimension_id) as workspace,
           (d.period_start at time zone 'UTC')::date::text as "from", (d.period_end at time zone 'UTC')::date::text as "to",
           max(d.stored_traces)::float8 as stored, max(d.other_traces)::float8 as reported
    from usage.difference d
    join usage.scope c using (scope_id)
    join usage.labelled_entity w on w.entity_id = c.workspace_id
    where c.source_id = ${sourceId} and c.group_by = 'workspace' and c.stride = 'day' and d.state in ('open', 'platform_disagrees')
      and d.stored_traces is not null and d.other_traces is not null
      and d.period_start < ${to}::timestamp at time zone 'UTC' and d.period_end > ${from}::timestamp at time zone 'UTC'
    group by 1, 2, 3, 4, 5
    order by 4, 1, 2, 3
  `;
  return rows.map(({ stored, reported, ...row }) => ({
    ...row,
    stored: amountOfStored(row.measure, stored),
    reported: amountOfStored(row.measure, reported),
  }));
}

/** What differences are worth at the last price of their measure on the bill, whatever their sign. Empty: no price. */
export function worthOf(differences: readonly OpenDifference[], lines: readonly BillLine[]): CurrencyCost[] {
  const worth = new Map<string, Amount>();
  for (const { measure, stored, reported } of differences) {
    const price = lines.findLast((one) => one.line === "charge" && one.measure === measure);
    if (price?.unitPrice == null || price.currency === null) continue;
    const size = reported > stored ? reported - stored : stored - reported;
    const cost = (size * amountOf(price.unitPrice)) / amountOf(1);
    worth.set(price.currency, (worth.get(price.currency) ?? 0n) + cost);
  }
  return [...worth].map(([currency, cost]) => ({ currency, cost: amountText(cost) }));
}
