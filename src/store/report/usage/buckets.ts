import { sql } from "kysely";
import type { Database } from "../../db/database.ts";
import { cellsOf, recordsIn, type UsageOf, type UsageRange } from "./records.ts";

/** Traces of one line of `usageSums` in one bucket. Buckets without a record have no row. */
export interface BucketSum {
  /** First day of a day or month, `2026-03-01`; of an hour its instant, `2026-03-01T05:00:00Z`. */
  readonly bucket: string;
  /** Place in `keys`; null: of all other ids. */
  readonly place: number | null;
  readonly traces: number;
}

/** What the named ids, and all others together, have in each bucket of a range. */
export async function usageBuckets(
  db: Database,
  of: UsageOf,
  { range, keys }: { range: UsageRange; keys: readonly number[] },
): Promise<BucketSum[]> {
  const { rows } = await sql<BucketSum>`
    with ${cellsOf(of)},
    chosen as materialized (select key, place - 1 as place from unnest(${[...keys]}::integer[]) with ordinality k (key, place))
    select to_char(p.bucket ${range.per === "hour" ? sql`at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'` : sql`, 'YYYY-MM-DD'`}) as bucket,
           p.place::integer as place, p.traces
    from (
      select r.bucket, k.place, sum(r.traces)::bigint as traces
      from (${recordsIn(of, range)}) r left join chosen k using (key)
      group by 1, 2
    ) p
    order by 1, 2
  `.execute(db);
  return rows;
}
