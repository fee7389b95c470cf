import { sql } from "kysely";
import type { Days } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import type { DayAmount } from "../../core/domain/usage/forecast.ts";
import type { LoggedChange } from "../../core/platform/billing/audit-log.ts";
import type { Database } from "../../core/store/db/database.ts";
import { iso } from "../../core/store/db/expressions.ts";
import { query, queryOne } from "../../core/store/db/query.ts";

/** The platform keeps entries for 400 days. */
const KEPT_MS = 400 * DAY_MS;
/** Entries may arrive late, so the days before the newest one are read again. */
const READ_AGAIN_MS = 7 * DAY_MS;

/** Returns the time of which the log is to be read. `end` is now. */
export async function unreadLog(db: Database, sourceId: number): Promise<{ start: number; end: number }> {
  const { now, newest } = await queryOne<{ now: Date; newest: Date | null }>(db)`
    select now() as now, (select max(changed_at) from usage.logged_change where source_id = ${sourceId}) as newest
  `;
  const end = now.getTime();
  return { start: Math.max(end - KEPT_MS, (newest?.getTime() ?? 0) - READ_AGAIN_MS), end };
}

/** Keeps each entry once. Returns how many are new. Leaves out entries of changes that failed: they changed nothing. */
export async function keepLoggedChanges(
  db: Database,
  { sourceId, changes }: { sourceId: number; changes: readonly LoggedChange[] },
): Promise<number> {
  const rows = changes
    .filter(({ hasSucceeded }) => hasSucceeded !== false)
    .map(({ at, hasSucceeded, ...one }) => ({
      ...one,
      at: new Date(at),
      isCertain: hasSucceeded === true,
    }));
  const kept = await query<{ id: number }>(db)`
    insert into usage.logged_change (source_id, external_id, operation, changed_at, workspace, user_id, is_certain)
    select ${sourceId}, r.id, r.operation, r.at, r."workspaceId", r."userId", r."isCertain"
    from json_to_recordset(${JSON.stringify(rows)}::json) r
           (id text, operation text, at timestamptz, "workspaceId" text, "userId" text, "isCertain" boolean)
    on conflict (source_id, external_id) do nothing
    returning change_id as id
  `;
  return kept.length;
}

export interface KeptChange {
  /** ISO instant, UTC. */
  readonly at: string;
  readonly operation: string;
  /** Null: the log names no workspace. */
  readonly workspaceId: string | null;
  readonly workspaceName: string | null;
  readonly isCertain: boolean;
}

export async function changesIn(
  db: Database,
  { source, from, to }: { source: string } & Days,
): Promise<KeptChange[]> {
  const instant = (day: string) => sql`${day}::date::timestamp at time zone 'UTC'`;
  return query<KeptChange>(db)`
    select ${iso("c.changed_at")} as at, c.operation, c.workspace as "workspaceId", w.dimension_name as "workspaceName",
           c.is_certain as "isCertain"
    from usage.logged_change c
    join usage.source s using (source_id)
    left join usage.labelled_entity w
      on w.source_id = c.source_id and w.dimension = 'workspace' and w.dimension_id = c.workspace
    where s.slug = ${source} and c.changed_at >= ${instant(from)} and c.changed_at < ${instant(to)}
    order by c.changed_at, c.change_id
  `;
}

export interface MeasureDays {
  readonly measure: "traces" | "longlived";
  readonly workspaceId: string;
  readonly workspaceName: string;
  readonly days: readonly DayAmount[];
}

export async function measureDays(
  db: Database,
  { source, from, to }: { source: string } & Days,
): Promise<MeasureDays[]> {
  return query<MeasureDays>(db)`
    select m.measure, d.workspace_id as "workspaceId", coalesce(max(d.workspace_name), d.workspace_id) as "workspaceName",
           json_agg(json_build_object('day', d.usage_date, 'amount', m.amount, 'isFinal', m.is_final) order by d.usage_date) as days
    from reporting.fct_usage_workspace_daily d
    cross join lateral (values
      ('traces', d.traces, coalesce(d.is_final, false)),
      ('longlived', d.longlived_traces, coalesce(d.tiers_status in ('ok', 'empty'), false))
    ) m (measure, amount, is_final)
    where d.source_id = ${source} and d.usage_date >= ${from}::date
      and d.usage_date < least(${to}::date, (now() at time zone 'UTC')::date)
    group by m.measure, d.workspace_id
    order by m.measure desc, d.workspace_id
  `;
}
