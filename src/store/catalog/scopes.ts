import { sql } from "kysely";
import type { LoadedInterval } from "../../domain/planning/coverage.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";

interface Scope {
  readonly scopeId: number;
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  /** The platform's id. */
  readonly workspaceId: string;
}

/** What is known of a scope's time: loaded fragments, and parts that failed with when to ask again. */
export interface ScopeState extends Scope {
  readonly coverage: LoadedInterval[];
  readonly failures: (Interval & { readonly due: boolean })[];
}

/** Makes sure that the scopes of these strides and groupings exist for every known workspace of a source. */
export async function ensureScopes(
  db: Database,
  wanted: { sourceId: number; groupings: readonly GroupBy[]; strides: readonly Stride[] },
): Promise<void> {
  await sql`
    insert into usage.scope (source_id, group_by, workspace_id, stride)
    select ${wanted.sourceId}, g, w.entity_id, s
    from usage.workspace w
    join usage.entity e on e.entity_id = w.entity_id and e.source_id = ${wanted.sourceId}
    cross join unnest(${[...wanted.groupings]}::text[]) g
    cross join unnest(${[...wanted.strides]}::text[]) s
    where not exists (
      select 1 from usage.scope x
      where x.source_id = ${wanted.sourceId} and x.group_by = g and x.workspace_id = w.entity_id and x.stride = s
        and x.kind = 'traces' and x.trace_tier = 'all'
    )
    order by 2, 3, 4
    on conflict do nothing
  `.execute(db);
}

/** The scopes of some workspaces in one grouping and stride, in the order of the workspace ids; made where missing. */
export async function scopesOf(
  db: Database,
  wanted: { sourceId: number; groupBy: GroupBy; stride: Stride; workspaceIds: readonly string[] },
): Promise<number[]> {
  const { sourceId, groupBy, stride, workspaceIds } = wanted;
  await ensureScopes(db, { sourceId, groupings: [groupBy], strides: [stride] });
  const { rows } = await sql<{ scope_id: number }>`
    select s.scope_id
    from unnest(${[...workspaceIds]}::text[]) with ordinality k (id, n)
    join usage.entity e on e.source_id = ${sourceId} and e.dimension = 'workspace' and e.external_id = k.id
    join usage.scope s on s.workspace_id = e.entity_id and s.group_by = ${groupBy} and s.stride = ${stride}
    order by k.n
  `.execute(db);
  return rows.map((row) => row.scope_id);
}

/** Scopes of a source with their coverage and open failures, in order of scope id. */
export async function scopeStates(
  db: Database,
  wanted: { sourceId: number; groupings: readonly GroupBy[]; strides: readonly Stride[] },
): Promise<ScopeState[]> {
  const scopes = await db
    .selectFrom("scope")
    .innerJoin("entity", "entity.entity_id", "scope.workspace_id")
    .select(["scope_id", "group_by", "stride", "external_id"])
    .where("scope.source_id", "=", wanted.sourceId)
    .where("group_by", "in", [...wanted.groupings])
    .where("stride", "in", [...wanted.strides])
    .orderBy("scope_id")
    .execute();
  const states = new Map<number, ScopeState>();
  for (const row of scopes) {
    states.set(row.scope_id, {
      scopeId: row.scope_id,
      groupBy: row.group_by as GroupBy,
      stride: row.stride as Stride,
      workspaceId: row.external_id,
      coverage: [],
      failures: [],
    });
  }
  for (const fragment of await loadedIntervalsOfScopes(db, [...states.keys()])) {
    states.get(fragment.scopeId)?.coverage.push(fragment);
  }
  const failures = await db
    .selectFrom("failure")
    .select(["scope_id", "period_start", "period_end", sql<boolean>`retry_at <= now()`.as("due")])
    .where("scope_id", "in", (q) =>
      q.selectFrom("scope").select("scope_id").where("source_id", "=", wanted.sourceId),
    )
    .orderBy("period_start")
    .execute();
  for (const row of failures) {
    states
      .get(row.scope_id)
      ?.failures.push({ start: row.period_start.getTime(), end: row.period_end.getTime(), due: row.due });
  }
  return [...states.values()];
}

/** Coverage of scopes, in order of scope and time. */
async function loadedIntervalsOfScopes(
  db: Database,
  scopeIds: readonly number[],
): Promise<(LoadedInterval & { scopeId: number })[]> {
  const rows = await db
    .selectFrom("coverage")
    .selectAll()
    .where(sql<boolean>`scope_id = any (${[...scopeIds]}::integer[])`)
    .orderBy("scope_id")
    .orderBy("period_start")
    .execute();
  return rows.map((row) => ({
    scopeId: row.scope_id,
    start: row.period_start.getTime(),
    end: row.period_end.getTime(),
    settled: row.settled,
    fetchNumber: row.fetch_number,
    fetchedAt: row.fetched_at.getTime(),
  }));
}

/** Locks scopes in key order for the rest of the transaction: loads and failures of a scope follow one another. */
export async function lockScopes(db: Database, scopeIds: readonly number[]): Promise<void> {
  await sql`
    select scope_id from usage.scope where scope_id = any (${[...scopeIds]}::integer[])
    order by scope_id for no key update
  `.execute(db);
}
