import { sql } from "kysely";
import type { FailedInterval } from "../../domain/coverage/range-status.ts";
import type { Stride } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";
import { type JsonParts, partsAsJson, toIntervals } from "./scope-time.ts";

interface Scope {
  readonly scopeId: number;
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  /** The platform's id. */
  readonly workspaceId: string;
}

/** A scope with its loaded time, and with the intervals that failed: those that are due may be retried. */
export interface ScopeState extends Scope {
  /** Sorted, disjoint and not touching, of final and of provisional time each. */
  readonly coverage: (Interval & { readonly final: boolean })[];
  readonly failures: (FailedInterval & { readonly due: boolean })[];
}

/** Scopes of one meter, by default of traces of all tiers. */
export interface WantedScopes {
  readonly sourceId: number;
  readonly meter?: Meter | undefined;
  readonly groupings: readonly GroupBy[];
  readonly strides: readonly Stride[];
}

/** Creates the missing scopes of these strides and dimensions for every known workspace of a source. */
export async function ensureScopes(db: Database, wanted: WantedScopes): Promise<void> {
  const { kind, tier } = METER[wanted.meter ?? "traces"];
  await sql`
    insert into usage.every_scope (source_id, kind, trace_tier, group_by, workspace_id, stride)
    select ${wanted.sourceId}, ${kind}, ${tier}, g, w.entity_id, s
    from usage.workspace w
    join usage.entity e on e.entity_id = w.entity_id and e.source_id = ${wanted.sourceId}
    cross join unnest(${[...wanted.groupings]}::text[]) g
    cross join unnest(${[...wanted.strides]}::text[]) s
    where not exists (
      select 1 from usage.every_scope x
      where x.source_id = ${wanted.sourceId} and x.group_by = g and x.workspace_id = w.entity_id and x.stride = s
        and x.kind = ${kind} and x.trace_tier = ${tier}
    )
    order by 4, 5, 6
    on conflict do nothing
  `.execute(db);
}

/** The scopes of workspaces in one dimension and stride, in the order of the workspace ids. Creates missing ones. */
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
  const { rows } = await sql<{ scope_id: number }>`
    select s.scope_id
    from unnest(${[...workspaceIds]}::text[]) with ordinality k (id, n)
    join usage.entity e on e.source_id = ${sourceId} and e.dimension = 'workspace' and e.external_id = k.id
    join usage.every_scope s on s.workspace_id = e.entity_id and s.group_by = ${groupBy} and s.stride = ${stride}
      and s.kind = ${METER[meter].kind} and s.trace_tier = ${METER[meter].tier}
    order by k.n
  `.execute(db);
  return rows.map((row) => row.scope_id);
}

/**
 * Scopes of a source and meter with their coverage and open failures, in order of scope id. `failing`: only those with a
 * failure. `within`: only coverage and failures that overlap it.
 */
export async function scopeStates(
  db: Database,
  wanted: WantedScopes & { failing?: boolean; within?: Interval | undefined },
): Promise<ScopeState[]> {
  const { within, meter = "traces" } = wanted;
  const overlaps =
    within === undefined
      ? sql<boolean>`true`
      : sql<boolean>`period_start < ${new Date(within.end)} and period_end > ${new Date(within.start)}`;
  const scopes = await db
    .selectFrom("every_scope as scope")
    .innerJoin("entity", "entity.entity_id", "scope.workspace_id")
    .select(["scope_id", "group_by", "stride", "external_id"])
    .where("scope.source_id", "=", wanted.sourceId)
    .where("kind", "=", METER[meter].kind)
    .where("trace_tier", "=", METER[meter].tier)
    .where("group_by", "in", [...wanted.groupings])
    .where("stride", "in", [...wanted.strides])
    .$if(wanted.failing === true, (q) =>
      q.where("scope_id", "in", (failing) => failing.selectFrom("failure").select("scope_id")),
    )
    .orderBy("scope_id")
    .execute();
  const states = new Map(
    scopes.map((row): [number, ScopeState] => [
      row.scope_id,
      {
        scopeId: row.scope_id,
        meter,
        groupBy: row.group_by as GroupBy,
        stride: row.stride as Stride,
        workspaceId: row.external_id,
        coverage: [],
        failures: [],
      },
    ]),
  );
  const isWanted = sql<boolean>`scope_id = any (${[...states.keys()]}::integer[])`;
  // Postgres joins what adjoins: of a large customer it holds a quarter of a million intervals.
  const { rows: loaded } = await sql<{ scopeId: number; final: boolean; parts: JsonParts }>`
    select scope_id as "scopeId", final, ${partsAsJson(sql`parts`)} as parts
    from (
      select scope_id, final, range_agg(tstzrange(period_start, period_end)) as parts
      from usage.coverage where ${isWanted} and ${overlaps} group by 1, 2
    ) c
  `.execute(db);
  for (const { scopeId, final, parts } of loaded) {
    for (const part of toIntervals(parts)) states.get(scopeId)?.coverage.push({ ...part, final });
  }
  const failures = await db
    .selectFrom("failure")
    .select(["scope_id", "period_start", "period_end", "state", "code", "retry_at"])
    .select(sql<boolean>`retry_at <= now()`.as("due"))
    .where(isWanted)
    .where(overlaps)
    .orderBy("period_start")
    .execute();
  for (const { scope_id, period_start, period_end, retry_at, state, code, due } of failures) {
    states.get(scope_id)?.failures.push({
      ...{ start: period_start.getTime(), end: period_end.getTime(), code, due },
      state: state as FailedInterval["state"],
      retryAt: retry_at.getTime(),
    });
  }
  return [...states.values()];
}

/**
 * Locks scopes in key order for the rest of the transaction, so that loads and failures of a scope run in turn. Returns those
 * that exist: the others were forgotten with their workspace.
 */
export async function lockScopes(db: Database, scopeIds: readonly number[]): Promise<number[]> {
  const { rows } = await sql<{ scope_id: number }>`
    select scope_id from usage.every_scope where scope_id = any (${[...scopeIds]}::integer[])
    order by scope_id for no key update
  `.execute(db);
  return rows.map((row) => row.scope_id);
}
