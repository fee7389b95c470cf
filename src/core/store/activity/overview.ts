import { sql } from "kysely";
import type { RestatementCount } from "../../domain/proof/restatement.ts";
import { isConfigured } from "../access/workspaces.ts";
import { iso } from "../db/expressions.ts";
import { type Database, query, type Row } from "../db/query.ts";
import { restatementCounts } from "../proof/restatement-counts.ts";

/** Instants are ISO texts in UTC. */

export interface SourceStatus extends Row<"usage.source", "baseUrl" | "organizationId" | "dataStart"> {
  readonly source: string;
  readonly workspaces: number;
  readonly refused: string | null;
  readonly failures: readonly FailureGroup[];
  readonly openDifferences: number;
  readonly platformDisagrees: number;
  /** Open and contradicting differences of other meters, by kind and tier of the platform. */
  readonly otherDifferences: readonly {
    readonly kind: string;
    readonly tier: string;
    readonly open: number;
    readonly platformDisagrees: number;
  }[];
  readonly restatements: readonly RestatementCount[];
}

interface FailureGroup extends Row<"usage.failure", "state" | "code"> {
  readonly parts: number;
  readonly byHour: number;
  readonly due: number;
  /** Failures that no sync fetches: the server does not support their stride, or their workspace is no longer configured. */
  readonly notRequested: number;
  readonly nextRetry: string | null;
}

export async function sourceStatuses(db: Database): Promise<SourceStatus[]> {
  return query<SourceStatus>(db)`
    select s.slug as source, s.base_url as "baseUrl", s.organization_id as "organizationId",
           s.data_start::text as "dataStart", s.refused_message as refused,
           (select count(*)::integer from usage.workspace w join usage.entity e using (entity_id)
            where e.source_id = s.source_id and ${isConfigured}) as workspaces,
           coalesce((
             select json_agg(x) from (
               select f.state, f.code, count(*)::integer as parts,
                      count(*) filter (where c.stride = 'hour')::integer as "byHour",
                      count(*) filter (where a.is_requested and f.retry_at <= now())::integer as due,
                      count(*) filter (where not a.is_requested)::integer as "notRequested",
                      ${iso("case when bool_or(a.is_requested) then greatest(now(), min(f.retry_at) filter (where a.is_requested)) end")}
                        as "nextRetry"
               from usage.failure f join usage.scope c using (scope_id)
               join usage.entity e on e.entity_id = c.workspace_id
               left join usage.source_fact n on n.source_id = c.source_id and n.fact = 'no_' || c.stride
               cross join lateral (select n.fact is null and ${isConfigured} as is_requested) a
               where c.source_id = s.source_id
               group by f.state, f.code order by 1, 2
             ) x
           ), '[]') as failures,
           d.open as "openDifferences", d.disagrees as "platformDisagrees", d.others as "otherDifferences",
           ${restatementCounts(sql`c.source_id = s.source_id`)} as restatements
    from usage.source s
    cross join lateral (
      select coalesce(sum(m.open), 0)::integer as open, coalesce(sum(m.disagrees), 0)::integer as disagrees,
             coalesce(json_agg(json_build_object('kind', m.kind, 'tier', m.trace_tier, 'open', m.open, 'platformDisagrees', m.disagrees)
               order by m.kind desc, m.trace_tier) filter (where m.kind <> 'traces' or m.trace_tier <> 'all'), '[]') as others
      from (
        select c.kind, c.trace_tier, count(*) filter (where f.state = 'open') as open,
               count(*) filter (where f.state = 'platform_disagrees') as disagrees
        from usage.difference f
        join usage.scope c using (scope_id)
        where c.source_id = s.source_id and f.state in ('open', 'platform_disagrees')
        group by 1, 2
      ) m
    ) d
    order by s.slug
  `;
}

export interface Freshness {
  readonly groupBy: string;
  readonly stride: string;
  readonly loadedUntil: string;
  readonly finalUntil: string | null;
}

export async function freshnessOf(db: Database, source: string): Promise<Freshness[]> {
  // The current day is loaded up to the time of its request, not up to its end.
  return query<Freshness>(db)`
    select group_by as "groupBy", stride,
           ${iso("least(loaded_until, fetched_at)")} as "loadedUntil",
           ${iso("final_until")} as "finalUntil"
    from reporting.data_freshness
    where source_id = ${source}
    order by usage.dimension_position(group_by), array_position(array['day', 'hour'], stride)
  `;
}

export interface ListedSource extends Row<"usage.source", "sourceId" | "dataStart"> {
  readonly source: string;
}

export async function listSources(db: Database): Promise<ListedSource[]> {
  return db
    .selectFrom("usage.source")
    .select(["source_id as sourceId", "slug as source", "data_start as dataStart"])
    .orderBy("slug")
    .execute();
}

export interface SourceWithWorkspaces extends ListedSource {
  readonly workspaceIds: readonly string[];
}

export async function sourcesWithWorkspaces(db: Database): Promise<SourceWithWorkspaces[]> {
  return query<SourceWithWorkspaces>(db)`
    select s.source_id as "sourceId", s.slug as source, s.data_start::text as "dataStart",
           array(select e.external_id from usage.workspace w join usage.entity e using (entity_id)
                 where e.source_id = s.source_id order by 1) as "workspaceIds"
    from usage.source s order by s.slug
  `;
}

/** Instants are ISO texts in UTC. */
export interface SourceProgress {
  readonly source: string;
  /** Fetch tasks, except those of paused backfills. `oldestSeconds`: age of the oldest. */
  readonly waiting: number;
  readonly queued: number;
  readonly oldestSeconds: number | null;
  /** Last export that equalled a part of the stored time, and last check of totals without a failed request. */
  readonly lastReconciledAt: string | null;
  readonly lastTotalsAt: string | null;
}

export async function sourceProgress(db: Database): Promise<SourceProgress[]> {
  return query<SourceProgress>(db)`
    select s.slug as source, w.*,
           (select ${iso("max(r.reconciled_at)")}
            from usage.reconciled r join usage.trace_scope c using (scope_id) where c.source_id = s.source_id) as "lastReconciledAt",
           (select ${iso("max(k.checked_at)")}
            from usage.control_check k where k.source_id = s.source_id and k.failures = 0) as "lastTotalsAt"
    from usage.source s
    cross join lateral (
      select count(*) filter (where w.state = 'waiting')::integer as waiting,
             count(*) filter (where w.state = 'queued')::integer as queued,
             extract(epoch from now() - min(w.created_at))::integer as "oldestSeconds"
      from usage.fetch_task w left join usage.backfill b using (backfill_id)
      where w.source_id = s.source_id and w.state in ('waiting', 'queued') and b.state is distinct from 'paused'
    ) w
    order by s.slug
  `;
}
