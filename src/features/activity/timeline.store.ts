import { type RawBuilder, sql } from "kysely";
import type { RestatementCount } from "../../core/domain/proof/restatement.ts";
import { iso } from "../../core/store/db/expressions.ts";
import { type Database, query, type Row } from "../../core/store/db/query.ts";
import { CLOSE_ACTION, CLOSE_NAME, CLOSED_BY } from "../../core/store/months/closes.ts";
import { restatementCounts } from "../../core/store/proof/restatement-counts.ts";
import { RUN_KINDS, type RunKind } from "../../core/store/work/runs.ts";

export const TIMELINE_KINDS = [
  ...RUN_KINDS,
  "restatements",
  "late_changes",
  "close",
  "prices",
  "action",
  "configuration",
  "platform_change",
] as const;
export type TimelineKind = (typeof TIMELINE_KINDS)[number];

type TimelineCursor = readonly [at: string, kind: TimelineKind, id: number];

interface Placed<Kind extends TimelineKind, Details> {
  readonly kind: Kind;
  /** ISO instant with microseconds, UTC. For grouped entries: start of the hour or day. */
  readonly at: string;
  /** Number of the run, close, action or change. For grouped entries: id of the source. For prices: 0. */
  readonly id: number;
  readonly source: string | null;
  readonly details: Details;
}

type Person = Row<"usage.operator_action", "actor" | "via">;

export type Moment =
  | Placed<RunKind, null>
  | Placed<"restatements", { readonly counts: readonly RestatementCount[] }>
  /** Changes of provisional figures by workspace that loads of that day found. */
  | Placed<"late_changes", { readonly changes: number; readonly tracesMoved: number }>
  | Placed<"close", { readonly month: string; readonly accepted: number; readonly by: Person | null }>
  | Placed<"prices", { readonly prices: number; readonly skus: readonly string[] }>
  | Placed<"action", Person & Row<"usage.operator_action", "action" | "detail" | "outcome">>
  | Placed<"configuration", Row<"usage.configuration_change", "setting" | "oldValue" | "newValue">>
  | Placed<
      "platform_change",
      Row<"usage.logged_change", "operation" | "isCertain" | "userId"> & {
        readonly workspace: string | null;
        /** The user's address, if one is stored. Masked readers may not see it. */
        readonly userName: string | null;
      }
    >;

interface Wanted {
  readonly source?: string | undefined;
  readonly kinds: readonly TimelineKind[];
  readonly before?: TimelineCursor | undefined;
  readonly most: number;
}

/** Later than every entry, but within the years of `timestamptz`. */
const NEWEST: TimelineCursor = ["9999-01-01T00:00:00.000000Z", "configuration", 0];

/** Reads the newest entries of each kind from an index or a small table. */
export async function listMoments(db: Database, wanted: Wanted): Promise<Moment[]> {
  const { kinds, most } = wanted;
  const runKinds = RUN_KINDS.filter((kind) => kinds.includes(kind));
  const others = (Object.keys(PARTS) as (keyof typeof PARTS)[]).filter((kind) => kinds.includes(kind));
  const parts = [
    ...(runKinds.length === 0 ? [] : [runs(wanted, runKinds)]),
    ...others.map((kind) => PARTS[kind](wanted)),
  ];
  return query<Moment>(db)`
    select m.kind, ${iso("m.at", "US")} as at, m.id::bigint, m.source, m.details
    from (${sql.join(
      parts.map((part) => sql`(select * from (${part}) p (kind, at, id, source, details) limit ${most})`),
      sql` union all `,
    )}) m
    order by m.at desc, array_position(${TIMELINE_KINDS}::text[], m.kind), m.id desc
    limit ${most}
  `;
}

/** Only the first comparison can use an index. */
function after(
  { before = NEWEST }: Wanted,
  kind: RawBuilder<unknown>,
  at: RawBuilder<unknown>,
  id: RawBuilder<unknown>,
) {
  const [cursorAt, cursorKind, cursorId] = before;
  const place = sql`array_position(${TIMELINE_KINDS}::text[], ${kind})`;
  const cursorPlace = TIMELINE_KINDS.indexOf(cursorKind) + 1;
  return sql<boolean>`${at} <= ${cursorAt}::timestamptz and (
    ${at} < ${cursorAt}::timestamptz or ${place} > ${cursorPlace} or ${place} = ${cursorPlace} and ${id} < ${cursorId}::bigint
  )`;
}

const ofSource = ({ source }: Wanted) =>
  sql<boolean>`(${source ?? null}::text is null or s.slug = ${source ?? null})`;

function runs(wanted: Wanted, kinds: readonly RunKind[]): RawBuilder<unknown> {
  return sql`
    select r.kind, r.started_at as at, r.run_id as id, s.slug, null::json
    from usage.source s cross join unnest(${kinds}::text[]) k
    cross join lateral (
      select r.kind, r.started_at, r.run_id from usage.run r
      where r.source_id = s.source_id and r.kind = k and ${after(wanted, sql`r.kind`, sql`r.started_at`, sql`r.run_id`)}
      order by r.started_at desc, r.run_id desc limit ${wanted.most}
    ) r
    where ${ofSource(wanted)}
    order by r.started_at desc, array_position(${TIMELINE_KINDS}::text[], r.kind), r.run_id desc`;
}

const PARTS = {
  restatements: (wanted: Wanted) => {
    const [cursorAt] = wanted.before ?? NEWEST;
    const ofThese =
      wanted.source === undefined
        ? sql`true`
        : sql`exists (
            select from usage.series x join usage.scope c using (scope_id) join usage.source s using (source_id)
            where x.series_id = t.series_id and ${ofSource(wanted)}
          )`;
    const newest = (before: RawBuilder<unknown>) => sql`(
      select date_trunc('hour', t.restated_at, 'UTC') from usage.restatement t
      where t.restated_at < ${before} and ${ofThese} order by t.restated_at desc limit 1
    )`;
    // Steps from hour to hour by the index. A query over all restatements would slow down as they grow.
    return sql`
      with recursive hour as (
        select ${newest(sql`date_trunc('hour', ${cursorAt}::timestamptz, 'UTC') + interval '1 hour'`)} as at
        union all
        select ${newest(sql`hour.at`)} from hour where hour.at is not null
      ), near as (select at from hour where at is not null limit ${wanted.most + 1})
      select 'restatements', near.at, s.source_id, s.slug, json_build_object('counts', n.counts)
      from near
      cross join usage.source s
      cross join lateral (
        select ${restatementCounts(sql`c.source_id = s.source_id
          and t.restated_at >= near.at and t.restated_at < near.at + interval '1 hour'`)} as counts
      ) n
      where json_array_length(n.counts) > 0
        and ${ofSource(wanted)} and ${after(wanted, sql`'restatements'`, sql`near.at`, sql`s.source_id`)}
      order by near.at desc, s.source_id desc`;
  },
  late_changes: (wanted: Wanted) => sql`
    select 'late_changes', l.at, l.source_id, l.slug, json_build_object('changes', l.changes, 'tracesMoved', l.moved)
    from (
      select l.observed_on::timestamp at time zone 'UTC' as at, l.source_id, s.slug, sum(l.changes) as changes,
             sum(l.traces_moved) as moved
      from usage.late_change l join usage.source s using (source_id)
      where ${ofSource(wanted)} and not l.was_final and l.trace_tier = 'all' and l.group_by = 'workspace' and l.stride = 'day'
        and l.observed_on <= (${(wanted.before ?? NEWEST)[0]}::timestamptz at time zone 'UTC')::date
      group by l.observed_on, l.source_id, s.slug
    ) l
    where ${after(wanted, sql`'late_changes'`, sql`l.at`, sql`l.source_id`)}
    order by l.at desc, l.source_id desc`,
  close: (wanted: Wanted) => sql`
    select 'close', m.closed_at, m.close_id, s.slug,
           json_build_object('month', ${CLOSE_NAME}, 'accepted', m.accepted_disagreements,
             'by', case when a.via is not null then json_build_object('actor', a.actor, 'via', a.via) end)
    from usage.close m join usage.source s using (source_id)
    left join ${CLOSED_BY} on true
    where ${ofSource(wanted)} and ${after(wanted, sql`'close'`, sql`m.closed_at`, sql`m.close_id`)}
    order by m.closed_at desc, m.close_id desc`,
  prices: (wanted: Wanted) => sql`
    select 'prices', p.at, 0, null::text, json_build_object('prices', p.prices, 'skus', p.skus)
    from (
      select p.imported_at as at, count(*) as prices, array_agg(distinct k.name) as skus
      from usage.price p join usage.sku k using (sku_id) left join usage.source s using (source_id)
      where p.source_id is null or ${ofSource(wanted)}
      group by p.imported_at
    ) p
    where ${after(wanted, sql`'prices'`, sql`p.at`, sql`0`)}
    order by p.at desc`,
  // A close has its own entry.
  action: (wanted: Wanted) => sql`
    select 'action', a.at, a.action_id, s.slug, json_build_object(
             'action', a.action, 'detail', a.detail, 'actor', a.actor, 'via', a.via, 'outcome', a.outcome)
    from usage.operator_action a left join usage.source s using (source_id)
    where ${
      wanted.source === undefined
        ? sql`true`
        : sql`a.source_id = (select source_id from usage.source where slug = ${wanted.source})`
    } and not (a.action = ${CLOSE_ACTION} and a.outcome = 'done')
      and ${after(wanted, sql`'action'`, sql`a.at`, sql`a.action_id`)}
    order by a.at desc, a.action_id desc`,
  configuration: (wanted: Wanted) => sql`
    select 'configuration', c.changed_at, c.change_id, s.slug,
           json_build_object('setting', c.setting, 'oldValue', c.old_value, 'newValue', c.new_value)
    from usage.configuration_change c join usage.source s using (source_id)
    where ${ofSource(wanted)} and ${after(wanted, sql`'configuration'`, sql`c.changed_at`, sql`c.change_id`)}
    order by c.changed_at desc, c.change_id desc`,
  platform_change: (wanted: Wanted) => sql`
    select 'platform_change', c.changed_at, c.change_id, s.slug, json_build_object(
             'operation', c.operation, 'isCertain', c.is_certain, 'workspace', coalesce(w.dimension_name, c.workspace),
             'userId', c.user_id, 'userName', u.dimension_name)
    from usage.logged_change c join usage.source s using (source_id)
    left join usage.labelled_entity w
      on w.source_id = c.source_id and w.dimension = 'workspace' and w.dimension_id = c.workspace
    left join usage.labelled_entity u on u.source_id = c.source_id and u.dimension = 'user' and u.dimension_id = c.user_id
    where ${ofSource(wanted)} and ${after(wanted, sql`'platform_change'`, sql`c.changed_at`, sql`c.change_id`)}
    order by c.changed_at desc, c.change_id desc`,
};
