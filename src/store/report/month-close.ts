import { sql } from "kysely";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { UsageError } from "../../errors.ts";
import { lockScopes } from "../catalog/scopes.ts";
import type { Database, Store } from "../db/database.ts";
import { unreconciledDays } from "../reconcile/reconciled-days.ts";

/** Why a day of a dimension and workspace keeps its month open: the first that applies. */
export const OPEN_REASONS = [
  "missing",
  "failed",
  "unverified",
  "provisional",
  "open",
  "not_reconciled",
  "platform_disagrees",
  "total_differs",
] as const;
type OpenReason = (typeof OPEN_REASONS)[number];

export interface OpenDay {
  /** UTC midnight, epoch milliseconds. */
  readonly day: number;
  readonly groupBy: GroupBy;
  /** The platform's id. */
  readonly workspaceId: string;
  readonly reason: OpenReason;
}

export type CloseResult =
  | { readonly state: "closed"; readonly totals: number; readonly traces: number; readonly accepted: number }
  | { readonly state: "closed_before"; readonly closedAt: string; readonly adjusted: number }
  | { readonly state: "open"; readonly open: readonly OpenDay[] };

/** No request repairs these. The month is closed anyway if the user accepts them. */
const DISAGREEMENTS: readonly OpenReason[] = ["platform_disagrees", "total_differs"];

interface Month {
  readonly sourceId: number;
  /** The days of the month from the source's data start on. */
  readonly range: Interval;
  /** First day, ISO. */
  readonly monthStart: string;
  /** Platform ids; empty: all that are listed. */
  readonly workspaceIds: readonly string[];
}

/**
 * Stores the totals of a month by dimension, workspace and id, if every day of it is loaded, final and proved; else returns
 * the open days. Loads of the source wait meanwhile, so check and totals see the same records. A month closes once.
 */
export async function closeMonth(
  store: Store,
  month: Month,
  { acceptDisagreements }: { acceptDisagreements: boolean },
): Promise<CloseResult> {
  return store.transaction(async ({ db }) => {
    const { rows: scopes } = await sql<{ scope_id: number }>`
      select scope_id from usage.scope where source_id = ${month.sourceId} and stride = 'day'
    `.execute(db);
    const scopeIds = scopes.map((row) => row.scope_id);
    await lockScopes(db, scopeIds);
    const before = await closedBefore(db, month);
    if (before !== undefined) return before;
    await refuseWithoutWorkspaces(db, month);
    const open = await openDays(db, month);
    const accepted = acceptDisagreements ? open.filter((one) => DISAGREEMENTS.includes(one.reason)) : [];
    if (open.length > accepted.length) {
      return { state: "open", open: open.filter((one) => !accepted.includes(one)) };
    }
    const { rows } = await sql<{ totals: number; traces: number }>`
      with closed as (
        insert into usage.month_close (source_id, month_start, accepted_disagreements)
        values (${month.sourceId}, ${month.monthStart}::date, ${accepted.length})
        returning close_id
      ), written as (
        insert into usage.closed_total (close_id, series_id, traces)
        select closed.close_id, s.series_id, sum(r.traces)
        from closed
        cross join usage.scope c
        join usage.series s using (scope_id)
        join usage.dated_record r using (series_id)
        where c.source_id = ${month.sourceId} and c.stride = 'day'
          and r.bucket_start >= ${month.monthStart}::date
          and r.bucket_start < (${month.monthStart}::date + interval '1 month')::date
        group by closed.close_id, s.series_id
        having sum(r.traces) > 0
        returning series_id, traces
      )
      select count(*)::integer as totals,
             coalesce(sum(w.traces) filter (where c.group_by = 'workspace'), 0)::bigint as traces
      from written w join usage.series s using (series_id) join usage.scope c using (scope_id)
    `.execute(db);
    return { state: "closed", accepted: accepted.length, ...(rows[0] as { totals: number; traces: number }) };
  });
}

async function closedBefore(db: Database, month: Month): Promise<CloseResult | undefined> {
  const { rows } = await sql<{ closedAt: Date; adjusted: number }>`
    select m.closed_at as "closedAt",
           (select count(*)::integer from reporting.usage_month_close v join usage.source s on s.slug = v.source_id
            where s.source_id = m.source_id and v.month_start = m.month_start and v.adjustment_traces <> 0) as adjusted
    from usage.month_close m
    where m.source_id = ${month.sourceId} and m.month_start = ${month.monthStart}::date
  `.execute(db);
  const [found] = rows;
  return (
    found && { state: "closed_before", closedAt: found.closedAt.toISOString(), adjusted: found.adjusted }
  );
}

/** Without a known workspace the closed month would look like one without usage. */
async function refuseWithoutWorkspaces(db: Database, { sourceId }: Month): Promise<void> {
  const { rows } = await sql`
    select from usage.workspace w join usage.entity e using (entity_id) where e.source_id = ${sourceId} limit 1
  `.execute(db);
  if (rows.length > 0) return;
  throw new UsageError({
    code: "workspaces_unknown",
    message: "No workspace of this source is known, so there is nothing to close.",
    next: "Run `usage-etl sync` first.",
  });
}

/** Every day of every dimension and workspace that is not final and proved, in order of day, dimension and workspace. */
async function openDays(db: Database, month: Month): Promise<OpenDay[]> {
  const { sourceId, range } = month;
  const { rows } = await sql<Omit<OpenDay, "day"> & { start: Date }>`
    select day as start, g as "groupBy", e.external_id as "workspaceId",
           case when c.scope_id is null then coalesce(f.state, 'missing')
                when not c.settled then 'provisional' else 'total_differs' end as reason
    from usage.workspace w
    join usage.entity e using (entity_id)
    -- Not from scopes: a workspace that was never planned has none, but each of its days is missing.
    cross join unnest(${[...GROUPINGS]}::text[]) g
    left join usage.scope s
      on s.source_id = e.source_id and s.workspace_id = w.entity_id and s.group_by = g and s.stride = 'day'
     and s.kind = 'traces' and s.trace_tier = 'all'
    cross join generate_series(
      ${new Date(range.start)}::timestamptz, ${new Date(range.end - DAY_MS)}::timestamptz, interval '24 hours'
    ) day
    left join usage.coverage c on c.scope_id = s.scope_id and c.period_start <= day and c.period_end > day
    left join usage.failure f on f.scope_id = s.scope_id and f.period_start <= day and f.period_end > day
    where e.source_id = ${sourceId} and (w.unlisted_since is null or w.is_deleted)
      and (c.scope_id is null or not c.settled or exists (
        select from usage.control_difference d
        where d.scope_id = s.scope_id and d.state = 'platform_disagrees' and d.period_start <= day and d.period_end > day
      ))
  `.execute(db);
  const unproved = await unreconciledDays(db, { sourceId, range });
  const byKey = new Map<string, OpenDay>();
  const all = [...rows.map(({ start, ...row }) => ({ ...row, day: start.getTime() })), ...unproved];
  for (const one of all) {
    if (month.workspaceIds.length > 0 && !month.workspaceIds.includes(one.workspaceId)) continue;
    const key = `${one.day} ${one.groupBy} ${one.workspaceId}`;
    const before = byKey.get(key);
    if (before === undefined || rank(one) < rank(before)) byKey.set(key, one);
  }
  return [...byKey.values()].sort(
    (a, b) =>
      a.day - b.day || a.groupBy.localeCompare(b.groupBy) || a.workspaceId.localeCompare(b.workspaceId),
  );
}

function rank({ reason }: OpenDay): number {
  return OPEN_REASONS.indexOf(reason);
}
