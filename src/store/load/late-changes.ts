import { sql } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";

/** Upper ends of the age classes, in hours. The last class takes everything older. */
export const AGE_CLASSES_HOURS: readonly number[] = [
  ...[1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 120, 144, 168, 240, 336, 504, 744, 1488, 2232, 8784, 876_000],
];

/** The late changes of one age class, separately for final and provisional buckets. */
export interface LateChange {
  readonly was_final: boolean;
  readonly age_hours: number;
  readonly changes: number;
  readonly traces_moved: number;
}

/** Adds to the distribution of ages, in key order, so that concurrent loads never wait for each other in a circle. */
export async function countLateChanges(
  db: Database,
  where: { sourceId: number; groupBy: GroupBy; stride: Stride; observedAt: number },
  late: readonly LateChange[],
): Promise<void> {
  if (late.length === 0) return;
  await sql`
    insert into usage.late_change as l
      (source_id, observed_on, group_by, stride, was_final, age_hours, changes, traces_moved)
    select ${where.sourceId}, (${new Date(where.observedAt)}::timestamptz at time zone 'UTC')::date, ${where.groupBy},
           ${where.stride}, n.*
    from json_to_recordset(${JSON.stringify(late)}::json)
      n (was_final boolean, age_hours integer, changes bigint, traces_moved bigint)
    order by n.was_final, n.age_hours
    on conflict (source_id, observed_on, group_by, stride, was_final, age_hours) do update
    set changes = l.changes + excluded.changes, traces_moved = l.traces_moved + excluded.traces_moved
  `.execute(db);
}
