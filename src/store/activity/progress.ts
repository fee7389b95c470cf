import { sql } from "kysely";
import type { Database } from "../db/database.ts";

/** What a source is about to do and last did, beside its runs. Instants are ISO texts in UTC. */
export interface SourceProgress {
  readonly source: string;
  /** Fetch tasks, and how long the oldest has waited; null without any. Those of paused backfills do not count. */
  readonly waiting: number;
  readonly queued: number;
  readonly oldestSeconds: number | null;
  /** When a part of time was last compared with the export, and days with totals, without anything left. */
  readonly lastReconciledAt: string | null;
  readonly lastTotalsAt: string | null;
}

export async function sourceProgress(db: Database): Promise<SourceProgress[]> {
  const { rows } = await sql<SourceProgress>`
    select s.slug as source, w.*,
           (select to_char(max(r.reconciled_at) at time zone 'UTC', ${ISO})
            from usage.reconciled r join usage.scope c using (scope_id) where c.source_id = s.source_id) as "lastReconciledAt",
           (select to_char(max(k.checked_at) at time zone 'UTC', ${ISO})
            from usage.control_check k where k.source_id = s.source_id and k.failures = 0) as "lastTotalsAt"
    from usage.source s
    cross join lateral (
      select count(*) filter (where w.state = 'waiting')::integer as waiting,
             count(*) filter (where w.state = 'queued')::integer as queued,
             extract(epoch from now() - min(w.created_at))::integer as "oldestSeconds"
      from usage.fetch_task w left join usage.backfill b using (backfill_id)
      where w.source_id = s.source_id and w.state in ('waiting', 'queued') and b.state is distinct from 'paused'
    ) w
    order by s.slug
  `.execute(db);
  return rows;
}

const ISO = 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
