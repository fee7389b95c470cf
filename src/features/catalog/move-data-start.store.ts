import { sql } from "kysely";
import { UsageError } from "../../core/base/errors.ts";
import { floorToGrid, STRIDE_MS, STRIDES, type Stride } from "../../core/domain/time/stride.ts";
import { METER } from "../../core/domain/usage/meter.ts";
import { closesBetween } from "../../core/store/catalog/data-start.ts";
import { clearTime } from "../../core/store/catalog/scope-time.ts";
import { lockScopes, lockSource } from "../../core/store/catalog/scopes.ts";
import { setDataStart } from "../../core/store/catalog/sources.ts";
import { expectNoNames } from "../../core/store/catalog/write-workspaces.ts";
import { clearProof } from "../../core/store/coverage/proved-time.ts";
import type { Store } from "../../core/store/db/database.ts";
import { type Database, query } from "../../core/store/db/query.ts";
import { recordTable } from "../../core/store/load/load-statements.ts";
import { keepMonthsOf } from "../../core/store/load/month-totals.ts";
import { endDifferences } from "../../core/store/proof/write-differences.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";

/**
 * Moves the data start to a later day. Removes or closes earlier zeros, coverage, failures, fetch tasks and differences. `by`:
 * the person for the audit record. Errors, without any change: `data_start_hides_usage`, `data_start_closed`,
 * `data_start_backfill`.
 */
export async function moveDataStart(
  store: Store,
  { sourceId, to, by }: { sourceId: number; to: string; by: Actor },
): Promise<void> {
  await store.transaction(async ({ db }) => {
    const ofSource = db.selectFrom("usage.scope").where("source_id", "=", sourceId);
    const scopes = await ofSource
      .select(["scope_id", "stride"])
      .where("kind", "=", METER.traces.kind)
      .execute();
    await lockScopes(
      db,
      scopes.map((scope) => scope.scope_id),
    );
    // After scopes and before failures, as in other transactions: no deadlock.
    await lockSource(db, sourceId);
    await refuseUnfinished(db, { sourceId, to });
    const parts = STRIDES.map((stride) => ({
      stride,
      scopeIds: scopes.filter((scope) => scope.stride === stride).map((scope) => scope.scope_id),
      end: floorToGrid(Date.parse(to), STRIDE_MS[stride]),
    }));
    for (const part of parts) await refuseHiding(db, part, to);
    await setDataStart(db, sourceId, to);
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
  const [closed] = await closesBetween(db, { sourceId, from: "0001-01-01", to });
  if (closed !== undefined) {
    throw new UsageError({
      code: "data_start_closed",
      message: `The data start cannot move to ${to}: ${closed} is closed, and a closed period keeps its days.`,
      next: "Set USAGE_DATA_START to the present data start.",
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
    next: `Wait until the backfill is done, or run \`usage-etl backfill cancel ${backfill.id}\`.`,
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
    message: `The data start cannot move to ${to}: traces from ${first} to ${last} are stored, grouped by ${part.stride}.`,
    next: `Choose ${first} or an earlier day, and set USAGE_DATA_START to that day.`,
  });
}

async function forget(db: Database, part: Part): Promise<void> {
  const { table, condition } = recordsOf(part);
  const { scopeIds, end } = part;
  const period = { start: 0, end };
  await sql`delete from ${table} r using usage.series s where ${condition}`.execute(db);
  await clearTime(db, "coverage", { scopeIds, period });
  await clearTime(db, "failure", { scopeIds, period });
  await clearProof(db, { scopeIds, period });
  const isBefore = sql`d.scope_id = any (${scopeIds}::integer[]) and d.period_end <= ${new Date(end)}`;
  await endDifferences(db, "closed", isBefore);
}
