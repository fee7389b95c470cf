import { type RawBuilder, sql } from "kysely";
import type { LimitUse } from "../../domain/bill/usage-limit.ts";
import type { Database } from "../db/database.ts";

/** The limits of a source with what is used of them, the most used first. */
export async function limitUses(db: Database, sourceId: number): Promise<LimitUse[]> {
  const { rows } = await limitsOf(sql`${sourceId}`).execute(db);
  return rows;
}

/** SELECT of the same, of the source with that id. */
export function limitsOf(sourceId: RawBuilder<unknown>): RawBuilder<LimitUse> {
  return sql<LimitUse>`
    select l.workspace_id as "workspaceId", l.workspace_name as "workspaceName", l.limit_type as "limitType",
           l.limit_value as value, l.is_rejecting as "isRejecting", l.month_start::text as month, l.traces_loaded as traces,
           l.is_complete as "isComplete", l.days_final as "daysFinal", l.used_percent::float8 as percent,
           l.reached_on::text as "reachedOn", to_char(l.read_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "readAt"
    from reporting.usage_limit l
    where l.source_id = (select f.slug from usage.source f where f.source_id = ${sourceId})
    order by l.is_rejecting desc, l.used_percent desc nulls last, l.workspace_id, l.limit_type
  `;
}
