import { type RawBuilder, sql } from "kysely";
import type { DifferenceKind, DifferenceState } from "../../core/domain/proof/difference.ts";
import { inUnits } from "../../core/domain/usage/amount.ts";
import type { Measure, Meter } from "../../core/domain/usage/meter.ts";
import type { GroupBy } from "../../core/domain/usage/record.ts";
import { labelOf } from "../../core/store/catalog/entity-names.ts";
import { isOfMeter, lengthOf, METER_OF_SCOPE } from "../../core/store/catalog/scopes.ts";
import { isIfGiven, iso } from "../../core/store/db/expressions.ts";
import { type Database, query } from "../../core/store/db/query.ts";

/** Source of the other number: CSV export, total of the platform, or later response. */
export const SAYERS = ["export", "total", "restatement"] as const;
type Sayer = (typeof SAYERS)[number];

export interface ListedDifference {
  readonly says: Sayer;
  /** Time of discovery: ISO instant with microseconds, UTC. */
  readonly at: string;
  readonly groupBy: GroupBy;
  readonly meter: Meter;
  readonly measure: Measure;
  readonly stride: string;
  readonly from: string;
  readonly to: string;
  readonly workspaceId: string;
  readonly workspaceName: string | null;
  /** `(none)` for a missing id, `(all)` for a total of all ids. */
  readonly dimensionId: string;
  readonly dimensionName: string | null;
  readonly kind: DifferenceKind;
  readonly state: DifferenceState;
  readonly storedAmount: number | null;
  /** Number of the export or total. For a restatement: the old number. Null: no number. */
  readonly otherAmount: number | null;
  /** A different name or end of a bucket. */
  readonly exportSays: string | null;
  readonly cursor: DifferenceCursor;
}

type DifferenceCursor = readonly [says: Sayer, at: string, ...key: (string | number)[]];

export interface WantedDifferences {
  readonly source: string;
  readonly says?: Sayer | undefined;
  readonly onlyLeft: boolean;
  /** UTC days of the figures (ISO), end exclusive. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly meter?: Meter | undefined;
  readonly groupBy?: GroupBy | undefined;
  readonly workspaceId?: string | undefined;
  readonly before?: DifferenceCursor | undefined;
  readonly most: number;
  readonly masked: boolean;
}

export async function listDifferences(db: Database, wanted: WantedDifferences): Promise<ListedDifference[]> {
  const { most, masked } = wanted;
  const parts = SAYERS.filter((says) => wanted.says === undefined || wanted.says === says).map(
    (says) => sql`(${PARTS[says](wanted)} limit ${most})`,
  );
  const rows = await query<ListedDifference>(db)`
    select d.says, ${iso("d.at", "US")} as at, c.group_by as "groupBy", ${METER_OF_SCOPE} as meter, d.measure, d.stride,
           ${iso("d.starts")} as "from", ${iso("d.ends")} as "to",
           w.dimension_id as "workspaceId", w.dimension_name as "workspaceName",
           case when d.kind = 'grouping_total' then '(all)' else usage.shown_id(d.external_id) end as "dimensionId",
           ${labelOf(masked)} as "dimensionName",
           d.kind, d.state, d.stored as "storedAmount", d.other as "otherAmount",
           -- The export's name of a user is an e-mail address. Not everybody who reads differences may see it.
           case when c.group_by <> 'user' or d.kind <> 'name_differs' then d.export_says end as "exportSays", d.cursor
    from (${sql.join(parts, sql` union all `)}) d
      (says, at, scope_id, external_id, measure, stride, starts, ends, kind, state, stored, other, export_says, nth, cursor)
    join usage.scope c using (scope_id)
    join usage.labelled_entity w on w.entity_id = c.workspace_id
    left join usage.entity i
      on i.source_id = c.source_id and i.external_id = d.external_id
     and i.dimension = (
       select m.dimension from usage.meter_dimension m
       where m.kind = c.kind and m.trace_tier = c.trace_tier and m.group_by = c.group_by
     )
    left join usage.labelled_entity e on e.entity_id = i.entity_id
    where ${METER_OF_SCOPE} is not null
    order by d.at desc, array_position(${SAYERS}::text[], d.says), d.nth
    limit ${most}
  `;
  return rows.map(({ storedAmount, otherAmount, ...row }) => ({
    ...row,
    storedAmount: inUnits(row.measure, storedAmount),
    otherAmount: inUnits(row.measure, otherAmount),
  }));
}

const PARTS: Readonly<Record<Sayer, (wanted: WantedDifferences) => RawBuilder<unknown>>> = {
  export: (wanted) => differencesBy("export", sql`d.compared_with = 'export'`, wanted),
  total: (wanted) => differencesBy("total", sql`d.compared_with <> 'export'`, wanted),
  restatement: (wanted) => sql`
    select 'restatement', t.restated_at, c.scope_id, e.external_id, s.measure, c.stride, t.bucket_start,
           t.bucket_start + ${lengthOf(sql`c.stride`)},
           'restated', 'restated', t.new_traces, t.old_traces, null,
           row_number() over (order by t.restated_at desc, t.restatement_id desc),
           json_build_array('restatement', ${iso("t.restated_at", "US")}, t.restatement_id)
    from usage.restatement t
    join usage.series s using (series_id) join usage.scope c using (scope_id) join usage.entity e on e.entity_id = s.entity_id
    where ${ofScope(wanted)} and ${during(wanted, sql`t.bucket_start`, sql`t.bucket_start`)}
      and ${after(wanted, "restatement", sql`t.restated_at`, sql`(t.restated_at, t.restatement_id)`, ["timestamptz", "bigint"])}
    order by t.restated_at desc, t.restatement_id desc`,
};

function differencesBy(
  says: Sayer,
  which: RawBuilder<unknown>,
  wanted: WantedDifferences,
): RawBuilder<unknown> {
  const key = sql`d.scope_id, d.compared_with, d.period_start, d.period_end, d.external_id, d.measure`;
  const types = ["timestamptz", "integer", "text", "timestamptz", "timestamptz", "text", "text"];
  const newest = sql`d.found_at desc, d.scope_id desc, d.compared_with desc, d.period_start desc, d.period_end desc, d.external_id desc, d.measure desc`;
  const states = wanted.onlyLeft
    ? sql`d.state in ('open', 'platform_disagrees')`
    : sql`d.state <> 'unattributed'`;
  return sql`
    select ${sql.lit(says)} as says, d.found_at as at, d.scope_id, d.external_id, d.measure,
           case when d.compared_with = 'export' then c.stride when d.compared_with = 'provider_total' then 'calendar month'
                else case extract(epoch from d.period_end - d.period_start)::bigint / 86400
                  when 1 then 'day' when 7 then 'week' when 30 then 'month' else 'year' end end as stride,
           d.period_start as starts, d.period_end as ends, d.kind, d.state, d.stored_traces as stored, d.other_traces as other,
           d.export_says, row_number() over (order by ${newest}) as nth,
           json_build_array(${sql.lit(says)}, ${iso("d.found_at", "US")}, d.scope_id, d.compared_with,
             ${iso("d.period_start", "US")}, ${iso("d.period_end", "US")}, d.external_id, d.measure) as cursor
    from usage.difference d join usage.scope c using (scope_id)
    where ${which} and ${states} and ${ofScope(wanted)}
      and ${during(wanted, sql`d.period_start`, sql`d.period_end - interval '1 microsecond'`)}
      and ${after(wanted, says, sql`d.found_at`, sql`(d.found_at, ${key})`, types)}
    order by ${newest}`;
}

function ofScope({ source, meter, groupBy, workspaceId }: WantedDifferences): RawBuilder<boolean> {
  return sql<boolean>`c.source_id = (select source_id from usage.source where slug = ${source})
    and ${meter === undefined ? sql`true` : sql`${isOfMeter("c", meter)}`}
    and ${isIfGiven("c.group_by", groupBy)}
    and ${
      workspaceId === undefined
        ? sql`true`
        : sql`c.workspace_id in (select entity_id from usage.entity where dimension = 'workspace' and external_id = ${workspaceId})`
    }`;
}

function during(
  { from, to }: WantedDifferences,
  starts: RawBuilder<unknown>,
  last: RawBuilder<unknown>,
): RawBuilder<boolean> {
  return sql<boolean>`${from === undefined ? sql`true` : sql`${last} >= ${from}::date::timestamp at time zone 'UTC'`}
    and ${to === undefined ? sql`true` : sql`${starts} < ${to}::date::timestamp at time zone 'UTC'`}`;
}

function after(
  { before }: WantedDifferences,
  says: Sayer,
  at: RawBuilder<unknown>,
  key: RawBuilder<unknown>,
  types: readonly string[],
): RawBuilder<boolean> {
  if (before === undefined) return sql<boolean>`true`;
  const [cursorSays, instant, ...rest] = before;
  if (cursorSays === says) {
    const values = types.map((type, i) => sql`${[instant, ...rest][i] ?? null}::${sql.raw(type)}`);
    return sql<boolean>`${key} < (${sql.join(values)})`;
  }
  const follows = SAYERS.indexOf(says) > SAYERS.indexOf(cursorSays);
  return sql<boolean>`${at} ${sql.raw(follows ? "<=" : "<")} ${instant}::timestamptz`;
}

/** Open differences by source. Lines of one difference in several dimensions count once. */
export async function countOpenDifferences(db: Database): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ source: string; count: number }>(db)`
    select s.slug as source,
           count(distinct (d.compared_with, case d.compared_with when 'export' then c.stride end, d.period_start, d.period_end,
                           c.workspace_id, c.kind, c.trace_tier, d.measure))::integer as count
    from usage.difference d join usage.scope c using (scope_id) join usage.source s using (source_id)
    where d.state in ('open', 'platform_disagrees') group by s.slug
  `;
  return new Map(rows.map(({ source, count }) => [source, count]));
}
