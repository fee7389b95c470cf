import { sql } from "kysely";
import type { Database } from "../db/database.ts";

export interface ViewColumn {
  readonly name: string;
  /** As Postgres names it, without modifier: `bigint`, `numeric`, `timestamp with time zone`. */
  readonly type: string;
  /** Digits in all and after the point; null for other types than numeric, and for a numeric without bounds. */
  readonly precision: number | null;
  readonly scale: number | null;
  readonly comment: string;
}

export interface View {
  readonly name: string;
  readonly comment: string;
  readonly columns: readonly ViewColumn[];
}

/** Every view of the schema reporting, with its columns in their order. */
export async function listViews(db: Database): Promise<View[]> {
  const { rows } = await sql<View>`
    select c.relname as name, coalesce(obj_description(c.oid, 'pg_class'), '') as comment,
           json_agg(json_build_object(
             'name', a.attname, 'type', format_type(a.atttypid, null),
             'precision', case when a.atttypid = 'numeric'::regtype and a.atttypmod >= 4 then ((a.atttypmod - 4) >> 16) & 65535 end,
             'scale', case when a.atttypid = 'numeric'::regtype and a.atttypmod >= 4 then (a.atttypmod - 4) & 2047 end,
             'comment', coalesce(col_description(c.oid, a.attnum), '')
           ) order by a.attnum) as columns
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace = 'reporting'::regnamespace and c.relkind = 'v'
    group by c.oid, c.relname
    order by c.relname collate "C"
  `.execute(db);
  return rows;
}

/** The key columns of a view, from its comment. A view that is not ours has none. */
export function keyOf(view: View): readonly string[] {
  return /\(key: ([^)]*)\)/.exec(view.comment)?.[1]?.split(", ") ?? [];
}

/** Columns that a range of time filters by: the first that the view has. */
const TIME_COLUMNS = [
  "usage_date",
  "usage_hour",
  "month_start",
  "period_start",
  "observed_on",
  "x_UsageDate",
];
/** Views whose period is a parameter, not the time of usage. */
const TIMELESS = ["backfill_status"];

export function timeColumnOf(view: View): ViewColumn | undefined {
  if (TIMELESS.includes(view.name)) return undefined;
  return TIME_COLUMNS.map((name) => view.columns.find((column) => column.name === name)).find(
    (column) => column !== undefined,
  );
}
