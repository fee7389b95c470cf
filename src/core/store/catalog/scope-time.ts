import { type RawBuilder, type Selectable, sql } from "kysely";
import type { LoadedInterval } from "../../domain/coverage/finality.ts";
import type { Interval } from "../../domain/time/window.ts";
import { epochMs } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";
import type { Schema } from "../db/schema.ts";

export interface ScopeTime {
  readonly scopeIds: readonly number[];
  readonly period: Interval;
}

export type CoverageRow = Omit<Selectable<Schema["usage.coverage"]>, "traced" | "digest" | "digest_epoch">;

export function overlaps({ scopeIds, period }: ScopeTime): RawBuilder<boolean> {
  return sql<boolean>`scope_id = any (${scopeIds}::integer[])
    and period_start < ${new Date(period.end)}::timestamptz and period_end > ${new Date(period.start)}::timestamptz`;
}

export function multirange({ start, end }: Interval): RawBuilder<unknown> {
  return sql`tstzmultirange(tstzrange(${new Date(start)}::timestamptz, ${new Date(end)}::timestamptz))`;
}

export function multirangeText(parts: readonly Interval[]): string {
  const ranges = parts.map(
    ({ start, end }) => `[${new Date(start).toISOString()},${new Date(end).toISOString()})`,
  );
  return `{${ranges.join()}}`;
}

/** SQL: the parts in order of time, as JSON for `toIntervals`. Null for an empty multirange. */
export function partsAsJson(multirange: RawBuilder<unknown>): RawBuilder<JsonParts> {
  return sql<JsonParts>`(
    select json_agg(json_build_array(
      ${epochMs("lower(p)")}, ${epochMs("upper(p)")}
    ) order by p) from unnest(${multirange}) p
  )`;
}

export type JsonParts = readonly (readonly [start: number, end: number])[];

export function toIntervals(parts: JsonParts): Interval[] {
  return parts.map(([start, end]) => ({ start, end }));
}

const COLUMNS = {
  coverage: ["final", "fetch_number", "fetched_at", "digest_epoch"],
  failure: ["state", "code", "message", "attempts", "fetch_number", "failed_at", "retry_at"],
  reconciled: ["fetch_number", "reconciled_at"],
  matched_total: ["total_start", "total_end", "fetch_number", "matched_at"],
} as const satisfies {
  [Table in
    | "coverage"
    | "failure"
    | "reconciled"
    | "matched_total"]: readonly (keyof Schema[`usage.${Table}`])[];
};

interface Cleared extends Record<keyof typeof COLUMNS, { readonly scope_id: number }> {
  readonly coverage: Selectable<Schema["usage.coverage"]>;
  readonly failure: Selectable<Schema["usage.failure"]>;
}

/**
 * Removes a period from the rows of older fetches; without `olderThan`, from all rows. The parts of a row outside the period
 * stay. Returns the rows before the change.
 */
export async function clearTime<Table extends keyof typeof COLUMNS>(
  db: Database,
  table: Table,
  cleared: ScopeTime & { olderThan?: number },
): Promise<Cleared[Table][]> {
  const { olderThan } = cleared;
  const [name, columns] = [sql.id("usage", table), sql.join(COLUMNS[table].map((column) => sql.id(column)))];
  const [content, partOfContent] =
    table === "coverage"
      ? [
          sql`, traced, digest`,
          sql`, traced * tstzmultirange(part), usage.digest_part(digest, tstzrange(period_start, period_end), part)`,
        ]
      : [sql``, sql``];
  return query<Cleared[Table]>(db)`
    with removed as (
      delete from ${name}
      where ${overlaps(cleared)} ${olderThan === undefined ? sql`` : sql`and fetch_number < ${olderThan}`}
      returning *
    ), outside as (
      insert into ${name} (scope_id, period_start, period_end, ${columns}${content})
      select scope_id, lower(part), upper(part), ${columns}${partOfContent}
      from removed
      cross join lateral unnest(
        tstzmultirange(tstzrange(period_start, period_end)) - ${multirange(cleared.period)}
      ) part
    )
    select * from removed
  `;
}

export function toLoadedInterval(row: CoverageRow): LoadedInterval & { scopeId: number } {
  return {
    scopeId: row.scope_id,
    start: row.period_start.getTime(),
    end: row.period_end.getTime(),
    final: row.final,
    fetchNumber: row.fetch_number,
    fetchedAt: row.fetched_at.getTime(),
  };
}
