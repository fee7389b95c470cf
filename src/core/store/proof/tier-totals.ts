import type { FetchToken } from "../../domain/coverage/finality.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { lockScopes } from "../catalog/scopes.ts";
import type { Store } from "../db/database.ts";
import { query } from "../db/query.ts";
import type { ControlTotal, TotalDifference } from "./control-totals.ts";

export interface TierPair {
  readonly workspaceId: string;
  readonly scopeId: number;
  readonly allScopeId: number;
}

interface Requested {
  readonly pairs: readonly TierPair[];
  readonly parts: readonly Interval[];
  /** Leaves out scopes that were loaded after this fetch. */
  readonly fetchToken?: FetchToken;
}

interface TierSum {
  readonly scopeId: number;
  readonly workspaceId: string;
  readonly part: number;
  readonly longlived: number;
  readonly all: number;
}

/** Returns the sums of all traces and of long-lived traces where both are final. Locks their scopes, so that loads wait. */
async function sumTiers(store: Store, { pairs, parts, fetchToken }: Requested): Promise<TierSum[]> {
  return store.transaction(async ({ db }) => {
    await lockScopes(
      db,
      pairs.flatMap(({ scopeId, allScopeId }) => [scopeId, allScopeId]),
    );
    return query<TierSum>(db)`
      with pair as (
        select * from unnest(
          ${pairs.map((one) => one.scopeId)}::integer[], ${pairs.map((one) => one.allScopeId)}::integer[],
          ${pairs.map((one) => one.workspaceId)}::text[]
        ) p (scope_id, all_scope_id, workspace)
      ), part as (
        select n::integer - 1 as part, p."from", p."to" from unnest(
          ${parts.map((one) => new Date(one.start))}::timestamptz[], ${parts.map((one) => new Date(one.end))}::timestamptz[]
        ) with ordinality p ("from", "to", n)
      ), side as (
        select scope_id, scope_id as pair_id, true as is_longlived from pair
        union all
        select all_scope_id, scope_id, false from pair
      ), final as (
        select s.scope_id, p.part
        from side s
        join usage.coverage v using (scope_id)
        join part p on v.period_start < p."to" and v.period_end > p."from"
        where v.final and v.fetch_number < ${fetchToken?.fetchNumber ?? Number.MAX_SAFE_INTEGER}
        group by s.scope_id, p.part, p."from", p."to"
        having sum(least(v.period_end, p."to") - greatest(v.period_start, p."from")) = p."to" - p."from"
      ), total as (
        select s.pair_id, s.is_longlived, p.part, sum(r.traces) as traces
        from side s
        join usage.series x using (scope_id)
        join usage.dated_record r using (series_id)
        join part p on r.bucket_start >= (p."from" at time zone 'UTC')::date and r.bucket_start < (p."to" at time zone 'UTC')::date
        group by 1, 2, 3
      )
      select pair.scope_id as "scopeId", pair.workspace as "workspaceId", p.part, coalesce(l.traces, 0)::bigint as longlived,
             coalesce(a.traces, 0)::bigint as "all"
      from pair
      cross join part p
      join final f on f.scope_id = pair.scope_id and f.part = p.part
      join final g on g.scope_id = pair.all_scope_id and g.part = p.part
      left join total l on l.pair_id = pair.scope_id and l.is_longlived and l.part = p.part
      left join total a on a.pair_id = pair.scope_id and not a.is_longlived and a.part = p.part
      order by pair.workspace, p.part
    `;
  });
}

/**
 * Compares totals of short-lived traces with all stored traces minus the long-lived ones. `compared` has one entry per pair and
 * part. `storedTraces` of a difference may be below zero.
 */
export async function compareTiers(
  store: Store,
  { totals, ...requested }: Requested & { readonly totals: readonly ControlTotal[] },
): Promise<{
  compared: { scopeId: number; period: Interval }[];
  differences: TotalDifference[];
}> {
  const sums = await sumTiers(store, requested);
  const controls = new Map<string, number>();
  for (const { scopeId, part, traces } of totals) {
    const key = `${scopeId} ${part}`;
    controls.set(key, (controls.get(key) ?? 0) + traces);
  }
  const compared = sums.map((one) => ({ ...one, period: requested.parts[one.part] as Interval }));
  const differences = compared.flatMap(({ scopeId, workspaceId, part, period, longlived, all }) => {
    const storedTraces = all - longlived;
    const controlTraces = controls.get(`${scopeId} ${part}`) ?? 0;
    const about = { ...period, scopeId, dimensionId: workspaceId, measure: "traces" as const };
    return storedTraces === controlTraces ? [] : [{ ...about, storedTraces, controlTraces }];
  });
  return { compared: compared.map(({ scopeId, period }) => ({ scopeId, period })), differences };
}

/**
 * Returns final days with more long-lived traces than all traces. Each run of days is one difference: `storedTraces` counts
 * long-lived traces, `controlTraces` all.
 */
export async function exceedingTiers(
  store: Store,
  { pairs, range }: { readonly pairs: readonly TierPair[]; readonly range: Interval },
): Promise<TotalDifference[]> {
  const days = Array.from({ length: (range.end - range.start) / DAY_MS }, (_, n) => ({
    start: range.start + n * DAY_MS,
    end: range.start + (n + 1) * DAY_MS,
  }));
  if (pairs.length === 0 || days.length === 0) return [];
  const runs: TotalDifference[] = [];
  for (const { scopeId, workspaceId, part, longlived, all } of await sumTiers(store, {
    pairs,
    parts: days,
  })) {
    if (longlived <= all) continue;
    const { start, end } = days[part] as Interval;
    const last = runs.at(-1);
    if (last?.scopeId === scopeId && last.end === start) {
      const storedTraces = (last.storedTraces ?? 0) + longlived;
      runs[runs.length - 1] = { ...last, end, storedTraces, controlTraces: (last.controlTraces ?? 0) + all };
      continue;
    }
    const amounts = { measure: "traces" as const, storedTraces: longlived, controlTraces: all };
    runs.push({ start, end, scopeId, dimensionId: workspaceId, ...amounts });
  }
  return runs;
}
