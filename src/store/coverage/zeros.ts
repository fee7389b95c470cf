import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** Zeros are counted as days x dimensions. */

export interface WithdrawnZeros {
  /** The platform's id. */
  readonly workspaceId: string;
  readonly zeros: number;
  /** ISO days. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** Closed months that hold such days, such as 2026-03. Their totals are complete again when these are loaded. */
  readonly closedMonths: readonly string[];
}

/** Zeros that were withdrawn since the key had lost the workspace, and that are not loaded again. */
export async function withdrawnZeros(db: Database, sourceId: number): Promise<WithdrawnZeros[]> {
  const { rows } = await sql<WithdrawnZeros>`
    select l.external_id as "workspaceId", l.zeros, l.first_day::text as "firstDay", l.last_day::text as "lastDay",
           array(
             select to_char(m.month_start, 'YYYY-MM') from usage.month_close m
             where m.source_id = l.source_id and exists (
               select from usage.withdrawn_day d
               where d.workspace_id = l.workspace_id and usage.month_of(d.usage_date) = m.month_start
             )
             order by 1
           ) as "closedMonths"
    from usage.lost_workspace l
    where l.source_id = ${sourceId} and l.zeros > 0
    order by 1
  `.execute(db);
  return rows;
}

export interface ListedOnly {
  /** The platform's id. */
  readonly workspaceId: string;
  readonly zeros: number;
}

/** Listed workspaces that no answer has ever named: only the listing says that their loaded days are zero. */
export async function listedOnly(db: Database, sourceId: number): Promise<ListedOnly[]> {
  const { rows } = await sql<ListedOnly>`
    select e.external_id as "workspaceId", sum(extract(epoch from c.period_end - c.period_start) / 86400)::integer as zeros
    from usage.workspace w
    join usage.entity e using (entity_id)
    join usage.trace_scope s on s.workspace_id = w.entity_id and s.stride = 'day'
    join usage.coverage c using (scope_id)
    where e.source_id = ${sourceId} and w.unlisted_since is null and w.used_before is null
      and not exists (select from usage.source_fact f where f.source_id = e.source_id and f.fact = 'no_listing')
    group by 1
    order by 1
  `.execute(db);
  return rows;
}
