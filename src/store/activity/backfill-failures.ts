import { sql } from "kysely";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";

/** The failed fetch tasks of a backfill that share a code. Instants are ISO texts in UTC. */
export interface FailureGroup {
  readonly code: string;
  readonly tasks: number;
  /** That of the task that failed first. */
  readonly message: string;
  /** The first of them, by time. */
  readonly ranges: readonly FailedRange[];
}

interface FailedRange {
  readonly groupBy: GroupBy;
  readonly stride: string;
  readonly from: string;
  readonly to: string;
  /** Platform ids. */
  readonly workspaceIds: readonly string[];
}

/** The most frequent code first. */
export async function failureGroups(
  db: Database,
  wanted: { backfillId: number; mostGroups: number; mostRanges: number },
): Promise<FailureGroup[]> {
  const { backfillId, mostGroups, mostRanges } = wanted;
  const { rows } = await sql<FailureGroup>`
    with failed as materialized (
      select coalesce(code, 'failed') as code, coalesce(message, '') as message, group_by, stride, period_start, period_end,
             workspace_ids, finished_at, task_id,
             row_number() over (partition by coalesce(code, 'failed') order by period_start, group_by, task_id) as n
      from usage.fetch_task where backfill_id = ${backfillId} and state = 'failed'
    )
    select code, count(*)::integer as tasks,
           coalesce((array_agg(message order by finished_at, task_id) filter (where message <> ''))[1], 'It failed with ' || code || '.')
             as message,
           json_agg(json_build_object(
             'groupBy', group_by, 'stride', stride, 'workspaceIds', workspace_ids,
             'from', to_char(period_start at time zone 'UTC', ${ISO}), 'to', to_char(period_end at time zone 'UTC', ${ISO})
           ) order by n) filter (where n <= ${mostRanges}) as ranges
    from failed group by code order by count(*) desc, code limit ${mostGroups}
  `.execute(db);
  return rows;
}

const ISO = 'YYYY-MM-DD"T"HH24:MI:SS"Z"';

/** Fetch tasks of a source that wait or are at work: of syncs, of this backfill, and of other ones that are not paused. */
interface TasksAhead {
  readonly routine: number;
  readonly others: number;
}

export async function tasksBeside(db: Database, backfillId: number): Promise<TasksAhead> {
  const { rows } = await sql<TasksAhead>`
    select count(*) filter (where s.backfill_id is null)::integer as routine,
           count(*) filter (where s.backfill_id <> ${backfillId} and o.state <> 'paused')::integer as others
    from usage.backfill b
    join usage.fetch_task s on s.source_id = b.source_id and s.state in ('waiting', 'queued')
    left join usage.backfill o on o.backfill_id = s.backfill_id
    where b.backfill_id = ${backfillId}
  `.execute(db);
  return rows[0] ?? { routine: 0, others: 0 };
}
