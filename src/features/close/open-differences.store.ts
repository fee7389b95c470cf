import { addDays } from "../../core/domain/time/days.ts";
import { type Amount, amountOfStored } from "../../core/domain/usage/amount.ts";
import type { Measure, Meter } from "../../core/domain/usage/meter.ts";
import { METER_OF_SCOPE } from "../../core/store/catalog/scopes.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import type { CurrencyCost } from "../costs/bill.ts";
import { worthOf } from "../costs/worth.store.ts";

/** An open difference of a workspace: the platform reports another number than the stored one. */
export interface OpenDifference {
  readonly meter: Meter;
  readonly measure: Measure;
  readonly workspaceId: string;
  readonly workspace: string;
  /** Days, ISO, the end not included. */
  readonly from: string;
  readonly to: string;
  readonly stored: Amount;
  readonly reported: Amount;
  /** Change of the bill by this difference, without sign. Empty: no price is valid. */
  readonly worth: readonly CurrencyCost[];
}

interface Read extends Omit<OpenDifference, "stored" | "reported" | "worth"> {
  readonly stored: number;
  readonly reported: number;
}

/** Open differences of days by workspace in a range. Those of other dimensions are parts of these, or have no money. */
export async function openDifferences(
  db: Database,
  { sourceId, source, from, to }: { sourceId: number; source: string; from: string; to: string },
): Promise<OpenDifference[]> {
  const rows = await query<Read>(db)`
    select ${METER_OF_SCOPE} as meter, d.measure, coalesce(w.dimension_name, w.dimension_id) as workspace, w.dimension_id as "workspaceId",
           (d.period_start at time zone 'UTC')::date::text as "from", (d.period_end at time zone 'UTC')::date::text as "to",
           max(d.stored_traces)::float8 as stored, max(d.other_traces)::float8 as reported
    from usage.difference d
    join usage.scope c using (scope_id)
    join usage.labelled_entity w on w.entity_id = c.workspace_id
    where c.source_id = ${sourceId} and c.group_by = 'workspace' and c.stride = 'day' and d.state in ('open', 'platform_disagrees')
      and d.stored_traces is not null and d.other_traces is not null
      and d.period_start < ${to}::timestamp at time zone 'UTC' and d.period_end > ${from}::timestamp at time zone 'UTC'
    group by 1, 2, 3, 4, 5, 6
    order by 5, 1, 2, 3
  `;
  const differences = rows.map(({ stored, reported, ...row }) => ({
    ...row,
    stored: amountOfStored(row.measure, stored),
    reported: amountOfStored(row.measure, reported),
  }));
  const worth = await worthOf(
    db,
    differences.map(({ stored, reported, ...one }) => ({
      ...{ ...one, source, day: addDays(one.to, -1), quantity: reported - stored },
    })),
  );
  return differences.map((one, n) => ({
    ...one,
    worth: (worth[n] ?? []).map(({ currency, cost }) => ({ currency, cost: cost.replace("-", "") })),
  }));
}
