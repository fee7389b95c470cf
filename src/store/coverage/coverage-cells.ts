import { type RawBuilder, sql } from "kysely";
import { type CellTime, cellTime, daysLeft, withHours } from "../../domain/coverage/cell-time.ts";
import type { Expectation, GridStride } from "../../domain/coverage/coverage-grid.ts";
import { DAY_MS, floorToGrid } from "../../domain/time/stride.ts";
import { GROUPINGS, type GroupBy } from "../../domain/usage/record.ts";
import { isConfigured } from "../catalog/workspaces.ts";
import type { Database } from "../db/database.ts";
import { loadedWithin, storedTime } from "./stored-time.ts";

/** One dimension and workspace of a source. */
interface Cell {
  /** The platform's id. */
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  /** Whether a sync loads it: else the listing lacks it, or the configuration does not name it any more. */
  readonly access: "read" | "unlisted" | "not_configured";
  readonly groupBy: GroupBy;
  /** Null until the workspace is planned for the first time: then nothing of it is loaded. */
  readonly dayScopeId: number | null;
  readonly hourScopeId: number | null;
}

/** The same with its time in one stride. */
export type CoverageCell = Cell & CellTime;

export interface SourceCoverage extends Expectation {
  readonly source: string;
  /** By workspace name, id and dimension. */
  readonly cells: readonly CoverageCell[];
}

/** How all time of a source is loaded and proved, or that of a workspace or dimension. Undefined for an unknown source. */
export async function sourceCoverage(
  db: Database,
  wanted: { source: string; stride: GridStride } & Partial<Pick<Cell, "workspaceId" | "groupBy">>,
): Promise<SourceCoverage | undefined> {
  const { rows } = await sql<Expectation & { source: string; cells: readonly Cell[] }>`
    select s.slug as source, ${wanted.stride} as stride, s.hourly_hours as "hourlyHours",
           date_part('epoch', s.data_start) * 1000 as "dataStart", date_part('epoch', now()) * 1000 as now,
           exists (
             select from usage.source_fact f where f.source_id = s.source_id and f.fact = ${`no_${wanted.stride}`}
           ) as "isUnavailable",
           (select coalesce(json_agg(x), '[]') from (${cellsOf(wanted)}) x) as cells
    from usage.source s where s.slug = ${wanted.source}
  `.execute(db);
  const [found] = rows;
  if (found === undefined) return undefined;
  return { ...found, cells: await (wanted.stride === "day" ? inDays : inHours)(db, found.cells, found) };
}

/** SELECT of every workspace that has a scope, and every other one that a sync would plan, in each dimension. */
function cellsOf({
  source,
  workspaceId,
  groupBy,
}: { source: string } & Partial<Pick<Cell, "workspaceId" | "groupBy">>): RawBuilder<Cell> {
  return sql<Cell>`
    select e.external_id as "workspaceId", n.name as "workspaceName",
           case when not ${isConfigured} then 'not_configured'
                when w.unlisted_since is not null and not w.is_deleted then 'unlisted' else 'read' end as access,
           g as "groupBy", c.day_id as "dayScopeId", c.hour_id as "hourScopeId"
    from usage.source s
    join usage.entity e on e.source_id = s.source_id and e.dimension = 'workspace'
    join usage.workspace w using (entity_id)
    left join lateral (
      select name from usage.entity_name n where n.entity_id = e.entity_id
      order by n.last_bucket desc, n.fetch_number desc, n.name limit 1
    ) n on true
    cross join unnest(${groupBy === undefined ? [...GROUPINGS] : [groupBy]}::text[]) g
    -- Read once for all workspaces.
    left join (
      select source_id, workspace_id, group_by, max(scope_id) filter (where stride = 'day') as day_id,
             max(scope_id) filter (where stride = 'hour') as hour_id
      from usage.scope group by 1, 2, 3
    ) c on c.source_id = s.source_id and c.workspace_id = e.entity_id and c.group_by = g
    where s.slug = ${source} and (${workspaceId ?? null}::text is null or e.external_id = ${workspaceId ?? null})
      and (c.day_id is not null or ${isConfigured} and (w.unlisted_since is null or w.is_deleted))
    order by 2, 1, usage.dimension_position(g)`;
}

async function inDays(db: Database, cells: readonly Cell[], given: Expectation): Promise<CoverageCell[]> {
  const stored = await storedTime(db, known(cells.map(({ dayScopeId }) => dayScopeId)));
  const expected = { start: given.dataStart, end: floorToGrid(given.now, DAY_MS) + DAY_MS };
  const days = cells.map((cell) => {
    const time = cellTime(stored(cell.dayScopeId));
    return { cell, time, left: daysLeft(time, expected) };
  });
  // Hours are read only where days are open: mostly there are none.
  const hours = await loadedWithin(
    db,
    days.flatMap(({ cell: { dayScopeId, hourScopeId }, left }) =>
      dayScopeId === null || hourScopeId === null
        ? []
        : left.map((part) => ({ ...part, scopeId: hourScopeId })),
    ),
  );
  return days.map(({ cell, time, left }) => ({
    ...cell,
    ...withHours(time, { ...hours(cell.hourScopeId), left }),
  }));
}

async function inHours(db: Database, cells: readonly Cell[]): Promise<CoverageCell[]> {
  const stored = await storedTime(db, known(cells.map(({ hourScopeId }) => hourScopeId)));
  return cells.map((cell) => ({ ...cell, ...cellTime(stored(cell.hourScopeId)) }));
}

function known(ids: readonly (number | null)[]): number[] {
  return ids.filter((id) => id !== null);
}
