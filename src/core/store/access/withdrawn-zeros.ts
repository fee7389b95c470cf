import { type Database, query } from "../db/query.ts";
import { isConfigured, isNeverRead } from "./workspaces.ts";

export interface LostWorkspace {
  readonly source: string;
  readonly workspaceId: string;
  /** True if a response that should have named the workspace did not. */
  readonly isUnread: boolean;
  readonly isUnlisted: boolean;
  readonly zeros: number;
  /** ISO days of the first and the last such zero, or null. */
  readonly firstDay: string | null;
  readonly lastDay: string | null;
  readonly closedMonths: readonly string[];
}

export async function lostWorkspaces(db: Database): Promise<LostWorkspace[]> {
  return query<LostWorkspace>(db)`
    select o.slug as source, l.external_id as "workspaceId", l.is_unread as "isUnread", l.is_unlisted as "isUnlisted", l.zeros, lower(l.days)::text as "firstDay", (upper(l.days) - 1)::text as "lastDay",
           array(
             select to_char(m.month_start, 'YYYY-MM') from usage.close m
             where m.source_id = l.source_id and l.days && daterange(m.month_start, (m.month_start + interval '1 month')::date)
             order by 1
           ) as "closedMonths"
    from usage.lost_workspace l join usage.source o using (source_id)
    order by 1, 2
  `;
}

export interface NamedWorkspace {
  readonly workspaceId: string;
  readonly name: string | null;
}

export async function neverRead(db: Database): Promise<(NamedWorkspace & { readonly source: string })[]> {
  return query<NamedWorkspace & { readonly source: string }>(db)`
    select s.slug as source, e.external_id as "workspaceId", d.dimension_name as name
    from usage.workspace w
    join usage.entity e using (entity_id)
    join usage.source s using (source_id)
    join usage.labelled_entity d on d.entity_id = w.entity_id
    where ${isNeverRead} and ${isConfigured}
    order by 1, 2
  `;
}

export interface ProvedByStatistics extends NamedWorkspace {
  readonly zeros: number;
}

/** Returns workspaces that no usage has named. Only their own statistics prove their zeros. */
export async function provedByStatistics(db: Database, sourceId: number): Promise<ProvedByStatistics[]> {
  return query<ProvedByStatistics>(db)`
    select e.external_id as "workspaceId", d.dimension_name as name,
           sum(extract(epoch from c.period_end - c.period_start) / 86400)::integer as zeros
    from usage.workspace w
    join usage.entity e using (entity_id)
    join usage.trace_scope s on s.workspace_id = w.entity_id and s.stride = 'day'
    join usage.coverage c using (scope_id)
    join usage.labelled_entity d on d.entity_id = w.entity_id
    where e.source_id = ${sourceId} and w.used_before is null
    group by 1, 2
    order by 1
  `;
}
