import { type RawBuilder, sql } from "kysely";

/** SQL: the ISO text of an instant in UTC, to the second or with milliseconds (MS) or microseconds (US). */
export function iso(instant: string, digits?: "MS" | "US"): RawBuilder<string> {
  const fraction = digits === undefined ? "" : `.${digits}`;
  return sql.raw(`to_char(${instant} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS${fraction}"Z"')`);
}

export function epochMs(instant: string): RawBuilder<number> {
  return sql.raw(`(extract(epoch from ${instant}) * 1000)::bigint`);
}

export const NOW = sql<Date>`now()`;
export const CLOCK = sql<Date>`clock_timestamp()`;

export function anyOf<Value>(values: readonly Value[]): RawBuilder<Value> {
  return sql`any(${values})`;
}

export function isIfGiven(column: string, value: string | number | null | undefined): RawBuilder<boolean> {
  return value === undefined || value === null ? sql`true` : sql`${sql.raw(column)} = ${value}`;
}

export function listOf(rows: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`(select coalesce(json_agg(x), '[]') from (${rows}) x)`;
}
