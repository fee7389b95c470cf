import { sql } from "kysely";
import type { Database } from "../db/database.ts";

export interface UsageSource {
  readonly sourceId: number;
  readonly slug: string;
  /** First UTC day with usage. */
  readonly dataStart: string;
  /** Every workspace that usage of the source is kept for. */
  readonly workspaces: readonly UsageWorkspace[];
}

export interface UsageWorkspace {
  /** Entity. */
  readonly key: number;
  /** The platform's id, as the views show it. */
  readonly id: string;
  readonly name: string | null;
}

export async function usageSources(db: Database): Promise<UsageSource[]> {
  const { rows } = await sql<UsageSource>`
    select s.source_id as "sourceId", s.slug, s.data_start::text as "dataStart",
           (
             select coalesce(json_agg(json_build_object('key', w.entity_id, 'id', w.dimension_id, 'name', w.dimension_name)
                      order by coalesce(w.dimension_name, w.dimension_id) collate "C", w.dimension_id collate "C"), '[]')
             from usage.labelled_entity w
             where w.dimension = 'workspace' and w.source_id = s.source_id
               and exists (select from usage.scope c where c.workspace_id = w.entity_id)
           ) as workspaces
    from usage.source s order by s.slug collate "C"
  `.execute(db);
  return rows;
}
