import pg from "pg";
import { keyOf, timeColumnOf, type View, type ViewColumn } from "./views.ts";

/** Which rows and columns of a view. All conditions hold. */
export interface Selection {
  readonly view: View;
  /** In the order wanted. */
  readonly columns: readonly ViewColumn[];
  /** Half-open, epoch milliseconds. Without `from` or `to` that end is open. */
  readonly range: { readonly from?: number; readonly to?: number };
  readonly where: readonly Condition[];
  /** Epoch milliseconds; of a view that is as of an instant. */
  readonly asOf?: number;
}

/** The column has one of the values, as texts that Postgres casts. */
export interface Condition {
  readonly column: ViewColumn;
  readonly values: readonly string[];
}

/** COPY takes no parameters, so each value is bound to a setting of the transaction, which the query reads. */
const settingOf = (at: number) => `usage_etl.value_${at}`;

/** A statement that binds the values of all conditions, with its parameters. */
export function bindings({ where }: Selection): { text: string; values: string[] } {
  const values = where.flatMap((one) => one.values);
  const calls = values.map((_, at) => `set_config('${settingOf(at)}', $${at + 1}, true)`);
  return { text: `SELECT ${calls.join(", ") || "1"}`, values };
}

/** The rows in the order of their time and key. */
export function queryOf(selection: Selection): string {
  const { view, columns, asOf } = selection;
  const time = timeColumnOf(view);
  const quoted = (names: Iterable<string>) => [...names].map((name) => pg.escapeIdentifier(name)).join(", ");
  const rows = `reporting.${quoted([view.name])}${asOf === undefined ? "" : `(${instant(asOf)})`}`;
  const conditions = [...conditionsOfRange(selection), ...conditionsOfValues(selection)];
  const order = new Set([...(time === undefined ? [] : [time.name]), ...keyOf(view)]);
  return [
    `SELECT ${quoted(columns.map(({ name }) => name))} FROM ${rows}`,
    ...(conditions.length === 0 ? [] : [`WHERE ${conditions.join(" AND ")}`]),
    ...(order.size === 0 ? [] : [`ORDER BY ${quoted(order)}`]),
  ].join(" ");
}

const instant = (epochMs: number) => `'${new Date(epochMs).toISOString()}'::timestamptz`;

/** An end of the range inside a bucket is widened outwards to the bucket's end. */
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
  // The last instant before the end lies in the last wanted day.
  if (to !== undefined)
    conditions.push(
      time.type === "date" ? `${column} <= ${start(to - 1, "day")}` : `${column} < ${instant(to)}`,
    );
  return conditions;
}

/** Of the settings that `bindings` makes. The planner reads them when it estimates. */
function conditionsOfValues({ where }: Selection): string[] {
  let at = 0;
  return where.map(({ column, values }) => {
    const bound = values.map(() => `current_setting('${settingOf(at++)}')::${column.type}`);
    return `${pg.escapeIdentifier(column.name)} IN (${bound.join(", ")})`;
  });
}
