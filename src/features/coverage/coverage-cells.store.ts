import { type RawBuilder, sql } from "kysely";
import type { GridStride } from "../../core/domain/coverage/coverage-columns.ts";
import { COUNTED, type Expectation, type Parts } from "../../core/domain/coverage/coverage-grid.ts";
import { intersect } from "../../core/domain/time/intervals.ts";
import type { Interval } from "../../core/domain/time/window.ts";
import type { GroupBy } from "../../core/domain/usage/record.ts";
import { isConfigured } from "../../core/store/access/workspaces.ts";
import { type JsonParts, partsAsJson, toIntervals } from "../../core/store/catalog/scope-time.ts";
import { type Database, query } from "../../core/store/db/query.ts";

export interface CoverageCell {
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  readonly access: "read" | "unlisted" | "not_configured";
  readonly groupBy: GroupBy;
  /** Null until the first plan of the workspace. */
  readonly scopeId: number | null;
  /** Scope of the hours that replace days. Null: none do. */
  readonly hourScopeId: number | null;
  readonly days: Parts;
  readonly hours: Parts | undefined;
  readonly daysOfHours: readonly Interval[];
  readonly differs: readonly Interval[];
}

export interface SourceCoverage extends Expectation {
  readonly source: string;
  readonly cells: readonly CoverageCell[];
}

const SETS = [...COUNTED, "loaded", "traced"] as const;

type Texts = Readonly<Record<keyof Parts, string>>;
type Row = Omit<CoverageCell, "days" | "hours" | "daysOfHours" | "differs"> & {
  readonly days: Texts;
  readonly workspaceEntityId: number;
  readonly daysOfHours: string;
};

/**
 * Coverage and proof of a source for all time, optionally of one workspace or dimension. Undefined: unknown source. `tracedIn`:
 * a short range in which hours with traces are marked.
 */
export async function sourceCoverage(
  db: Database,
  wanted: {
    source: string;
    stride: GridStride;
    workspaceId?: string;
    groupBy?: GroupBy;
    tracedIn?: Interval | undefined;
  },
): Promise<SourceCoverage | undefined> {
  const { source, stride, workspaceId = null, groupBy = null, tracedIn } = wanted;
  const {
    rows: [found],
  } = await sql<Expectation & { source: string; differing: readonly (Interval & { scopeId: number })[] }>`
    select s.slug as source, ${stride} as stride, date_part('epoch', s.data_start) * 1000 as "dataStart",
           date_part('epoch', now()) * 1000 as now,
           exists (
             select from usage.source_fact f where f.source_id = s.source_id and f.fact = ${`no_${stride}`}
           ) as "isUnavailable", ${DIFFERING} as differing
    from usage.source s where s.slug = ${source}
  `.execute(db);
  if (found === undefined) return undefined;
  const isHourly = stride === "hour";
  const rows = await query<Row>(db)`
    select e.external_id as "workspaceId", c.workspace_name as "workspaceName",
           case when not ${isConfigured} then 'not_configured'
                when w.unlisted_since is not null and not w.is_deleted then 'unlisted' else 'read' end as access,
           c.group_by as "groupBy", ${isHourly ? sql`c.hour_scope_id` : sql`c.day_scope_id`} as "scopeId",
           case when not isempty(c.days_of_hours) then c.hour_scope_id end as "hourScopeId",
           c.days_of_hours::text as "daysOfHours", ${setsOf(sql`c`, (set) => sql`${set}::text`)} as days,
           c.workspace_entity_id as "workspaceEntityId"
    from usage.coverage_cell c
    join usage.source s on s.source_id = c.source_id
    join usage.workspace w on w.entity_id = c.workspace_entity_id
    join usage.entity e on e.entity_id = w.entity_id
    where c.slug = ${source} and c.meter = 'traces' and c.stride = ${stride}
      and (${workspaceId}::text is null or e.external_id = ${workspaceId})
      and (${groupBy}::text is null or c.group_by = ${groupBy})
    order by 2, 1, usage.dimension_position(c.group_by)
  `;
  const hours = isHourly ? await hoursOf(db, source, { workspaceId, groupBy, tracedIn }) : undefined;
  const { differing: all, ...expectation } = found;
  const differing = Map.groupBy(all, ({ scopeId }) => scopeId);
  const cells = rows.map(
    ({ days, workspaceEntityId, daysOfHours, ...cell }): CoverageCell => ({
      ...cell,
      days: partsOf((name) => daysIn(days[name])),
      hours: hours?.get(`${workspaceEntityId} ${cell.groupBy}`),
      daysOfHours: daysIn(daysOfHours),
      differs: [
        ...(differing.get(cell.scopeId ?? -1) ?? []),
        ...intersect(differing.get(cell.hourScopeId ?? -1) ?? [], daysIn(daysOfHours)),
      ],
    }),
  );
  return { ...expectation, cells };
}

const DIFFERING = sql`(
  select coalesce(json_agg(x order by x.start), '[]') from (
    select distinct d.scope_id as "scopeId", date_part('epoch', d.period_start) * 1000 as start,
           date_part('epoch', d.period_end) * 1000 as end
    from usage.difference d join usage.scope c using (scope_id)
    where d.compared_with = 'export' and d.state in ('open', 'platform_disagrees') and c.source_id = s.source_id
  ) x
)`;

interface Hours {
  readonly workspaceEntityId: number;
  readonly groupBy: GroupBy;
  readonly parts: Readonly<Record<keyof Parts, JsonParts | null>>;
}

/**
 * The hours of each workspace and dimension by status. Within `tracedIn`, hours with traces are looked up; elsewhere a day with
 * traces stands for its hours. A separate statement: joined with the days, Postgres would compute all hours for each row.
 */
async function hoursOf(
  db: Database,
  source: string,
  {
    workspaceId,
    groupBy,
    tracedIn,
  }: { workspaceId: string | null; groupBy: GroupBy | null; tracedIn: Interval | undefined },
): Promise<ReadonlyMap<string, Parts>> {
  const traced =
    tracedIn === undefined
      ? sql`usage.time_of(k.traced)`
      : sql`(
          select coalesce(range_agg(v.traced), '{}') from usage.coverage v
          where v.scope_id = k.hour_scope_id and v.period_start < ${new Date(tracedIn.end)} and v.period_end > ${new Date(tracedIn.start)}
        )`;
  const rows = await query<Hours>(db)`
    select x."workspaceEntityId", x."groupBy", ${setsOf(sql`x`, partsAsJson)} as parts
    from (
      select k.workspace_entity_id as "workspaceEntityId", k.group_by as "groupBy",
             k.shown * k.not_available as not_available, k.shown * k.failed as failed, k.missing,
             k.shown * k.unverified as unverified, k.shown * k.final as final,
             k.shown - k.not_available - k.failed - k.missing - k.unverified - k.final as provisional, k.loaded, ${traced} as traced,
             k.shown * coalesce(p.parts, '{}') as reconciled, '{}'::tstzmultirange as matched
      from usage.hour_cell k
      left join usage.hour_proof p on p.scope_id = k.hour_scope_id
      where k.slug = ${source} and (${workspaceId}::text is null or k.workspace_id = usage.shown_id(${workspaceId}))
        and (${groupBy}::text is null or k.group_by = ${groupBy})
      offset 0
    ) x
  `;
  return new Map(
    rows.map((row) => [
      `${row.workspaceEntityId} ${row.groupBy}`,
      partsOf((name) => toIntervals(row.parts[name] ?? [])),
    ]),
  );
}

function setsOf(row: RawBuilder<unknown>, shown: (set: RawBuilder<unknown>) => RawBuilder<unknown>) {
  return sql`json_build_object(${sql.join(
    SETS.map((name) => sql`${sql.lit(name)}, ${shown(sql`${row}.${sql.id(name)}`)}`),
  )})`;
}

function partsOf(intervals: (name: keyof Parts) => Interval[]): Parts {
  return Object.fromEntries(SETS.map((name) => [name, intervals(name)])) as Record<keyof Parts, Interval[]>;
}

function daysIn(text: string): Interval[] {
  return [...text.matchAll(/\[([^,]+),([^)]+)\)/g)].map(([, first = "", after = ""]) => ({
    start: Date.parse(first),
    end: Date.parse(after),
  }));
}
