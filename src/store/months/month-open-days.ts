import { sql } from "kysely";
import {
  DISAGREEMENTS,
  OPEN_REASONS,
  type OpenDay,
  type OpenReason,
  type WorkspaceAccess,
} from "../../domain/months/check-list.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METERS, type Meter } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { isConfigured } from "../catalog/workspaces.ts";
import type { Database } from "../db/database.ts";
import { unreconciledDays } from "../proof/reconciled-days.ts";
import { type DayFound, otherOpenDaysIn } from "./other-open-days.ts";

/** The days of a close: from the data start on, whole UTC days. */
export interface CloseRange extends Interval {
  /** Where those of deployment usage begin, which may have begun before. Default: the same day. */
  readonly othersStart?: number;
}

/** Days of a source. */
interface Days {
  readonly sourceId: number;
  readonly range: CloseRange;
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
  const [required = []] = await requiredInEach(db, { sourceId, ranges: [range], without });
  return required;
}

/** The same for each of several ranges, in one query. */
async function requiredInEach(
  db: Database,
  asked: { sourceId: number; ranges: readonly Interval[]; without: readonly string[] },
): Promise<RequiredWorkspace[][]> {
  const { sourceId, ranges, without } = asked;
  const ends = (of: keyof Interval) => ranges.map((range) => new Date(range[of]));
  const { rows } = await sql<RequiredWorkspace & { nth: number }>`
    select r.nth::integer, w.entity_id as "entityId", e.external_id as "workspaceId",
           case when not ${isConfigured} then 'not_configured'
                when w.unlisted_since is not null and not w.is_deleted then 'unlisted' else 'read' end as access
    from usage.workspace w join usage.entity e using (entity_id) join usage.source s using (source_id)
    join usage.required_workspace t on t.workspace_id = w.entity_id
    join unnest(${ends("start")}::timestamptz[], ${ends("end")}::timestamptz[]) with ordinality r (starts, ends, nth)
      on t.days && daterange((r.starts at time zone 'UTC')::date, (r.ends at time zone 'UTC')::date)
    where s.source_id = ${sourceId} and e.external_id <> all (${[...without]}::text[])
    order by 1, 2
  `.execute(db);
  return ranges.map((_, i) => rows.filter(({ nth }) => nth === i + 1).map(({ nth: _, ...one }) => one));
}

/** What a close of a month comes to. */
export interface MonthCheck {
  /** The workspaces that it is about. */
  readonly required: readonly RequiredWorkspace[];
  /** What keeps the month open. */
  readonly open: readonly OpenDay[];
  /** Days x dimensions x workspaces that are open, but accepted. */
  readonly accepted: number;
}

/** Checks months, each of which is a range of days. It reads only; `close` does the same while loads of the source wait. */
export async function checkMonths(
  db: Database,
  asked: {
    sourceId: number;
    ranges: readonly CloseRange[];
    without: readonly string[];
    acceptDisagreements: boolean;
  },
): Promise<MonthCheck[]> {
  const { sourceId, ranges, acceptDisagreements } = asked;
  const eachRequired = await requiredInEach(db, asked);
  const all = [...new Map(eachRequired.flat().map((one) => [one.entityId, one])).values()];
  if (all.length === 0) return eachRequired.map((required) => ({ required, open: [], accepted: 0 }));
  const start = Math.min(...ranges.map((range) => range.start));
  const end = Math.max(...ranges.map((range) => range.end));
  const othersStart = Math.min(...ranges.map(othersStartOf));
  const days = await openDays(db, { sourceId, range: { start, end, othersStart }, required: all });
  return ranges.map((range, i) => {
    const required = eachRequired[i] ?? [];
    const ids = new Set(required.map(({ workspaceId }) => workspaceId));
    const startOf = (meter: Meter) => (meter === "traces" ? range.start : othersStartOf(range));
    const within = between(days, Math.min(range.start, othersStartOf(range)), range.end).filter(
      ({ day, meter, workspaceId }) => day >= startOf(meter) && ids.has(workspaceId),
    );
    const isAccepted = ({ reason }: OpenDay) => acceptDisagreements && DISAGREEMENTS.includes(reason);
    const open = within.filter((one) => !isAccepted(one));
    return { required, open, accepted: within.length - open.length };
  });
}

/** Those of some days, in order. */
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
 * Every day of every dimension and required workspace that is not final and proved, by day, meter, dimension and workspace. Other
 * usage than traces of all tiers needs no comparison with its export: it is loaded and final, and nothing contradicts it.
 */
export async function openDays(
  db: Database,
  { sourceId, range, required }: Days & { required: readonly RequiredWorkspace[] },
): Promise<OpenDay[]> {
  const [start, end] = [sql`${new Date(range.start)}::timestamptz`, sql`${new Date(range.end)}::timestamptz`];
  const others = otherOpenDaysIn({
    workspaces: required.map(({ entityId }) => entityId),
    range: { start: othersStartOf(range), end: range.end },
  });
  const { rows } = await sql<DayFound>`
    with own as materialized (
      -- Not from scopes: a workspace that was never planned has none, but each of its days is missing.
      select e.external_id, e.entity_id, g, s.scope_id, n.source_id is not null as has_no_days
      from usage.entity e
      cross join unnest(${[...GROUPINGS]}::text[]) g
      left join usage.trace_scope s
        on s.source_id = e.source_id and s.workspace_id = e.entity_id and s.group_by = g and s.stride = 'day'
      left join usage.source_fact n on n.source_id = e.source_id and n.fact = 'no_day'
      where e.entity_id = any (${required.map(({ entityId }) => entityId)}::integer[])
    ), loaded as materialized (
      select c.scope_id, range_agg(tstzrange(c.period_start, c.period_end)) as parts,
             range_agg(tstzrange(c.period_start, c.period_end)) filter (where c.final) as final
      from usage.coverage c join own using (scope_id)
      where c.period_start < ${end} and c.period_end > ${start} group by c.scope_id
    ), failing as materialized (
      select f.* from usage.failure f join own using (scope_id) where f.period_start < ${end} and f.period_end > ${start}
    ), differing as materialized (
      select d.scope_id, range_agg(tstzrange(d.period_start, d.period_end)) as parts
      from usage.control_difference d join own using (scope_id)
      where d.state = 'platform_disagrees' and d.kind <> 'provider_total' and d.period_start < ${end} and d.period_end > ${start}
      group by d.scope_id
    ), billed as materialized (
      -- Of a month and workspace, by whatever meter: all of its days, in the dimension that it is about.
      select s.source_id, s.workspace_id, s.group_by, range_agg(tstzrange(d.period_start, d.period_end)) as parts
      from usage.control_difference d join usage.scope s using (scope_id)
      where s.source_id = ${sourceId} and d.kind = 'provider_total' and d.closed_at is null
        and d.period_start < ${end} and d.period_end > ${start}
      group by 1, 2, 3
    )
    select (extract(epoch from day) * 1000)::bigint as day, 'traces' as meter, g as "groupBy", own.external_id as "workspaceId",
           case when f.scope_id is not null then f.state
                when c.final @> day then case when d.parts @> day then 'total_differs' else 'provider_differs' end
                when c.parts @> day then 'provisional'
                when own.has_no_days then 'not_available' else 'missing' end as reason
    from own
    left join loaded c on c.scope_id = own.scope_id
    left join differing d on d.scope_id = own.scope_id
    left join billed b on b.workspace_id = own.entity_id and b.group_by = g
    left join (select scope_id, range_agg(tstzrange(period_start, period_end)) as parts from failing group by scope_id) x
      on x.scope_id = own.scope_id
    -- Not every day of every scope: most of them are final, and of no interest.
    cross join lateral unnest(
      tstzmultirange(tstzrange(${start}, ${end}))
        * (tstzmultirange(tstzrange(${start}, ${end})) - coalesce(c.final, '{}') + coalesce(x.parts, '{}') + coalesce(d.parts, '{}')
           + coalesce(b.parts, '{}'))
    ) part
    cross join lateral generate_series(
      date_trunc('day', lower(part), 'UTC'), upper(part) - interval '1 microsecond', interval '24 hours'
    ) day
    left join failing f on f.scope_id = own.scope_id and f.period_start <= day and f.period_end > day
    where f.scope_id is not null or (c.final @> day) is not true or d.parts @> day or b.parts @> day
    union all (${others})
  `.execute(db);
  const unreconciled = await unreconciledDays(db, { sourceId, range });
  const days = new OpenDays(required);
  for (const one of rows) days.add(one, one.meter);
  for (const one of unreconciled) days.add(one, "traces");
  return days.inOrder();
}

const DIMENSIONS = GROUPINGS.toSorted();

/**
 * Open days of some workspaces, each with the first reason that applies. Of months that nothing proves these are tens of thousands:
 * so their order is a number, since joining and comparing texts would take as long as the queries.
 */
class OpenDays {
  readonly #workspaces: ReadonlyMap<string, { readonly rank: number; readonly access: WorkspaceAccess }>;
  readonly #days = new Map<number, OpenDay>();

  constructor(required: readonly RequiredWorkspace[]) {
    const sorted = required.toSorted((a, b) => compare(a.workspaceId, b.workspaceId));
    this.#workspaces = new Map(
      sorted.map(({ workspaceId, access }, rank) => [workspaceId, { rank, access }]),
    );
  }

  add({ day, groupBy, workspaceId, reason }: Omit<OpenDay, "access" | "meter">, meter: Meter): void {
    const workspace = this.#workspaces.get(workspaceId);
    if (workspace === undefined) return;
    const cell = (day / DAY_MS) * METERS.length + METERS.indexOf(meter);
    const place =
      (cell * DIMENSIONS.length + DIMENSIONS.indexOf(groupBy)) * this.#workspaces.size + workspace.rank;
    const before = this.#days.get(place);
    if (before !== undefined && rank(before) <= rank({ reason })) return;
    this.#days.set(place, { day, meter, groupBy, workspaceId, access: workspace.access, reason });
  }

  /** By day, meter, dimension and workspace. */
  inOrder(): OpenDay[] {
    return Array.from(
      Float64Array.from(this.#days.keys()).sort(),
      (place) => this.#days.get(place) as OpenDay,
    );
  }
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function rank({ reason }: { readonly reason: OpenReason }): number {
  return OPEN_REASONS.indexOf(reason);
}
