import { sql } from "kysely";
import type { PlannedScope } from "../../domain/planning/plan-tasks.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METER } from "../../domain/usage/meter.ts";
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
 * The scopes that lack time, with the parts that they lack, in order of scope id. It equals what `scopeStates` says of them, and
 * Postgres subtracts: a large customer has a quarter of a million loaded intervals, and most of its scopes lack the same time.
 */
export async function missingTime(db: Database, wanted: Missing): Promise<PlannedScope[]> {
  const { sourceId, meter = "traces", groupings, strides, workspaceIds, within, reprocess, retry } = wanted;
  const asked = retry === "all" ? sql<boolean>`true` : sql<boolean>`retry_at <= now()`;
  const period = sql`tstzrange(period_start, period_end)`;
  const done =
    reprocess === "all"
      ? sql`select scope_id, '{}'::tstzmultirange as parts from scope`
      : sql`
        select scope_id, coalesce(c.parts, '{}') - coalesce(f.asked, '{}') + coalesce(f.held, '{}') as parts
        from (
          select scope_id, range_agg(${period}) as parts
          from usage.coverage join scope using (scope_id) where final group by scope_id
        ) c
        -- A failure over final time too: until it is asked about, nobody knows whether the stored count still holds.
        full join (
          select scope_id, range_agg(${period}) filter (where ${asked}) as asked,
                 range_agg(${period}) filter (where not ${asked}) as held
          from usage.failure join scope using (scope_id) group by scope_id
        ) f using (scope_id)`;
  const { rows } = await sql<Alike>`
    with scope as (
      select c.scope_id, c.group_by, c.stride, e.external_id
      from usage.every_scope c join usage.entity e on e.entity_id = c.workspace_id
      where c.source_id = ${sourceId} and c.kind = ${METER[meter].kind} and c.trace_tier = ${METER[meter].tier}
        and c.group_by = any (${[...groupings]}::text[]) and c.stride = any (${[...strides]}::text[])
        and e.external_id = any (${[...workspaceIds]}::text[])
    ), missing as (
      select scope.*, tstzmultirange(tstzrange(${new Date(within.start)}, ${new Date(within.end)}))
                        - coalesce(done.parts, '{}') as parts
      from scope left join (${done}) done using (scope_id)
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
