import { type RawBuilder, sql } from "kysely";
import { floorToGrid, STRIDE_MS, STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Window } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import { UsageError } from "../../errors.ts";
import type { Store } from "../db/database.ts";
import { type Database, query, queryValues } from "../db/query.ts";
import { recordTable } from "../load/load-statements.ts";
import { keepMonthsOf } from "../load/month-counter.ts";
import { type Actor, recordAction } from "../work/operator-actions.ts";
import { clearTime } from "./scope-time.ts";
import { lockScopes, lockSource } from "./scopes.ts";

/**
 * `usage.source.data_start` is the only place of a source's data start, for traces of every tier. Deployment usage begins with
 * its own history (source-meters.ts). Dates are UTC days, `YYYY-MM-DD`.
 */

export async function dataStartOf(db: Database, slug: string): Promise<string | undefined> {
  const [data_start] = await queryValues<string>(db)`
    select data_start from usage.source where slug = ${slug}
  `;
  return data_start;
}

/** The configured start if it is earlier, or if nothing was ever loaded; else the stored one. */
export function dataStartAfterContact(sourceId: number, configured: string): RawBuilder<string> {
  return sql<string>`case
    when exists (
      select from usage.coverage v join usage.trace_scope c using (scope_id) where c.source_id = ${sourceId}
    ) or exists (select from usage.fetch_task where source_id = ${sourceId})
      then least(data_start, ${configured}::date)
    else ${configured}::date end`;
}

/** After the data start moved later, responses need not name ids that had usage only before it. */
export async function expectNoNames(db: Database, sourceId: number): Promise<void> {
  await sql`
    with locked as (
      select w.entity_id from usage.workspace w join usage.entity e using (entity_id)
      where e.source_id = ${sourceId} and w.used_before is not null
      order by 1 for no key update of w
    )
    update usage.workspace w set used_before = null from locked where locked.entity_id = w.entity_id
  `.execute(db);
}

export async function closedMonthsBetween(
  db: Database,
  { sourceId, from, to }: { sourceId: number; from: string; to: string },
): Promise<string[]> {
  return queryValues<string>(db)`
    select month_start::text as month from usage.month_close
    where source_id = ${sourceId} and month_start < ${to}::date
      and (month_start + interval '1 month')::date > ${from}::date
    order by 1
  `;
}

/**
 * Whether a window of hours or days is before the data start, which may move while the window is fetched. Longer buckets may
 * reach back, and no view of days shows them.
 */
export async function isBeforeDataStart(
  db: Database,
  { sourceId, meter, window }: { sourceId: number; meter: Meter; window: Window },
): Promise<boolean> {
  if (METER[meter].kind !== "traces" || (window.stride !== "hour" && window.stride !== "day")) return false;
  const rows = await query(db)`
    select from usage.source
    where source_id = ${sourceId} and data_start::timestamp at time zone 'UTC' > ${new Date(window.start)}
  `;
  return rows.length > 0;
}

/**
 * Moves the data start later. Zeros, coverage, failures, fetch tasks and differences before it are removed or closed. `by`: who
 * gives the order, which is recorded with it. Errors: `data_start_hides_usage`, `data_start_closed`, `data_start_backfill`;
 * then nothing has changed.
 */
export async function moveDataStart(
  store: Store,
  { sourceId, to, by }: { sourceId: number; to: string; by: Actor },
): Promise<void> {
  await store.transaction(async ({ db }) => {
    const scopes = await query<{ scope_id: number; stride: string }>(db)`
      select scope_id, stride from usage.scope where source_id = ${sourceId} and kind = ${METER.traces.kind}
    `;
    await lockScopes(
      db,
      scopes.map((scope) => scope.scope_id),
    );
    // After the scopes and before failures: other transactions lock in this order too.
    await lockSource(db, sourceId);
    await refuseUnfinished(db, { sourceId, to });
    const parts = STRIDES.map((stride) => ({
      stride,
      scopeIds: scopes.filter((scope) => scope.stride === stride).map((scope) => scope.scope_id),
      end: floorToGrid(Date.parse(to), STRIDE_MS[stride]),
    }));
    for (const part of parts) await refuseHiding(db, part, to);
    await sql`update usage.source set data_start = ${to} where source_id = ${sourceId}`.execute(db);
    await expectNoNames(db, sourceId);
    for (const part of parts) await forget(db, part);
    await recordAction(db, by, { sourceId, action: "data_start.move", detail: `data start moved to ${to}` });
    await keepMonthsOf(sql`(
      select t.series_id, t.month_start as bucket_start
      from usage.monthly_total t join usage.series using (series_id) join usage.scope c using (scope_id)
      where c.source_id = ${sourceId} and c.kind = ${METER.traces.kind} and t.month_start < ${to}::date
    ) before`).execute(db);
    await sql`
      delete from usage.fetch_task
      where source_id = ${sourceId} and backfill_id is null
        and period_start < ${to}::date::timestamp at time zone 'UTC'
    `.execute(db);
  });
}

async function refuseUnfinished(
  db: Database,
  { sourceId, to }: { sourceId: number; to: string },
): Promise<void> {
  const [closed] = await closedMonthsBetween(db, { sourceId, from: "0001-01-01", to });
  if (closed !== undefined) {
    throw new UsageError({
      code: "data_start_closed",
      message: `The data start cannot move to ${to}: ${closed.slice(0, 7)} is closed, and a closed month keeps its days.`,
      next: "Leave the data start as it is, and set USAGE_DATA_START to it.",
    });
  }
  const [backfill] = await query<{ id: number }>(db)`
    select backfill_id as id from usage.fetch_task
    where source_id = ${sourceId} and backfill_id is not null and state in ('waiting', 'queued')
      and period_start < ${to}::date::timestamp at time zone 'UTC'
    limit 1
  `;
  if (backfill === undefined) return;
  throw new UsageError({
    code: "data_start_backfill",
    message: `The data start cannot move to ${to}: backfill ${backfill.id} is loading days before it.`,
    next: `Wait until it is done, or run \`usage-etl backfill cancel ${backfill.id}\`.`,
  });
}

interface Part {
  readonly stride: Stride;
  readonly scopeIds: readonly number[];
  readonly end: number;
}

function recordsOf({ stride, scopeIds, end }: Part) {
  const { name, bucketType } = recordTable(stride);
  const [before, isDate] = [new Date(end).toISOString(), bucketType === "date"];
  return {
    table: sql.raw(name),
    day: isDate ? sql`r.bucket_start` : sql`(r.bucket_start at time zone 'UTC')::date`,
    condition: sql`s.series_id = r.series_id and s.scope_id = any (${scopeIds}::integer[])
      and r.bucket_start < ${isDate ? before.slice(0, 10) : before}::${sql.raw(bucketType)}`,
  };
}

async function refuseHiding(db: Database, part: Part, to: string): Promise<void> {
  const { table, day, condition } = recordsOf(part);
  const rows = await query<{ first: string | null; last: string }>(db)`
    select min(${day})::text as first, max(${day})::text as last
    from usage.series s, ${table} r where ${condition} and r.traces > 0
  `;
  const { first = null, last } = rows[0] ?? {};
  if (first === null) return;
  throw new UsageError({
    code: "data_start_hides_usage",
    message: `The data start cannot move to ${to}: traces are stored before it, by ${part.stride} from ${first} to ${last}.`,
    next: `Choose ${first} or earlier, and set USAGE_DATA_START to it.`,
  });
}

async function forget(db: Database, part: Part): Promise<void> {
  const { table, condition } = recordsOf(part);
  const { scopeIds, end } = part;
  const period = { start: 0, end };
  await sql`delete from ${table} r using usage.series s where ${condition}`.execute(db);
  for (const kept of ["coverage", "failure", "reconciled", "matched_total"] as const) {
    await clearTime(db, kept, { scopeIds, period });
  }
  await sql`
    update usage.reconciliation_difference set state = 'closed', closed_at = now()
    where scope_id = any (${scopeIds}::integer[]) and bucket_start < ${new Date(end)}
      and state in ('open', 'platform_disagrees')
  `.execute(db);
  await sql`
    update usage.control_difference set state = 'closed', closed_at = now()
    where scope_id = any (${scopeIds}::integer[]) and period_end <= ${new Date(end)}
      and state in ('platform_disagrees', 'unattributed')
  `.execute(db);
}
