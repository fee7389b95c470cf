import { sql } from "kysely";
import type { Days } from "../../domain/time/days.ts";
import type { DayAmount } from "../../domain/usage/forecast.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database } from "../db/database.ts";
import { COVERAGE_VERSION } from "./loaded.ts";

/** Traces of a workspace by day. */
export interface WorkspaceDays {
  readonly source: string;
  readonly id: string;
  readonly name: string | null;
  /** Each day of the range that is expected, in order. */
  readonly days: readonly DayAmount[];
}

/** Equal as long as nothing of any source is loaded, withdrawn, failed or forgotten, and the day (UTC) is the same. */
export async function usageVersion(db: Database): Promise<string> {
  const { rows } = await sql<{ version: string }>`
    select concat_ws(' ', current_database(), (now() at time zone 'UTC')::date, ${COVERAGE_VERSION}) as version
  `.execute(db);
  return rows[0]?.version ?? "";
}

/** All workspaces in a range of days that are over. */
export async function workspaceDays(db: Database, { from, to }: Days): Promise<WorkspaceDays[]> {
  const { rows } = await sql<WorkspaceDays>`
    with used as materialized (
      select source_id, workspace_id, jsonb_object_agg(usage_date, traces) as by_day from reporting.fct_usage_workspace_daily
      where usage_date >= ${from}::date and usage_date < ${to}::date
      group by 1, 2
    ),
    cell as materialized (
      select slug as source, workspace_id as id, workspace_name as name, loaded, final,
             expected * datemultirange(daterange(${from}::date, ${to}::date)) as expected
      from usage.trace_cell where group_by = 'workspace'
    )
    select c.source, c.id, c.name, d.days
    from cell c
    left join used u on u.source_id = c.source and u.workspace_id = c.id
    cross join lateral (
      select json_agg(json_build_object(
               'day', day::text, 'amount', case when c.loaded @> day then coalesce((u.by_day ->> day::text)::bigint, 0) end,
               'isFinal', c.final @> day
             ) order by day) as days
      from usage.days_of(c.expected) day
    ) d
    where d.days is not null
    order by c.source, c.id collate "C"
  `.execute(db);
  return rows;
}

/** Of one dimension the id that has most more, or most less, on a day than on other days of its workspace. */
export interface DayPart {
  readonly by: Exclude<GroupBy, "workspace">;
  /** As the views show it. */
  readonly id: string;
  /** Of a project; of nothing else, since a user's name is an address. */
  readonly name: string | null;
  /** Its traces on the day, less what is expected of it. */
  readonly more: number;
}

interface DayAsked {
  readonly source: string;
  readonly workspaceId: string;
  readonly day: string;
  readonly others: readonly string[];
  /** What is expected of a part, of all its traces on the other days. */
  readonly factor: number;
  /** 1: the most more; -1: the most less. */
  readonly sign: number;
}

/** Of each dimension, unless it is not loaded on one of the days. */
export async function partsOfDay(
  db: Database,
  { source, workspaceId, day, others, factor, sign }: DayAsked,
): Promise<DayPart[]> {
  const listed = (by: DayPart["by"], id: string, name = sql`null`) => sql`
    select ${by} as by, ${sql.ref(id)} as id, ${name} as name,
           (coalesce(sum(traces) filter (where usage_date = ${day}::date), 0)
             - ${factor}::float8 * coalesce(sum(traces) filter (where usage_date <> ${day}::date), 0))::float8 as more
    from ${sql.table(`reporting.fct_usage_${by}_daily`)}
    where source_id = ${source} and workspace_id = ${workspaceId} and usage_date = any(${[day, ...others]}::date[])
    group by 2`;
  const { rows } = await sql<DayPart>`
    with part as materialized (
      ${listed("project", "project_id", sql`max(project_name)`)}
      union all ${listed("user", "user_id")}
      union all ${listed("api_key", "api_key_short_key")}
    )
    select distinct on (by) by, id, name, more
    from part p
    where id <> '(none)' and not exists (select from part u where u.by = p.by and u.id is null)
    order by by, more * ${sign}::integer desc, id collate "C"
  `.execute(db);
  return rows;
}
