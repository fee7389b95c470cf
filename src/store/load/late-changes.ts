import { sql } from "kysely";
import type { Stride } from "../../domain/time/stride.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";

/** Upper ends of the classes of ages, in hours. The last one takes whatever is older. */
export const AGE_CLASSES_HOURS: readonly number[] = [
  ...[1, 2, 3, 6, 12, 24, 36, 48, 72, 96, 120, 144, 168, 240, 336, 504, 744, 1488, 2232, 8784, 876_000],
];

/** Changes of one class of ages, by whether their bucket was settled. */
export interface LateChange {
  readonly was_settled: boolean;
  readonly age_hours: number;
  readonly changes: number;
  readonly traces_moved: number;
}

/** Adds to the distribution over ages, in key order: loads that do so at once wait for one another, never in a ring. */
export async function countLateChanges(
  db: Database,
  where: { sourceId: number; groupBy: GroupBy; stride: Stride; observedAt: number },
  late: readonly LateChange[],
): Promise<void> {
  if (late.length === 0) return;
  await sql`
    insert into usage.late_change as l
      (source_id, observed_on, group_by, stride, was_settled, age_hours, changes, traces_moved)
    select ${where.sourceId}, (${new Date(where.observedAt)}::timestamptz at time zone 'UTC')::date, ${where.groupBy},
           ${where.stride}, n.*
    from unnest(
      ${late.map((one) => one.was_settled)}::boolean[], ${late.map((one) => one.age_hours)}::integer[],
      ${late.map((one) => one.changes)}::bigint[], ${late.map((one) => one.traces_moved)}::bigint[]
    ) n (was_settled, age_hours, changes, traces_moved)
    order by n.was_settled, n.age_hours
    on conflict (source_id, observed_on, group_by, stride, was_settled, age_hours) do update
    set changes = l.changes + excluded.changes, traces_moved = l.traces_moved + excluded.traces_moved
  `.execute(db);
}
