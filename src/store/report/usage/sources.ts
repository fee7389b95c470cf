import { sql } from "kysely";
import type { Database } from "../../db/database.ts";

export interface UsageSource {
  readonly sourceId: number;
  readonly slug: string;
  /** First UTC day with usage. */
  readonly dataStart: string;
}

export async function usageSources(db: Database): Promise<UsageSource[]> {
  const { rows } = await sql<UsageSource>`
    select source_id as "sourceId", slug, data_start::text as "dataStart" from usage.source order by slug collate "C"
  `.execute(db);
  return rows;
}

export interface UsageWorkspace {
  /** Entity. */
  readonly key: number;
  /** The platform's id, as the views show it. */
  readonly id: string;
  readonly name: string | null;
}

/** Every workspace that usage of the source is kept for. */
export async function usageWorkspaces(db: Database, sourceId: number): Promise<UsageWorkspace[]> {
  const { rows } = await sql<UsageWorkspace>`
    select w.entity_id as key, w.dimension_id as id, w.dimension_name as name
    from usage.labelled_entity w
    where w.dimension = 'workspace' and w.source_id = ${sourceId}
      and exists (select from usage.scope s where s.workspace_id = w.entity_id)
    order by coalesce(w.dimension_name, w.dimension_id) collate "C", w.dimension_id collate "C"
  `.execute(db);
  return rows;
}
