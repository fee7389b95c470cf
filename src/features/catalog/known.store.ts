import { isConfigured, isNeverRead } from "../../core/store/access/workspaces.ts";
import { iso } from "../../core/store/db/expressions.ts";
import { type Database, query, type Row } from "../../core/store/db/query.ts";

/**
 * The first state that applies. `never_shown`: no listing and no response ever had the workspace. `never_read`: no response had
 * it.
 */
export type WorkspaceState =
  | "never_shown"
  | "deleted"
  | "not_configured"
  | "left_listing"
  | "readable"
  | "never_read"
  | "not_proven";

/** Instants are ISO texts in UTC. */
export interface KnownWorkspace extends Row<"usage.source", "sourceId"> {
  readonly source: string;
  readonly workspaceId: string;
  readonly name: string | null;
  readonly state: WorkspaceState;
  /** Traces, summed over days. Null: nothing is loaded. */
  readonly traces: number | null;
  readonly lastProvenAt: string | null;
}

export async function listWorkspaces(db: Database): Promise<KnownWorkspace[]> {
  return query<KnownWorkspace>(db)`
    select s.slug as source, s.source_id as "sourceId", e.external_id as "workspaceId", d.workspace_name as name,
           case
             when w.readable_at is null and e.first_seen_at is null
               and not exists (select from usage.entity_name n where n.entity_id = e.entity_id)
               and not exists (
                 select from usage.trace_scope c join usage.coverage v using (scope_id) where c.workspace_id = e.entity_id
               ) then 'never_shown'
             when w.is_deleted then 'deleted'
             when not ${isConfigured} then 'not_configured'
             when w.unlisted_since is not null then 'left_listing'
             when w.readable_at is not null then 'readable'
             when ${isNeverRead} then 'never_read'
             else 'not_proven'
           end as state,
           (select sum(t.traces)::bigint
            from usage.trace_scope c join usage.series x using (scope_id) join usage.monthly_total t using (series_id)
            where c.workspace_id = e.entity_id and c.group_by = 'workspace' and c.stride = 'day') as traces,
           ${iso("w.readable_at")} as "lastProvenAt"
    from usage.workspace w
    join usage.entity e using (entity_id)
    join usage.source s using (source_id)
    left join reporting.dim_workspace d on d.source_id = s.slug and d.workspace_id = e.external_id
    order by s.slug, e.external_id
  `;
}

export interface KnownSourceRow extends Row<"usage.source", "sourceId" | "baseUrl" | "dataStart"> {
  readonly source: string;
  readonly organization: string | null;
  readonly workspaces: number;
  readonly closedMonths: number;
  readonly lastRequestAt: string | null;
}

export async function listKnownSources(db: Database): Promise<KnownSourceRow[]> {
  return query<KnownSourceRow>(db)`
    select s.slug as source, s.source_id as "sourceId", s.base_url as "baseUrl",
           coalesce(s.organization_name, s.organization_id) as organization, s.data_start::text as "dataStart",
           (select count(*)::integer from usage.workspace w join usage.entity e using (entity_id)
            where e.source_id = s.source_id) as workspaces,
           (select count(month_start)::integer from usage.close m where m.source_id = s.source_id) as "closedMonths",
           ${iso("(select max(f.fetched_at) from usage.fetch f where f.source_id = s.source_id)")}
             as "lastRequestAt"
    from usage.source s order by s.slug
  `;
}
