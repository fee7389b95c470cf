import { type RawBuilder, sql } from "kysely";
import { UsageError } from "../../base/errors.ts";
import { iso } from "../db/expressions.ts";
import { type Database, query, type Row } from "../db/query.ts";
import { RUN_KINDS, type RunKind } from "../work/runs.ts";

/**
 * `running`: work is left, or the run's process is alive. `lost`: the process ended without a report. Only backfills can be
 * `paused` or `cancelled`.
 */
export type RunOutcome =
  | "running"
  | "paused"
  | "done"
  | "partly_failed"
  | "differs"
  | "failed"
  | "skipped"
  | "cancelled"
  | "lost";

export interface Run extends Row<"usage.run", "runId" | "kind"> {
  readonly source: string;
  /** Null without a row in `usage.backfill`, such as for `backfill --inline`. */
  readonly backfillId: number | null;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly seconds: number;
  /** Usage requests with retries. Null: the run itself sent none. */
  readonly requests: number | null;
  readonly outcome: RunOutcome;
  readonly left: number;
  readonly failed: number;
  /** Why the run ended other than as `done`. `reason` is never null then. */
  readonly code: string | null;
  readonly reason: string | null;
}

const LOST_AFTER = sql`interval '5 minutes'`;
/** A process that sends no signs of life is lost this long after its last request. No pause takes that long. */
const SILENT_AFTER = sql`interval '30 minutes'`;
export async function listRuns(
  db: Database,
  wanted: { source?: string | undefined; kind?: RunKind | undefined; most: number },
): Promise<Run[]> {
  const { source = null, kind, most } = wanted;
  // An index gives the newest runs of each source and kind.
  return judged(
    db,
    sql`
      select r.*, s.slug from usage.source s
      cross join unnest(${kind === undefined ? [...RUN_KINDS] : [kind]}::text[]) k
      cross join lateral (
        select * from usage.run r where r.source_id = s.source_id and r.kind = k
        order by r.started_at desc, r.run_id desc limit ${most}
      ) r
      where ${source}::text is null or s.slug = ${source}
      order by r.started_at desc, r.run_id desc limit ${most}`,
  );
}

export async function lastRuns(db: Database, kind: RunKind): Promise<Run[]> {
  return judged(
    db,
    sql`
      select r.*, s.slug from usage.source s
      cross join lateral (
        select * from usage.run r where r.source_id = s.source_id and r.kind = ${kind}
        order by r.started_at desc, r.run_id desc limit 1
      ) r`,
  );
}

export async function runsById(db: Database, runIds: readonly number[]): Promise<Run[]> {
  return judged(
    db,
    sql`select r.*, s.slug from usage.run r join usage.source s using (source_id) where r.run_id = any (${runIds}::integer[])`,
  );
}

async function judged(db: Database, chosen: RawBuilder<unknown>): Promise<Run[]> {
  const rows = await query<Run>(db)`
    with chosen as (${chosen}), known as (
      select r.*, f.requests, f.last_at, t.state_left, t.state_failed, b.state as backfill_state,
             b.finished_at as backfill_finished, t.code as task_code, t.message as task_message
      from chosen r
      left join usage.backfill b using (backfill_id)
      cross join lateral (
        select count(*)::integer as requests, max(coalesce(f.finished_at, f.fetched_at)) as last_at
        from usage.fetch f where f.run_id = r.run_id
      ) f
      cross join lateral (
        select count(*) filter (where x.state in ('waiting', 'queued'))::integer as state_left,
               count(*) filter (where x.state = 'failed')::integer as state_failed,
               (array_agg(x.code order by x.finished_at desc) filter (where x.state = 'failed'))[1] as code,
               (array_agg(x.message order by x.finished_at desc) filter (where x.state = 'failed'))[1] as message
        -- Two parts, since each has an index of its own.
        from (
          select state, code, message, finished_at from usage.fetch_task where backfill_id = r.backfill_id
          union all
          select state, code, message, finished_at from usage.fetch_task
          where r.backfill_id is null and backfill_id is null and run_id = r.run_id
        ) x
      ) t
    ), judged as (
      select k.*, case when backfill_id is null then k.failed else k.state_failed end as all_failed,
             case
               when backfill_state in ('paused', 'cancelled') then backfill_state
               -- The next run takes its fetch tasks.
               when backfill_id is null and outcome is null and seen_at < now() - ${LOST_AFTER} then 'lost'
               when backfill_state = 'running' or state_left > 0 then 'running'
               when backfill_state = 'done' then case when state_failed > 0 then 'partly_failed' else 'done' end
               when outcome = 'done' and k.failed > 0 then 'partly_failed'
               when outcome is not null then outcome
               when coalesce(seen_at, last_at, started_at) < now() - ${SILENT_AFTER} then 'lost'
               else 'running'
             end as judgement
      from known k
    ), ended as (
      select j.*, case
               when judgement in ('running', 'paused') then null
               when backfill_id is not null then backfill_finished
               when judgement = 'lost' then greatest(seen_at, last_at)
               else greatest(finished_at, last_at)
             end as ended_at
      from judged j
    )
    select run_id as "runId", slug as source, kind, backfill_id as "backfillId",
           ${iso("started_at")} as "startedAt",
           ${iso("ended_at")} as "finishedAt",
           round(extract(epoch from coalesce(ended_at, now()) - started_at)::numeric, 1)::float8 as seconds,
           nullif(requests, 0) as requests,
           judgement as outcome, state_left as left, all_failed as failed,
           case when judgement not in ('done', 'running', 'paused') then coalesce(task_code, code) end as code,
           case when judgement not in ('done', 'running', 'paused') then coalesce(nullif(task_message, ''), nullif(message, '')) end
             as reason
    from ended order by started_at desc, run_id desc
  `;
  return rows.map(withReason);
}

export async function runOf(db: Database, runId: number): Promise<Run> {
  const [run] = await runsById(db, [runId]);
  if (run !== undefined) return run;
  throw new UsageError({
    code: "run_unknown",
    message: `Run ${runId} does not exist.`,
    next: "Run `usage-etl runs list` to see all runs.",
  });
}

const REASONS: Readonly<Partial<Record<RunOutcome, string>>> = {
  partly_failed:
    "Not all of it is loaded or compared. `usage-etl status` and `usage-etl coverage` show what is open.",
  differs: "Figures differ. View reporting_detail.usage_reconciliation names them.",
  failed: "It ended with an error that its own output named.",
  cancelled: "A person cancelled it.",
  lost: "Its process ended before it could report. The next run does the rest.",
};

function withReason(run: Run): Run {
  const { outcome, code, reason } = run;
  const known = reason ?? (code === null ? REASONS[outcome] : `It failed with ${code}.`);
  return { ...run, reason: known ?? null };
}

interface RunRequests extends Row<"usage.fetch", "groupBy" | "stride" | "outcome" | "code"> {
  readonly requests: number;
  readonly records: number;
}

export async function requestsOfRun(db: Database, runId: number): Promise<RunRequests[]> {
  return query<RunRequests>(db)`
    select group_by as "groupBy", stride, outcome, code, count(*)::integer as requests,
           coalesce(sum(records), 0)::bigint as records
    from usage.fetch where run_id = ${runId}
    group by group_by, stride, outcome, code
    order by usage.dimension_position(group_by), stride, outcome, code
  `;
}
