import { sql } from "kysely";
import type { FetchStamp } from "../../domain/coverage/finality.ts";
import type { Window } from "../../domain/time/window.ts";
import type { Database } from "../db/database.ts";

/**
 * The oldest of the answers by workspace, sent at `since` (epoch milliseconds) or later, which say that the workspace of a scope has
 * no usage in a window. Undefined: it has some, or no such answers cover the window.
 */
export async function zeroByWorkspace(
  db: Database,
  { scopeId, window, since }: { scopeId: number; window: Window; since: number },
): Promise<FetchStamp | undefined> {
  const asked = sql`tstzrange(${new Date(window.start)}, ${new Date(window.end)})`;
  const { rows } = await sql<{ number: number; at: Date }>`
    select min(v.fetch_number) as number, min(v.fetched_at) as at
    from usage.scope s
    join usage.scope w using (source_id, kind, trace_tier, workspace_id, stride)
    join usage.coverage v on v.scope_id = w.scope_id and v.period_start < upper(${asked}) and v.period_end > lower(${asked})
    where s.scope_id = ${scopeId} and w.group_by = 'workspace' and v.fetched_at >= ${new Date(since)}
      and not exists (
        select from usage.failure f
        where f.scope_id = w.scope_id and f.period_start < upper(${asked}) and f.period_end > lower(${asked})
      )
    having range_agg(tstzrange(v.period_start, v.period_end)) @> ${asked} and bool_and(not v.traced && ${asked})
  `.execute(db);
  const [found] = rows;
  return found === undefined ? undefined : { fetchNumber: found.number, fetchedAt: found.at.getTime() };
}
