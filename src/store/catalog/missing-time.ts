import { sql } from "kysely";
import type { PlannedScope } from "../../domain/planning/plan-tasks.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";
import { type JsonParts, partsAsJson, toIntervals } from "./scope-time.ts";
import type { WantedScopes } from "./scopes.ts";

interface Missing extends WantedScopes {
  /** Platform ids. */
  readonly workspaceIds: readonly string[];
  /** Only what is missing in it. */
  readonly within: Interval;
  /** `missing`: final time is not, unless it failed since. `all`: everything is missing, whatever is loaded or failed. */
  readonly reprocess: "missing" | "all";
  /** Failures that are missing again: those that are due, or all. The others count as done. */
  readonly retry: "due" | "all";
}

/** Scopes that lack the same time, as Postgres returns them. */
interface Alike {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly parts: JsonParts;
  /** Scope ids with the platform's id of their workspace. */
  readonly scopes: readonly (readonly [number, string])[];
}

/**
 * The scopes that lack time, with the parts that they lack, in order of scope id. Postgres subtracts: most scopes of a large customer
 * lack the same time.
 */
export async function missingTime(db: Database, wanted: Missing): Promise<PlannedScope[]> {
  const { sourceId, meter = "traces", groupings, strides, workspaceIds, within, reprocess, retry } = wanted;
  const isHeld = retry === "all" ? sql<boolean>`false` : sql<boolean>`retry_at > now()`;
  // No failure lies over final time: until it is asked about, nobody knows whether the stored count still holds.
  const done =
    reprocess === "all"
      ? sql`'{}'::tstzmultirange`
      : sql`coalesce(usage.time_of(d.final), h.final, '{}') + coalesce((
          select range_agg(tstzrange(period_start, period_end)) from usage.failure f where f.scope_id = scope.scope_id and ${isHeld}
        ), '{}')`;
  const { rows } = await sql<Alike>`
    with scope as (
      select c.scope_id, c.group_by, c.stride, e.external_id
      from usage.scope c join usage.entity e on e.entity_id = c.workspace_id
      where c.source_id = ${sourceId} and c.kind = ${METER[meter].kind} and c.trace_tier = ${METER[meter].tier}
        and c.group_by = any (${[...groupings]}::text[]) and c.stride = any (${[...strides]}::text[])
        and e.external_id = any (${[...workspaceIds]}::text[])
    ), missing as (
      select scope.*, tstzmultirange(tstzrange(${new Date(within.start)}, ${new Date(within.end)})) - (${done}) as parts
      from scope left join usage.day_state d using (scope_id) left join usage.hour_state h using (scope_id)
    ), alike as (
      select group_by, stride, parts, json_agg(json_build_array(scope_id, external_id)) as scopes
      from missing where not isempty(parts) group by 1, 2, 3
    )
    select group_by as "groupBy", stride, scopes, ${partsAsJson(sql`parts`)} as parts from alike
  `.execute(db);
  return rows
    .flatMap(({ groupBy, stride, parts, scopes }) => {
      const missing = toIntervals(parts);
      return scopes.map(([scopeId, workspaceId]) => ({ scopeId, workspaceId, groupBy, stride, missing }));
    })
    .sort((a, b) => a.scopeId - b.scopeId);
}

/** The scopes with failures that are due, with the parts that failed. */
export async function dueFailures(
  db: Database,
  wanted: { sourceId: number; meter: Meter; strides: readonly Stride[] },
): Promise<PlannedScope[]> {
  const { sourceId, meter, strides } = wanted;
  const { rows } = await sql<Omit<PlannedScope, "missing"> & { parts: JsonParts }>`
    select c.scope_id as "scopeId", c.group_by as "groupBy", c.stride, e.external_id as "workspaceId", ${partsAsJson(sql`f.parts`)} as parts
    from (
      select scope_id, range_agg(tstzrange(period_start, period_end)) as parts from usage.failure where retry_at <= now() group by 1
    ) f
    join usage.scope c using (scope_id)
    join usage.entity e on e.entity_id = c.workspace_id
    where c.source_id = ${sourceId} and c.kind = ${METER[meter].kind} and c.trace_tier = ${METER[meter].tier}
      and c.stride = any (${[...strides]}::text[])
    order by 1
  `.execute(db);
  return rows.map(({ parts, ...scope }) => ({ ...scope, missing: toIntervals(parts) }));
}
