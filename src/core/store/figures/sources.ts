import { type Database, query, type Row } from "../db/query.ts";

export interface UsageSource extends Row<"usage.source", "sourceId" | "slug" | "dataStart"> {
  readonly workspaces: readonly UsageWorkspace[];
}

export interface UsageWorkspace {
  readonly key: number;
  readonly id: string;
  readonly name: string | null;
}

export async function usageSources(db: Database): Promise<UsageSource[]> {
  return query<UsageSource>(db)`
    select s.source_id as "sourceId", s.slug, s.data_start::text as "dataStart",
           (
             select coalesce(json_agg(json_build_object('key', w.entity_id, 'id', w.dimension_id, 'name', w.dimension_name)
                      order by coalesce(w.dimension_name, w.dimension_id) collate "C", w.dimension_id collate "C"), '[]')
             from usage.labelled_entity w
             where w.dimension = 'workspace' and w.source_id = s.source_id
               and exists (select from usage.trace_scope c where c.workspace_id = w.entity_id)
           ) as workspaces
    from usage.source s order by s.slug collate "C"
  `;
}
