import { sql } from "kysely";
import type { Database } from "../db/database.ts";
import { endDifferences } from "./write-differences.ts";

/**
 * Ends the differences of workspaces that are no longer read, as `not_configured`. If such a workspace is read again and still
 * differs, the next check finds it.
 */
export async function endUnread(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  const isUnread = sql`c.source_id = ${sourceId} and exists (
    select from usage.entity w where w.entity_id = c.workspace_id and w.external_id <> all (${workspaceIds}::text[])
  )`;
  await endDifferences(db, "not_configured", isUnread);
}

/** Ends the differences of hours that retention removed, as `hours_dropped`. Only retention removes coverage. */
export async function endDropped(db: Database, sourceId: number): Promise<void> {
  const isDropped = sql`c.source_id = ${sourceId} and c.stride = 'hour' and not exists (
    select from usage.coverage v
    where v.scope_id = d.scope_id and v.period_start <= d.period_start and v.period_end > d.period_start
  )`;
  await endDifferences(db, "hours_dropped", isDropped);
}
