import { type RawBuilder, sql } from "kysely";
import type { PlannedScope } from "../../domain/planning/plan-tasks.ts";
import { HOUR_MS, STRIDE_MS, STRIDES, type Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { groupingsFor, METER, METERS, type Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { type Database, query, queryValues, type Row } from "../db/query.ts";
import { notingCharges } from "../months/charges.ts";
import { type JsonParts, partsAsJson, toIntervals } from "./scope-time.ts";

export interface Scope extends Row<"usage.scope", "scopeId" | "groupBy" | "stride"> {
  readonly meter: Meter;
  readonly workspaceId: string;
}

export interface ScopeState extends Scope {
  /** Sorted, disjoint and not touching, separately for final and provisional time. */
  readonly coverage: (Interval & { readonly final: boolean })[];
  readonly failures: Interval[];
}

export interface WantedScopes {
  readonly sourceId: number;
  readonly meter?: Meter | undefined;
  readonly groupings: readonly GroupBy[];
  readonly strides: readonly Stride[];
}

/** SQL: meter of scope `c`. Null for a meter that only a newer release knows. */
export const METER_OF_SCOPE = sql<Meter>`case ${sql.join(
  METERS.map((meter) => sql`when ${isOfMeter("c", meter)} then ${meter}`),
  sql` `,
)} end`;

export function isOfMeter(row: string, meter: Meter): RawBuilder<boolean> {
  const { kind, tier } = METER[meter];
  return sql<boolean>`${sql.ref(`${row}.kind`)} = ${kind} and ${sql.ref(`${row}.trace_tier`)} = ${tier}`;
}

/**
 * SQL condition of a scope whose creation makes charges due. Its days of another meter than traces become expected, so usage
 * that fills a volume tier before them is no longer final. Prices without tiers do not change.
 */
const FILLS_TIERS = sql<boolean>`(kind, trace_tier) <> ('traces', 'all') and exists (
  select from usage.price_tier join usage.price using (price_id) join usage.sku using (sku_id) where measure <> 'traces'
)`;

export async function ensureScopes(db: Database, wanted: WantedScopes): Promise<void> {
  const { meter = "traces" } = wanted;
  const { kind, tier } = METER[meter];
  const groupings = groupingsFor(meter, wanted.groupings);
  await notingCharges(sql`
    insert into usage.scope (source_id, kind, trace_tier, group_by, workspace_id, stride)
    select ${wanted.sourceId}, ${kind}, ${tier}, g, w.entity_id, s
    from usage.workspace w
    join usage.entity e on e.entity_id = w.entity_id and e.source_id = ${wanted.sourceId}
    cross join unnest(${groupings}::text[]) g
    cross join unnest(${wanted.strides}::text[]) s
    where not exists (
      select 1 from usage.scope x
      where x.source_id = ${wanted.sourceId} and x.group_by = g and x.workspace_id = w.entity_id and x.stride = s
        and ${isOfMeter("x", meter)}
    )
    order by 4, 5, 6
    on conflict do nothing
    returning case when group_by = 'workspace' and stride = 'day' and ${FILLS_TIERS} then source_id end as source_id
  `).execute(db);
}

export async function scopesOf(
  db: Database,
  wanted: {
    sourceId: number;
    meter?: Meter | undefined;
    groupBy: GroupBy;
    stride: Stride;
    workspaceIds: readonly string[];
  },
): Promise<number[]> {
  const { sourceId, meter = "traces", groupBy, stride, workspaceIds } = wanted;
  await ensureScopes(db, { sourceId, meter, groupings: [groupBy], strides: [stride] });
  return queryValues<Scope["scopeId"]>(db)`
    select s.scope_id
    from unnest(${workspaceIds}::text[]) with ordinality k (id, n)
    join usage.entity e on e.source_id = ${sourceId} and e.dimension = 'workspace' and e.external_id = k.id
    join usage.scope s on s.workspace_id = e.entity_id and s.group_by = ${groupBy} and s.stride = ${stride}
      and ${isOfMeter("s", meter)}
    order by k.n
  `;
}

export async function scopeStates(db: Database, wanted: WantedScopes): Promise<ScopeState[]> {
  const { sourceId, meter = "traces", groupings, strides } = wanted;
  type Parts = Readonly<Record<"final" | "provisional" | "failures", JsonParts | null>>;
  // Postgres merges adjoining intervals, because a large customer has a quarter of a million.
  const rows = await query<Omit<Scope, "meter"> & Parts>(db)`
    select s.scope_id as "scopeId", s.group_by as "groupBy", s.stride, e.external_id as "workspaceId",
           ${partsAsJson(sql`c.final`)} as final, ${partsAsJson(sql`c.provisional`)} as provisional, ${partsAsJson(sql`f.parts`)} as failures
    from usage.scope s
    join usage.entity e on e.entity_id = s.workspace_id
    cross join lateral (
      select range_agg(tstzrange(period_start, period_end)) filter (where final) as final,
             range_agg(tstzrange(period_start, period_end)) filter (where not final) as provisional
      from usage.coverage where scope_id = s.scope_id
    ) c
    cross join lateral (
      select range_agg(tstzrange(period_start, period_end)) as parts from usage.failure where scope_id = s.scope_id
    ) f
    where s.source_id = ${sourceId} and ${isOfMeter("s", meter)}
      and s.group_by = any (${groupings}::text[]) and s.stride = any (${strides}::text[])
    order by 1
  `;
  return rows.map(({ final, provisional, failures, ...scope }) => ({
    ...scope,
    meter,
    coverage: [
      ...toIntervals(final ?? []).map((part) => ({ ...part, final: true })),
      ...toIntervals(provisional ?? []).map((part) => ({ ...part, final: false })),
    ],
    failures: toIntervals(failures ?? []),
  }));
}

/**
 * Locks scopes in key order for the rest of the transaction, so that loads and failures of a scope run in turn. Returns the
 * scopes that exist, because some may have been forgotten.
 */
export function lockScopes(db: Database, scopeIds: readonly number[]): Promise<number[]> {
  return lockScopesWhere(db, sql`scope_id = any (${scopeIds}::integer[])`);
}

export async function lockScopesWhere(db: Database, condition: RawBuilder<unknown>): Promise<number[]> {
  return queryValues<Scope["scopeId"]>(db)`
    select scope_id from usage.scope where ${condition} order by scope_id for no key update
  `;
}

/** Makes other changes of a source, which lock its row too, wait until the transaction ends. */
export async function lockSource(db: Database, sourceId: number): Promise<void> {
  await sql`select from usage.source where source_id = ${sourceId} for no key update`.execute(db);
}

export function lengthOf(stride: RawBuilder<unknown>): RawBuilder<unknown> {
  const each = STRIDES.map((one) => sql`when ${sql.lit(one)} then ${sql.lit(STRIDE_MS[one] / HOUR_MS)}`);
  return sql`make_interval(hours => case ${stride} ${sql.join(each, sql` `)} end)`;
}

interface Missing extends WantedScopes {
  readonly workspaceIds: readonly string[];
  readonly within: Interval;
  /** `missing`: final time is not missing unless it failed since. `all`: everything is missing. */
  readonly reprocess: "missing" | "all";
  /** Failures to fetch again. The time of other failures counts as done. */
  readonly retry: "due" | "all";
}

interface Alike extends Row<"usage.scope", "groupBy" | "stride"> {
  readonly parts: JsonParts;
  /** Scope ids, each with the platform's id of its workspace. */
  readonly scopes: readonly (readonly [number, string])[];
}

/**
 * Returns the scopes with missing time, and the missing parts, by scope id. Most scopes of a large customer have the same
 * stored state: they share one subtraction and one list.
 */
export async function missingTime(db: Database, wanted: Missing): Promise<PlannedScope[]> {
  const { sourceId, meter = "traces", groupings, strides, workspaceIds, within, reprocess, retry } = wanted;
  const isHeld = retry === "all" ? sql<boolean>`false` : sql<boolean>`retry_at > now()`;
  // After a failure nobody knows whether the stored final count is still right.
  const done =
    reprocess === "all"
      ? sql`'{}'::tstzmultirange`
      : sql`coalesce(usage.time_of(days), hours, '{}') + coalesce(held, '{}')`;
  const rows = await query<Alike>(db)`
    with failed as (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as held from usage.failure where ${isHeld} group by 1
    ), alike as (
      select c.group_by, c.stride, d.final as days, h.final as hours, f.held, json_agg(json_build_array(c.scope_id, e.external_id)) as scopes
      from usage.scope c join usage.entity e on e.entity_id = c.workspace_id
      left join usage.day_state d using (scope_id) left join usage.hour_state h using (scope_id) left join failed f using (scope_id)
      where c.source_id = ${sourceId} and ${isOfMeter("c", meter)}
        and c.group_by = any (${groupings}::text[]) and c.stride = any (${strides}::text[])
        and e.external_id = any (${workspaceIds}::text[])
      group by 1, 2, 3, 4, 5
    ), missing as (
      select *, tstzmultirange(tstzrange(${new Date(within.start)}, ${new Date(within.end)})) - (${done}) as parts from alike
    )
    select group_by as "groupBy", stride, scopes, ${partsAsJson(sql`parts`)} as parts from missing where not isempty(parts)
  `;
  const lists = new Map<string, Interval[]>();
  return rows
    .flatMap(({ groupBy, stride, parts, scopes }) => {
      const missing = lists.get(parts.join()) ?? toIntervals(parts);
      lists.set(parts.join(), missing);
      return scopes.map(([scopeId, workspaceId]) => ({ scopeId, workspaceId, groupBy, stride, missing }));
    })
    .sort((a, b) => a.scopeId - b.scopeId);
}

export async function scopesBackingOff(db: Database): Promise<ReadonlySet<number>> {
  const scopeIds = await queryValues<Scope["scopeId"]>(db)`
    select distinct scope_id from usage.failure where retry_at > now()
  `;
  return new Set(scopeIds);
}

export async function dueFailures(
  db: Database,
  wanted: { sourceId: number; meter: Meter; strides: readonly Stride[] },
): Promise<PlannedScope[]> {
  const { sourceId, meter, strides } = wanted;
  const rows = await query<Omit<PlannedScope, "missing"> & { parts: JsonParts }>(db)`
    select c.scope_id as "scopeId", c.group_by as "groupBy", c.stride, e.external_id as "workspaceId", ${partsAsJson(sql`f.parts`)} as parts
    from (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as parts from usage.failure where retry_at <= now() group by 1
    ) f
    join usage.scope c using (scope_id)
    join usage.entity e on e.entity_id = c.workspace_id
    where c.source_id = ${sourceId} and ${isOfMeter("c", meter)}
      and c.stride = any (${strides}::text[])
    order by 1
  `;
  return rows.map(({ parts, ...scope }) => ({ ...scope, missing: toIntervals(parts) }));
}

export async function loadedMeters(db: Database, sourceId: number): Promise<Meter[]> {
  const rows = await query<{ meter: Meter | null }>(db)`
    select distinct ${METER_OF_SCOPE} as meter from usage.scope c
    where c.source_id = ${sourceId} and c.stride = 'day'
      and exists (select from usage.coverage v where v.scope_id = c.scope_id)
  `;
  return METERS.filter((meter) => rows.some((row) => row.meter === meter));
}
