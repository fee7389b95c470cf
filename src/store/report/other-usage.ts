import { sql } from "kysely";
import type { Interval } from "../../domain/time/window.ts";
import { METERS, type Meter, meterOf } from "../../domain/usage/meter.ts";
import type { Database } from "../db/database.ts";

/** What is known of other usage than traces of all tiers in some days. */
export interface OtherUsage {
  readonly meter: Meter;
  /** Days x workspaces x dimensions that are final, and those that were compared with a whole export. */
  readonly finalDays: number;
  readonly reconciledDays: number;
  /** Differences that are left, from the export or from a total. */
  readonly differences: number;
}

/** The meters of which any of these days is loaded, in their order. Traces of all tiers are not among them. */
export async function otherUsage(
  db: Database,
  { sourceId, range }: { sourceId: number; range: Interval },
): Promise<OtherUsage[]> {
  const [from, to] = [sql`${new Date(range.start)}::timestamptz`, sql`${new Date(range.end)}::timestamptz`];
  const days = sql`coalesce(sum(extract(epoch from least(t.period_end, ${to}) - greatest(t.period_start, ${from}))) / 86400, 0)`;
  const overlaps = sql`t.scope_id = c.scope_id and t.period_start < ${to} and t.period_end > ${from}`;
  const { rows } = await sql<Omit<OtherUsage, "meter"> & { kind: string; tier: string }>`
    select c.kind, c.trace_tier as tier, sum(f.days)::integer as "finalDays", sum(r.days)::integer as "reconciledDays",
           sum(d.differences)::integer as differences
    from usage.every_scope c
    cross join lateral (select ${days} as days from usage.coverage t where ${overlaps} and t.settled) f
    cross join lateral (select ${days} as days from usage.reconciled t where ${overlaps}) r
    cross join lateral (
      select (select count(*) from usage.reconciliation_difference e
              where e.scope_id = c.scope_id and e.closed_at is null and e.bucket_start >= ${from} and e.bucket_start < ${to})
           + (select count(*) from usage.control_difference t
              where ${overlaps} and t.state = 'platform_disagrees' and t.kind <> 'provider_total') as differences
    ) d
    where c.source_id = ${sourceId} and c.stride = 'day' and (c.kind <> 'traces' or c.trace_tier <> 'all')
      and exists (select from usage.coverage t where ${overlaps})
    group by 1, 2
  `.execute(db);
  return METERS.flatMap((meter) =>
    rows
      .filter(({ kind, tier }) => meterOf(kind, tier) === meter)
      .map(({ kind: _, tier: __, ...row }) => ({ meter, ...row })),
  );
}
