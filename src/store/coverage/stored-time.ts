import { type RawBuilder, sql } from "kysely";
import type { StoredTime } from "../../domain/coverage/cell-time.ts";
import { HOUR_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { Database } from "../db/database.ts";

const NOTHING: StoredTime = {
  ...{ final: [], provisional: [], failed: [], unverified: [] },
  ...{ compared: [], totalled: [], differing: [] },
};

/** Everything stored about the time of these scopes, by scope. It reads intervals, so its cost does not grow with days. */
export async function storedTime(
  db: Database,
  scopeIds: readonly number[],
): Promise<(scopeId: number | null) => StoredTime> {
  const scopes = sql`scope_id = any (${[...scopeIds]}::integer[])`;
  return intervalsOf(
    db,
    sql`
      select case when final then 'final' else 'provisional' end as what, scope_id, period_start, period_end
      from usage.coverage where ${scopes}
      union all
      select state, scope_id, period_start, period_end from usage.failure where ${scopes}
      union all
      select 'compared', scope_id, period_start, period_end from usage.reconciled where ${scopes}
      union all
      select 'totalled', scope_id, period_start, period_end from usage.matched_total where ${scopes}
      union all
      -- As in usage.day_difference: what a dimension does not attribute is no difference.
      select 'differing', scope_id, bucket_start, bucket_start + case stride when 'hour' then interval '1 hour' else interval '24 hours' end
      from usage.reconciliation_difference join usage.scope using (scope_id)
      where ${scopes} and state in ('open', 'platform_disagrees')
      union all
      select 'differing', scope_id, period_start, period_end
      from usage.control_difference where ${scopes} and state = 'platform_disagrees' and kind <> 'provider_total'
    `,
  );
}

/** What is loaded of scopes within some time. */
export async function loadedWithin(
  db: Database,
  wanted: readonly (Interval & { readonly scopeId: number })[],
): Promise<(scopeId: number | null) => StoredTime> {
  if (wanted.length === 0) return () => NOTHING;
  return intervalsOf(
    db,
    sql`
      select distinct case when c.final then 'final' else 'provisional' end as what, c.scope_id, c.period_start, c.period_end
      from unnest(
        ${wanted.map(({ scopeId }) => scopeId)}::integer[],
        ${wanted.map(({ start }) => new Date(start).toISOString())}::timestamptz[],
        ${wanted.map(({ end }) => new Date(end).toISOString())}::timestamptz[]
      ) w (scope_id, start, "end")
      join usage.coverage c on c.scope_id = w.scope_id and c.period_start < w."end" and c.period_end > w.start
    `,
  );
}

interface Row {
  readonly what: keyof StoredTime;
  readonly scopeId: number;
  /** Hours since 1970, with commas. The driver takes ten times as long for an array. */
  readonly starts: string;
  readonly ends: string;
}

async function intervalsOf(
  db: Database,
  intervals: RawBuilder<unknown>,
): Promise<(scopeId: number | null) => StoredTime> {
  const { rows } = await sql<Row>`
    select what, scope_id as "scopeId", array_to_string(array_agg((date_part('epoch', period_start) / 3600)::integer), ',') as starts,
           array_to_string(array_agg((date_part('epoch', period_end) / 3600)::integer), ',') as ends
    from (${intervals}) i
    group by what, scope_id
  `.execute(db);
  const byScope = new Map<number, StoredTime>();
  for (const { what, scopeId, starts, ends } of rows) {
    const until = ends.split(",");
    const parts = starts
      .split(",")
      .map((start, n) => ({ start: Number(start) * HOUR_MS, end: Number(until[n]) * HOUR_MS }));
    byScope.set(scopeId, { ...(byScope.get(scopeId) ?? NOTHING), [what]: parts });
  }
  return (scopeId) => (scopeId === null ? undefined : byScope.get(scopeId)) ?? NOTHING;
}
