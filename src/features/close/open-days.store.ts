import { sql } from "kysely";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import { METERS, type Meter } from "../../core/domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../core/domain/usage/record.ts";
import { isConfigured } from "../../core/store/access/workspaces.ts";
import { epochMs } from "../../core/store/db/expressions.ts";
import { type Database, query, type Row } from "../../core/store/db/query.ts";
import { OPEN_REASONS, type OpenDay, type WorkspaceAccess, workspacesLeftOut } from "./open-days.ts";

/** Whole UTC days from the data start on. */
export interface CloseRange extends Interval {
  /** Start for deployment usage. Undefined: `start`. */
  readonly othersStart?: number;
}

export interface RequiredWorkspace extends Row<"usage.workspace", "entityId"> {
  readonly workspaceId: string;
  readonly access: WorkspaceAccess;
}

/**
 * The workspaces that a close of each range needs: those with coverage or records in it, configured ones, and those listed
 * since. The views read the same (`usage.required_workspace`).
 */
async function requiredInEach(
  db: Database,
  requested: { sourceId: number; ranges: readonly Interval[] },
): Promise<RequiredWorkspace[][]> {
  const { sourceId, ranges } = requested;
  const ends = (of: keyof Interval) => ranges.map((range) => new Date(range[of]));
  const rows = await query<RequiredWorkspace & { nth: number }>(db)`
    select r.nth::integer, w.entity_id as "entityId", e.external_id as "workspaceId",
           case when not ${isConfigured} then 'not_configured'
                when w.unlisted_since is not null and not w.is_deleted then 'unlisted' else 'read' end as access
    from usage.workspace w join usage.entity e using (entity_id) join usage.source s using (source_id)
    join usage.required_workspace t on t.workspace_id = w.entity_id
    join unnest(${ends("start")}::timestamptz[], ${ends("end")}::timestamptz[]) with ordinality r (starts, ends, nth)
      on t.days && daterange((r.starts at time zone 'UTC')::date, (r.ends at time zone 'UTC')::date)
    where s.source_id = ${sourceId}
    order by 1, 2
  `;
  return ranges.map((_, i) => rows.filter(({ nth }) => nth === i + 1).map(({ nth: _, ...one }) => one));
}

export interface OpenDays {
  readonly required: readonly RequiredWorkspace[];
  readonly open: readonly OpenDay[];
}

export interface Acceptance {
  readonly required: readonly RequiredWorkspace[];
  readonly without: readonly string[];
  readonly accepted: number;
}

export function acceptanceOf({ required, open }: OpenDays): Acceptance {
  const without = workspacesLeftOut(open);
  return {
    required: required.filter(({ workspaceId }) => !without.includes(workspaceId)),
    without,
    accepted: open.filter(({ workspaceId }) => !without.includes(workspaceId)).length,
  };
}

export async function openDaysOf(
  db: Database,
  requested: { sourceId: number; ranges: readonly CloseRange[] },
): Promise<OpenDays[]> {
  const { sourceId, ranges } = requested;
  const eachRequired = await requiredInEach(db, requested);
  const all = [...new Map(eachRequired.flat().map((one) => [one.entityId, one])).values()];
  if (all.length === 0) return eachRequired.map((required) => ({ required, open: [] }));
  const start = Math.min(...ranges.map((range) => range.start));
  const end = Math.max(...ranges.map((range) => range.end));
  const othersStart = Math.min(...ranges.map(othersStartOf));
  const days = await readOpenDays(db, { sourceId, range: { start, end, othersStart }, required: all });
  return ranges.map((range, i) => {
    const required = eachRequired[i] ?? [];
    const ids = new Set(required.map(({ workspaceId }) => workspaceId));
    const startOf = (meter: Meter) => (meter === "traces" ? range.start : othersStartOf(range));
    const open = between(days, Math.min(range.start, othersStartOf(range)), range.end).filter(
      ({ day, meter, workspaceId }) => day >= startOf(meter) && ids.has(workspaceId),
    );
    return { required, open };
  });
}

function between(days: readonly OpenDay[], start: number, end: number): OpenDay[] {
  const at = (instant: number) => {
    let [low, high] = [0, days.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((days[middle] as OpenDay).day < instant) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return days.slice(at(start), at(end));
}

function othersStartOf({ start, othersStart = start }: CloseRange): number {
  return othersStart;
}

/**
 * Days of each dimension and required workspace that keep the month open, with the first reason that applies
 * (`usage.open_days`). Sorted by day, meter, dimension and workspace.
 */
async function readOpenDays(
  db: Database,
  {
    sourceId,
    range,
    required,
  }: { sourceId: number; range: CloseRange; required: readonly RequiredWorkspace[] },
): Promise<OpenDay[]> {
  const sorted = required.toSorted((a, b) => compare(a.workspaceId, b.workspaceId));
  const ids = sql`${sorted.map(({ entityId }) => entityId)}::integer[]`;
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);
  const until = day(range.end);
  const reasons = OPEN_REASONS.map((reason, rank) => sql`(${rank}::integer, ${reason}, o.${sql.id(reason)})`);
  // Parts of days, because months without proof have a hundred thousand days.
  const rows = await query<OpenPart>(db)`
    select o.meter, o.group_by as "groupBy", array_position(${ids}, o.workspace_id) as place, r.reason, json_agg(json_build_array(
             ${epochMs("lower(part)::timestamp at time zone 'UTC'")},
             ${epochMs("upper(part)::timestamp at time zone 'UTC'")}
           )) as parts
    from usage.open_days o
    cross join lateral (
      select v.reason,
             v.days - coalesce(range_agg(v.days) over (order by v.rank rows between unbounded preceding and 1 preceding), '{}') as days
      from (values ${sql.join(reasons)}) v (rank, reason, days)
      -- Nearly all cells of many months are empty.
      where not isempty(v.days)
    ) r
    cross join lateral unnest(r.days * datemultirange(
      case when o.meter = 'traces' then daterange(${day(range.start)}::date, ${until}::date)
           else daterange(${day(othersStartOf(range))}::date, ${until}::date) end
    )) part
    where o.source_id = ${sourceId} and o.workspace_id = any(${ids})
    group by 1, 2, 3, 4
  `;
  return daysOf(rows, sorted);
}

interface OpenPart {
  readonly meter: Meter;
  readonly groupBy: GroupBy;
  readonly place: number;
  readonly reason: OpenDay["reason"];
  readonly parts: readonly (readonly [from: number, to: number])[];
}

function daysOf(cells: readonly OpenPart[], workspaces: readonly RequiredWorkspace[]): OpenDay[] {
  const order = GROUPINGS.toSorted();
  const sorted = cells.toSorted(
    (a, b) =>
      METERS.indexOf(a.meter) - METERS.indexOf(b.meter) ||
      order.indexOf(a.groupBy) - order.indexOf(b.groupBy) ||
      a.place - b.place,
  );
  const byDay = new Map<number, OpenDay[]>();
  for (const { meter, groupBy, place, reason, parts } of sorted) {
    const { workspaceId, access } = workspaces[place - 1] as RequiredWorkspace;
    for (const [from, to] of parts) {
      for (let day = from; day < to; day += DAY_MS) {
        const open = byDay.get(day) ?? [];
        if (open.length === 0) byDay.set(day, open);
        open.push({ day, meter, groupBy, workspaceId, access, reason });
      }
    }
  }
  return [...byDay.keys()].sort((a, b) => a - b).flatMap((day) => byDay.get(day) ?? []);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
