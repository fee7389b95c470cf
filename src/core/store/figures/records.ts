import { type RawBuilder, sql } from "kysely";
import { type Days, daysBetween, joined, monthsAndDays } from "../../domain/time/days.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { isIfGiven } from "../db/expressions.ts";
import { type Counted, seriesTermsOf } from "./counted.ts";

export interface UsageCells {
  readonly sourceId: number;
  readonly source: string;
  readonly by: GroupBy;
  /** Entity id of one workspace. Null: all workspaces of the source. */
  readonly workspaceId: number | null;
  readonly counted?: Counted;
}

export interface UsageOf extends UsageCells {
  /** True: looks for hours that replace days, which takes a while. */
  readonly byHours: boolean;
}

export type Per = "hour" | "day" | "month";

export interface UsageRange extends Days {
  readonly per: Per;
}

export function cellsOf({ sourceId, by, workspaceId, counted = "traces" }: UsageCells): RawBuilder<unknown> {
  const { kind, tier } = seriesTermsOf(counted);
  return sql`cell as materialized (
    select d.scope_id as day_scope_id, h.scope_id as hour_scope_id, d.workspace_id
    from usage.scope d
    left join usage.scope h
      on h.source_id = d.source_id and h.kind = d.kind and h.trace_tier = d.trace_tier and h.group_by = d.group_by
     and h.workspace_id = d.workspace_id and h.stride = 'hour'
    where d.kind = ${kind} and d.trace_tier = ${tier} and d.source_id = ${sourceId} and d.group_by = ${by} and d.stride = 'day'
      and ${isIfGiven("d.workspace_id", workspaceId)}
  )`;
}

/**
 * SQL that selects `key` (entity of the id), `bucket` and `traces`. Whole months come from month totals. `keys` restricts to
 * some ids where that saves reading.
 */
export function recordsIn(of: UsageOf, range: UsageRange, keys?: readonly number[]): RawBuilder<unknown> {
  const inMonth = (column: RawBuilder<unknown>) =>
    range.per === "month" ? sql`usage.month_of(${column})` : column;
  const parts = tablesOf([range], range.per).map(
    ({ table, scope, column, from, to }) => sql`
      select ${keyOf(of, sql`s.entity_id`)} as key, ${table === "dated_record" ? inMonth(column) : column} as bucket, r.traces
      from cell c join usage.series s on s.scope_id = ${scope} join ${sql.table(`usage.${table}`)} r using (series_id)
      where ${column} >= ${from} and ${column} < ${to} and ${isCounted(of)}
        and ${keys === undefined ? sql`true` : sql`${keyOf(of, sql`s.entity_id`)} = any (${keys}::integer[])`}`,
  );
  if (of.byHours && range.per !== "hour") {
    const { day, rows } = daysOfHours(of, range);
    parts.push(
      sql`select ${keyOf(of, sql`f.entity_id`)} as key, ${inMonth(day)} as bucket, f.traces ${rows}`,
    );
  }
  return sql.join(parts, sql` union all `);
}

/** A scope of deployments or sandboxes has a series for each measure. */
export function isCounted({ counted = "traces" }: UsageCells): RawBuilder<unknown> {
  const { measure } = seriesTermsOf(counted);
  return measure === "traces" ? sql`true` : sql`s.measure = ${measure}`;
}

const SEARCH = 20;

/**
 * SQL that selects `key`, `traces` and `before`, in rows to be added up. Each series has one row, whose records are read by
 * index ranges. Needs `cellsOf`.
 */
export function sumsIn(
  of: UsageOf,
  { range, before }: { range: UsageRange; before: Days },
): RawBuilder<unknown> {
  const sums = (table: Table, column: RawBuilder<unknown>, traces: RawBuilder<unknown>) =>
    sql`(sum(${traces}) filter (where ${column} >= ${startOf(table, range.from)}))::bigint as traces,
        (sum(${traces}) filter (where ${column} < ${startOf(table, before.to)}))::bigint as before`;
  const found = fewestOf([before, range], range.per).map(({ table, column, spans }, n) => {
    const [from, to] = [spans[0]?.from, spans.at(-1)?.to];
    const within = spans.map((one) => sql`${column} >= ${one.from} and ${column} < ${one.to}`);
    return {
      name: sql.ref(`x${n}`),
      rows: sql`(
        select ${sums(table, column, sql`r.traces`)} from ${sql.table(`usage.${table}`)} r
        where r.series_id = s.series_id and ${column} >= ${from} and ${column} < ${to}
          and ${within.length === 1 ? sql`true` : sql`(${sql.join(within, sql` or `)})`}
      )`,
    };
  });
  const added = (figure: "traces" | "before") =>
    sql.join(
      found.map(({ name }) => sql`coalesce(${name}.${sql.ref(figure)}, 0)`),
      sql` + `,
    );
  const series = sql`
    select ${keyOf(of, sql`s.entity_id`)} as key, ${added("traces")} as traces, ${added("before")} as before
    from cell c join usage.series s on s.scope_id = ${range.per === "hour" ? sql`c.hour_scope_id` : sql`c.day_scope_id`}
    ${sql.join(
      found.map(({ name, rows }) => sql`cross join lateral ${rows} ${name}`),
      sql` `,
    )}
    where ${isCounted(of)}`;
  if (!of.byHours || range.per === "hour") return series;
  const { day, rows } = daysOfHours(of, { from: before.from, to: range.to });
  const key = keyOf(of, sql`f.entity_id`);
  return sql`${series}
    union all
    select ${key} as key, ${sums("dated_record", day, sql`f.traces`)} ${rows} group by 1`;
}

/** Month totals are used only if they take less time than all days. */
function fewestOf(ranges: readonly Days[], per: Per): (Omit<Part, "from" | "to"> & { spans: Part[] })[] {
  const daily = tablesOf(ranges, per === "month" ? "day" : per);
  const mixed = tablesOf(ranges, per);
  const months = mixed.filter(({ table }) => table === "monthly_total");
  const days = mixed.filter(({ table }) => table !== "monthly_total");
  const spared = months.reduce((sum, { days }) => sum + daysBetween(days), 0);
  const isShorter = months.length > 0 && spared > SEARCH * days.length;
  const alone = (isShorter ? days : daily).map((one) => ({ ...one, spans: [one] }));
  return isShorter ? [...alone, { ...(months[0] as Part), spans: months }] : alone;
}

type Table = "dated_record" | "monthly_total" | "hourly_record";

interface Part {
  readonly table: Table;
  readonly scope: RawBuilder<unknown>;
  readonly column: RawBuilder<unknown>;
  readonly days: Days;
  readonly from: RawBuilder<unknown>;
  readonly to: RawBuilder<unknown>;
}

function tablesOf(ranges: readonly Days[], per: Per): Part[] {
  const part = (table: Table, { from, to }: Days): Part => ({
    days: { from, to },
    table,
    scope: table === "hourly_record" ? sql`c.hour_scope_id` : sql`c.day_scope_id`,
    column: table === "monthly_total" ? sql`r.month_start` : sql`r.bucket_start`,
    from: startOf(table, from),
    to: startOf(table, to),
  });
  if (per !== "month")
    return joined(ranges).map((one) => part(per === "hour" ? "hourly_record" : "dated_record", one));
  const { months, days } = monthsAndDays(ranges);
  return [
    ...days.map((one) => part("dated_record", one)),
    ...months.map((one) => part("monthly_total", one)),
  ];
}

function startOf(table: Table, day: string): RawBuilder<unknown> {
  return table === "hourly_record" ? midnight(day) : sql`${day}::date`;
}

/** Equals usage.month_of, which Postgres would call for each record. */
export function monthOf(day: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`date_trunc('month', ${day}::timestamp)::date`;
}

/** Days made of hours have no daily records. */
function daysOfHours(of: UsageCells, { from, to }: Days) {
  return {
    day: sql`f.usage_date`,
    rows: sql`from usage.figure_of_hours f join cell c using (day_scope_id)
      where f.slug = ${of.source} and f.group_by = ${of.by} and f.usage_date >= ${from}::date and f.usage_date < ${to}::date`,
  };
}

/** A workspace's key is that of the scope, because a response may spell it in two ways. */
function keyOf({ by }: UsageCells, entity: RawBuilder<unknown>): RawBuilder<unknown> {
  return by === "workspace" ? sql`c.workspace_id` : entity;
}

export function midnight(day: string): RawBuilder<unknown> {
  return sql`${`${day}T00:00:00Z`}::timestamptz`;
}

export function nameOf({ by }: UsageCells, masked: boolean): RawBuilder<unknown> {
  return by === "user" && masked
    ? sql`case when n.name is not null then 'user ' || usage.shown_id(e.external_id) end`
    : sql`n.name`;
}

export function contains(text: RawBuilder<unknown>, part: string): RawBuilder<unknown> {
  return sql`position(lower(${part}) in lower(${text})) > 0`;
}
