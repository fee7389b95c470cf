import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/**
 * Ends the differences of workspaces that are no longer read, as `not_configured`. If such a workspace is read again and still
 * differs, the next check finds the same difference anew.
 */
export async function endUnread(
  db: Database,
  { sourceId, workspaceIds }: { sourceId: number; workspaceIds: readonly string[] },
): Promise<void> {
  for (const table of ["reconciliation_difference", "control_difference"]) {
    await sql`
      update ${sql.id("usage", table)} d set state = 'not_configured', closed_at = now()
      from usage.scope c join usage.entity w on w.entity_id = c.workspace_id
      where c.scope_id = d.scope_id and c.source_id = ${sourceId} and d.closed_at is null
        and w.external_id <> all (${workspaceIds}::text[])
    `.execute(db);
  }
}

/** Ends the differences of hours that retention removed, as `hours_dropped`. Only retention removes coverage. */
export async function endDropped(db: Database, sourceId: number): Promise<void> {
  await sql`
    update usage.reconciliation_difference d set state = 'hours_dropped', closed_at = now()
    from usage.scope c
    where c.scope_id = d.scope_id and c.source_id = ${sourceId} and c.stride = 'hour' and d.closed_at is null
      and not exists (
        select from usage.coverage v
        where v.scope_id = d.scope_id and v.period_start <= d.bucket_start and v.period_end > d.bucket_start
      )
  `.execute(db);
}
