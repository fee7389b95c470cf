import { sql } from "kysely";
import { normalize } from "../../domain/time/intervals.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { DIGEST_BYTES, WindowDigest } from "../../domain/usage/digest.ts";
import { clearTime, multirange, overlaps, type ScopeTime } from "../catalog/scope-time.ts";
import { lockScopes } from "../catalog/scopes.ts";
import { clearProof } from "../coverage/proved-time.ts";
import type { Store, Transaction } from "../db/database.ts";
import { epochMs } from "../db/expressions.ts";
import { type Database, query } from "../db/query.ts";

interface ScopeMonth extends Interval {
  readonly scopeId: number;
}

const BATCH = 5000;

/**
 * Finds changes that no trigger saw, such as a restore of one table: months whose daily records differ from the totals of their
 * loads, and hours whose records have another digest than their loads. Such time becomes provisional and unproved, so the next
 * sync compares each record. Each change is found once. Returns the number of months x scopes. Not found: a change of days that
 * keeps count and sum of each series and month.
 */
export async function invalidateChanged(store: Store, sourceId: number): Promise<number> {
  const ofSource = store.db.selectFrom("usage.scope").where("source_id", "=", sourceId).orderBy("scope_id");
  const scopes = await ofSource
    .select(["scope_id", "stride"])
    .where("stride", "in", ["day", "hour"])
    .execute();
  const ofStride = (stride: string) =>
    scopes.filter((scope) => scope.stride === stride).map((scope) => scope.scope_id);
  const miscounted = await miscountedMonths(store.db, ofStride("day"));
  let months = 0;
  for (const scopeId of new Set(miscounted.map((one) => one.scopeId))) {
    months += await store.transaction(async ({ db }) => {
      await lockScopes(db, [scopeId]);
      const found = await miscountedMonths(db, [scopeId]);
      for (const { start, end } of found)
        await invalidateProof(db, { scopeIds: [scopeId], period: { start, end } });
      await recount(db, scopeId);
      return found.length;
    });
  }
  // Each month has its own transaction, because loads wait for its lock.
  for (const month of await monthsOfHours(store.db, ofStride("hour"))) {
    months += await store.transaction(async (transaction) => {
      const scopeIds = [month.scopeId];
      await lockScopes(transaction.db, scopeIds);
      const hours = await otherHours(transaction, month);
      const parts = normalize(hours.map((start) => ({ start, end: start + HOUR_MS })));
      for (const period of parts) await invalidateProof(transaction.db, { scopeIds, period });
      return Math.min(1, parts.length);
    });
  }
  return months;
}

async function invalidateProof(db: Database, time: ScopeTime): Promise<void> {
  const [scopeId] = time.scopeIds;
  const loaded = await clearTime(db, "coverage", time);
  for (const { period_start, period_end, fetch_number, fetched_at, traced } of loaded) {
    await sql`
      insert into usage.coverage (scope_id, period_start, period_end, final, fetch_number, fetched_at, traced)
      select ${scopeId}::integer, lower(part), upper(part), false, ${fetch_number}, ${fetched_at}, ${traced} * tstzmultirange(part)
      from unnest(tstzmultirange(tstzrange(${period_start}, ${period_end})) * ${multirange(time.period)}) part
    `.execute(db);
  }
  await clearProof(db, time);
}

async function miscountedMonths(db: Database, scopeIds: readonly number[]): Promise<ScopeMonth[]> {
  const ids = sql`any (${scopeIds}::integer[])`;
  return query<ScopeMonth>(db)`
    select m.scope_id as "scopeId", ${epochMs("m.month_start")} as start,
           ${epochMs("m.month_start + interval '1 month'")} as "end"
    from (
      select distinct x.scope_id, month_start
      from (
        select r.series_id, usage.month_of(r.bucket_start) as month_start, sum(r.traces) as traces, count(*) as records
        from usage.dated_record r join usage.series x using (series_id) where x.scope_id = ${ids}
        group by 1, 2
      ) r
      full join (
        select t.* from usage.monthly_total t join usage.series x using (series_id) where x.scope_id = ${ids}
      ) t using (series_id, month_start)
      join usage.series x using (series_id)
      where (r.traces, r.records) is distinct from (t.traces, t.records)
    ) m
    order by 1, 2
  `;
}

async function recount(db: Database, scopeId: number): Promise<void> {
  await sql`
    delete from usage.monthly_total t using usage.series x where x.series_id = t.series_id and x.scope_id = ${scopeId}
  `.execute(db);
  await sql`
    insert into usage.monthly_total (series_id, month_start, traces, records)
    select r.series_id, usage.month_of(r.bucket_start), sum(r.traces), count(*)
    from usage.dated_record r join usage.series x using (series_id) where x.scope_id = ${scopeId}
    group by 1, 2
  `.execute(db);
}

async function monthsOfHours(db: Database, scopeIds: readonly number[]): Promise<ScopeMonth[]> {
  return query<ScopeMonth>(db)`
    select distinct c.scope_id as "scopeId", ${epochMs("m")} as start,
           ${epochMs("(m at time zone 'UTC' + interval '1 month') at time zone 'UTC'")} as "end"
    from usage.coverage c
    cross join lateral generate_series(
      date_trunc('month', c.period_start, 'UTC'), c.period_end - interval '1 microsecond', interval '1 month'
    ) m
    where c.scope_id = any (${scopeIds}::integer[]) and c.digest is not null
    order by 1, 2
  `;
}

/**
 * Returns the hours of a month of a locked scope whose records have another digest than their loads. A digest of an earlier
 * epoch still shows what was loaded.
 */
async function otherHours({ db, client }: Transaction, { scopeId, ...month }: ScopeMonth): Promise<number[]> {
  const loaded = await query<{ start: number; digest: Buffer }>(db)`
    select ${epochMs("lower(part)")} as start, usage.digest_part(digest, whole, part) as digest
    from (
      select digest, tstzrange(period_start, period_end) as whole,
             tstzrange(period_start, period_end) * tstzrange(${new Date(month.start)}::timestamptz, ${new Date(month.end)}::timestamptz) as part
      from usage.coverage where ${overlaps({ scopeIds: [scopeId], period: month })} and digest is not null
    ) c
  `;
  const stored = new WindowDigest({ stride: "hour", ...month });
  await client.query(
    `DECLARE hours NO SCROLL CURSOR FOR
     SELECT r.series_id, (extract(epoch FROM r.bucket_start) / 3600)::integer, r.traces
     FROM usage.hourly_record r JOIN usage.series x USING (series_id)
     WHERE x.scope_id = ${scopeId} AND r.bucket_start >= $1 AND r.bucket_start < $2`,
    [new Date(month.start), new Date(month.end)],
  );
  for (let isMore = true; isMore; ) {
    const { rows } = await client.query<[id: number, bucketHour: number, traces: number]>({
      text: `FETCH ${BATCH} FROM hours`,
      rowMode: "array",
    });
    for (const [id, bucketHour, traces] of rows) stored.add({ id, bucketHour, traces });
    isMore = rows.length === BATCH;
  }
  await client.query("CLOSE hours");
  return loaded.flatMap(({ start, digest }) => {
    const hours = Array.from({ length: digest.length / DIGEST_BYTES }, (_, i) => i);
    const records = stored.of({ start, end: start + hours.length * HOUR_MS }) as Buffer;
    return hours.filter((i) => !isSameBucket(digest, records, i)).map((i) => start + i * HOUR_MS);
  });
}

function isSameBucket(one: Buffer, other: Buffer, bucket: number): boolean {
  const [from, to] = [bucket * DIGEST_BYTES, (bucket + 1) * DIGEST_BYTES];
  return one.compare(other, from, to, from, to) === 0;
}
