import { sql } from "kysely";
import pg from "pg";
import { type Database, query } from "./query.ts";

export interface ViewColumn {
  readonly name: string;
  /** Postgres's name without modifier: `bigint`, `numeric`, `timestamp with time zone`. */
  readonly type: string;
  /** Digits in all and after the point. Null for types other than numeric, and for a numeric without bounds. */
  readonly precision: number | null;
  readonly scale: number | null;
  readonly comment: string;
}

export interface View {
  readonly schema: string;
  readonly name: string;
  readonly comment: string;
  readonly isAsOf: boolean;
  /** True if the login or role may read the view: Postgres's catalogue lists all views. */
  readonly isReadable: boolean;
  readonly columns: readonly ViewColumn[];
}

export async function listViews(db: Database): Promise<View[]> {
  return (await listReporting(db)).filter(({ isAsOf }) => !isAsOf);
}

/**
 * All views and functions of the schemas reporting and reporting_detail by name, which is unique. Empty without those
 * schemas. `reader`: the role to check; default: this login.
 */
export async function listReporting(db: Database, reader?: string): Promise<View[]> {
  const role = reader === undefined ? sql`current_user` : sql`${reader}::name`;
  return query<View>(db)`
    with reporting as (
      select oid, nspname, has_schema_privilege(${role}, oid, 'usage') as may_create from pg_namespace
      where nspname in ('reporting', 'reporting_detail')
    ), part as (
      select s.nspname as schema, c.relname as name, false as is_as_of, has_table_privilege(${role}, c.oid, 'select') and s.may_create as is_readable,
             obj_description(c.oid, 'pg_class') as comment, a.attnum as position, a.attname as column_name,
             a.atttypid as type, a.atttypmod as modifier, col_description(c.oid, a.attnum) as column_comment
      from reporting s
      join pg_class c on c.relnamespace = s.oid and c.relkind = 'v'
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
      union all
      select s.nspname, p.proname, true, has_function_privilege(${role}, p.oid, 'execute') and s.may_create, obj_description(p.oid, 'pg_proc'),
             at, p.proargnames[at], p.proallargtypes[at], -1, null
      from reporting s
      join pg_proc p on p.pronamespace = s.oid and p.proretset and p.pronargs - p.pronargdefaults = 1 and p.proargtypes[0] = 'timestamptz'::regtype
      cross join lateral generate_subscripts(p.proargmodes, 1) at
      where p.proargmodes[at] = 't'
    )
    select schema, name, is_as_of as "isAsOf", is_readable as "isReadable", coalesce(comment, '') as comment,
           json_agg(json_build_object(
             'name', column_name, 'type', format_type(type, null),
             'precision', case when type = 'numeric'::regtype and modifier >= 4 then ((modifier - 4) >> 16) & 65535 end,
             'scale', case when type = 'numeric'::regtype and modifier >= 4 then (modifier - 4) & 2047 end,
             'comment', coalesce(column_comment, '')
           ) order by position) as columns
    from part
    group by schema, name, is_as_of, is_readable, comment
    order by name collate "C"
  `;
}

/** Reads from the view's comment which rows it has. Undefined for a customer's view. */
export function grainOf({ comment }: Pick<View, "comment">): string | undefined {
  return /Grain: (.*?)(?: \(key|[.;]( |$)|$)/.exec(comment)?.[1];
}

export function keyOf(view: View): readonly string[] {
  return /\(key: ([^)]*)\)/.exec(view.comment)?.[1]?.split(", ") ?? [];
}

/** A range of time filters by the first of these columns that the view has. */
const TIME_COLUMNS = [
  "usage_date",
  "usage_hour",
  "month_start",
  "period_start",
  "observed_on",
  "x_UsageDate",
  "x_BillingMonth",
];
/** Views whose period is a parameter, not the time of usage. */
const TIMELESS = ["backfill_status"];

export function timeColumnOf(view: View): ViewColumn | undefined {
  return TIMELESS.includes(view.name) ? undefined : firstOf(view, TIME_COLUMNS);
}

/** FOCUS calls a workspace a sub-account. */
export function workspaceColumnOf(view: View): ViewColumn | undefined {
  return firstOf(view, ["workspace_id", "SubAccountId"]);
}

function firstOf(view: View, names: readonly string[]): ViewColumn | undefined {
  return names
    .map((name) => view.columns.find((column) => column.name === name))
    .find((column) => column !== undefined);
}

export interface Selection {
  readonly view: View;
  readonly columns: readonly ViewColumn[];
  /** Half-open, epoch ms. Without `from` or `to` that end is open. */
  readonly range: { readonly from?: number; readonly to?: number };
  readonly where: readonly Condition[];
  /** Epoch ms, for a view as of an instant. */
  readonly asOf?: number;
}

export interface Condition {
  readonly column: ViewColumn;
  readonly values: readonly string[];
}

/** COPY takes no parameters, so each value is bound to a setting of the transaction, which the query reads. */
const settingOf = (at: number) => `usage_etl.value_${at}`;

export function bindings({ where }: Selection): { text: string; values: string[] } {
  const values = where.flatMap((one) => one.values);
  const calls = values.map((_, at) => `set_config('${settingOf(at)}', $${at + 1}, true)`);
  return { text: `SELECT ${calls.join(", ") || "1"}`, values };
}

export function queryOf(selection: Selection): string {
  const { view, columns, asOf } = selection;
  const time = timeColumnOf(view);
  const quoted = (names: Iterable<string>) => [...names].map((name) => pg.escapeIdentifier(name)).join(", ");
  const rows = `${view.schema}.${quoted([view.name])}${asOf === undefined ? "" : `(${instant(asOf)})`}`;
  const conditions = [...conditionsOfRange(selection), ...conditionsOfValues(selection)];
  const order = new Set([...(time === undefined ? [] : [time.name]), ...keyOf(view)]);
  return [
    `SELECT ${quoted(columns.map(({ name }) => name))} FROM ${rows}`,
    ...(conditions.length === 0 ? [] : [`WHERE ${conditions.join(" AND ")}`]),
    ...(order.size === 0 ? [] : [`ORDER BY ${quoted(order)}`]),
  ].join(" ");
}

const instant = (epochMs: number) => `'${new Date(epochMs).toISOString()}'::timestamptz`;

/** If an end of the range is inside a bucket, the range includes the whole bucket. */
function conditionsOfRange({ view, range: { from, to } }: Selection): string[] {
  const time = timeColumnOf(view);
  if (time === undefined) return [];
  const column = pg.escapeIdentifier(time.name);
  const start = (epochMs: number, unit: string) =>
    time.type === "date"
      ? `date_trunc('${unit}', ${instant(epochMs)}, 'UTC')::date`
      : `date_trunc('hour', ${instant(epochMs)}, 'UTC')`;
  const unit = time.name === "month_start" ? "month" : "day";
  const conditions: string[] = [];
  if (from !== undefined) conditions.push(`${column} >= ${start(from, unit)}`);
  // The last instant before the end is in the last wanted day.
  if (to !== undefined)
    conditions.push(
      time.type === "date" ? `${column} <= ${start(to - 1, "day")}` : `${column} < ${instant(to)}`,
    );
  return conditions;
}

/** Compares columns with the settings of `bindings`, which the planner reads when it estimates. */
function conditionsOfValues({ where }: Selection): string[] {
  let at = 0;
  return where.map(({ column, values }) => {
    const bound = values.map(() => `current_setting('${settingOf(at++)}')::${column.type}`);
    return `${pg.escapeIdentifier(column.name)} IN (${bound.join(", ")})`;
  });
}
