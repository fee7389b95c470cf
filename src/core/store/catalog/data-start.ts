import { type RawBuilder, sql } from "kysely";
import type { Window } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import { type Database, queryValues } from "../db/query.ts";
import { CLOSE_NAME } from "../months/closes.ts";

/**
 * `usage.source.data_start` is the only place of a source's data start, for traces of every tier. Deployment usage has its own
 * start (source-meters.ts). Dates are UTC days, `YYYY-MM-DD`.
 */

export async function dataStartOf(db: Database, slug: string): Promise<string | undefined> {
  const source = db.selectFrom("usage.source").where("slug", "=", slug);
  return (await source.select("data_start").executeTakeFirst())?.data_start;
}

export async function closesBetween(
  db: Database,
  { sourceId, from, to }: { sourceId: number; from: string; to: string },
): Promise<string[]> {
  return queryValues<string>(db)`
    select ${CLOSE_NAME} as name from usage.close m
    where source_id = ${sourceId} and period_start < ${to}::date and period_end > ${from}::date
    order by period_start
  `;
}

export interface RequestedTime {
  readonly sourceId: number;
  readonly meter: Meter;
  readonly window: Window;
}

/**
 * SQL condition: a window of hours or days begins before the data start, which may move during the fetch. Windows of longer
 * buckets may begin earlier, because no view of days shows them.
 */
export function isBeforeDataStart({ sourceId, meter, window }: RequestedTime): RawBuilder<boolean> {
  if (METER[meter].kind !== "traces" || (window.stride !== "hour" && window.stride !== "day"))
    return sql<boolean>`false`;
  return sql<boolean>`exists (
    select from usage.source
    where source_id = ${sourceId} and data_start::timestamp at time zone 'UTC' > ${new Date(window.start)}
  )`;
}
