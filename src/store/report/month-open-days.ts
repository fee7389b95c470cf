import { sql } from "kysely";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { isConfigured } from "../catalog/workspaces.ts";
import type { Database } from "../db/database.ts";
import { unreconciledDays } from "../reconcile/reconciled-days.ts";

/** Why a day of a dimension and workspace keeps its month open: the first that applies. */
export const OPEN_REASONS = [
  "not_available",
  "missing",
  "failed",
  "unverified",
  "provisional",
  "open",
  "not_reconciled",
  "platform_disagrees",
  "total_differs",
] as const;
export type OpenReason = (typeof OPEN_REASONS)[number];

/** Whether a sync asks for a workspace: the listing may lack it, or the configuration not name it any more. */
type WorkspaceAccess = "read" | "unlisted" | "not_configured";

export interface OpenDay {
  /** UTC midnight, epoch milliseconds. */
  readonly day: number;
  readonly groupBy: GroupBy;
  /** The platform's id. */
  readonly workspaceId: string;
  readonly access: WorkspaceAccess;
  readonly reason: OpenReason;
}

/** Days of a source, whole UTC days. */
interface Days {
  readonly sourceId: number;
  readonly range: Interval;
}

export interface RequiredWorkspace {
  readonly entityId: number;
  /** The platform's id. */
  readonly workspaceId: string;
  readonly access: WorkspaceAccess;
}

/**
 * The workspaces that a close of these days of one month is about: those with coverage or records in it, and those that the
 * configuration names or that were listed since. A workspace that left the listing earlier has nothing to say about them. The
 * views read the same (`usage.required_workspace`).
 */
export async function requiredWorkspaces(
  db: Database,
  { sourceId, range, without }: Days & { without: readonly string[] },
): Promise<RequiredWorkspace[]> {
  const { rows } = await sql<RequiredWorkspace>`
    select w.entity_id as "entityId", e.external_id as "workspaceId",
           case when not ${isConfigured} then 'not_configured'
                when w.unlisted_since is not null and not w.is_deleted then 'unlisted' else 'read' end as access
    from usage.workspace w join usage.entity e using (entity_id) join usage.source s using (source_id)
    join usage.required_workspace t on t.workspace_id = w.entity_id
    where s.source_id = ${sourceId} and e.external_id <> all (${[...without]}::text[])
      and t.days && daterange(
        (${new Date(range.start)}::timestamptz at time zone 'UTC')::date, (${new Date(range.end)}::timestamptz at time zone 'UTC')::date
      )
    order by 1
  `.execute(db);
  return rows;
}

/** Every day of every dimension and required workspace that is not final and proved, by day, dimension and workspace. */
export async function openDays(
  db: Database,
  { sourceId, range, required }: Days & { required: readonly RequiredWorkspace[] },
): Promise<OpenDay[]> {
  const { rows } = await sql<{ start: Date } & Pick<OpenDay, "groupBy" | "workspaceId" | "reason">>`
    select day as start, g as "groupBy", e.external_id as "workspaceId",
           case when f.scope_id is not null then f.state
                when c.settled then 'total_differs'
                when c.scope_id is not null then 'provisional'
                when n.source_id is not null then 'not_available' else 'missing' end as reason
    from usage.entity e
    -- Not from scopes: a workspace that was never planned has none, but each of its days is missing.
    cross join unnest(${[...GROUPINGS]}::text[]) g
    left join usage.scope s
      on s.source_id = e.source_id and s.workspace_id = e.entity_id and s.group_by = g and s.stride = 'day'
     and s.kind = 'traces' and s.trace_tier = 'all'
    left join usage.source_fact n on n.source_id = e.source_id and n.fact = 'no_day'
    cross join generate_series(
      ${new Date(range.start)}::timestamptz, ${new Date(range.end - DAY_MS)}::timestamptz, interval '24 hours'
    ) day
    left join usage.coverage c on c.scope_id = s.scope_id and c.period_start <= day and c.period_end > day
    left join usage.failure f on f.scope_id = s.scope_id and f.period_start <= day and f.period_end > day
    where e.entity_id = any (${required.map(({ entityId }) => entityId)}::integer[])
      and (f.scope_id is not null or c.settled is not true or exists (
        select from usage.control_difference d
        where d.scope_id = s.scope_id and d.state = 'platform_disagrees' and d.period_start <= day and d.period_end > day
      ))
  `.execute(db);
  const unproved = await unreconciledDays(db, { sourceId, range });
  const accessOf = new Map(required.map(({ workspaceId, access }) => [workspaceId, access]));
  const byKey = new Map<string, OpenDay>();
  for (const one of [...rows.map(({ start, ...row }) => ({ ...row, day: start.getTime() })), ...unproved]) {
    const access = accessOf.get(one.workspaceId);
    if (access === undefined) continue;
    const key = `${one.day} ${one.groupBy} ${one.workspaceId}`;
    const before = byKey.get(key);
    if (before === undefined || rank(one) < rank(before)) byKey.set(key, { ...one, access });
  }
  return [...byKey.values()].sort(
    (a, b) =>
      a.day - b.day || a.groupBy.localeCompare(b.groupBy) || a.workspaceId.localeCompare(b.workspaceId),
  );
}

function rank({ reason }: { readonly reason: OpenReason }): number {
  return OPEN_REASONS.indexOf(reason);
}
