import { UsageError } from "../../core/base/errors.ts";
import { mostAlike } from "../../core/base/spelling.ts";
import { isValueOf, namedWorkspaces, readerOf } from "../../core/store/activity/reader-login.ts";
import type { Database } from "../../core/store/db/database.ts";
import {
  type Condition,
  listReporting,
  type Selection,
  timeColumnOf,
  type View,
  type ViewColumn,
  workspaceColumnOf,
} from "../../core/store/db/views.ts";
import { type RangeOptions, rangeOf } from "../../terminal/options.ts";
import { unknownName, workspaceNamed } from "../catalog/named.ts";

export type WhereOption = readonly [column: string, value: string];

export interface SelectionOptions extends RangeOptions {
  readonly view: string;
  readonly columns?: string;
  readonly where?: readonly WhereOption[];
  readonly workspace?: readonly string[];
  /** Epoch ms. */
  readonly asOf?: number;
}

export async function selectionOf(db: Database, options: SelectionOptions): Promise<Selection> {
  const view = await viewOf(db, options.view);
  checkAsOf(view, options);
  checkRange(view, options);
  const where = [
    ...(await conditionsOf(db, view, options.where ?? [])),
    ...(await workspacesOf(db, view, options.workspace)),
  ];
  const { asOf } = options;
  return {
    view,
    columns: columnsOf(view, options.columns),
    range: options,
    where,
    ...(asOf === undefined ? {} : { asOf }),
  };
}

async function viewOf(db: Database, requested: string): Promise<View> {
  const name = requested.replace(/^reporting(_detail)?\./, "");
  const all = await listReporting(db);
  const found = all.find((view) => view.name === name);
  if (found?.isReadable === true) return found;
  const known = all.filter(({ isReadable }) => isReadable).map((view) => view.name);
  if (all.length === 0) {
    throw new UsageError({
      code: "views_missing",
      message:
        "This database has no views of usage-etl: its schemas reporting and reporting_detail are missing or empty.",
      next: "Check the database in DATABASE_URL. If it is right, let its administrator run `usage-etl migrate` to create the views.",
    });
  }
  if (found === undefined && known.length > 0) {
    const next = `Names that are spelled like it: ${mostAlike(name, known, 5).join(", ")}. docs/reference/views.md lists all ${known.length}.`;
    throw unknownName({ code: "view_unknown", what: "view", name, known, next });
  }
  const reader = await readerOf(db);
  throw new UsageError({
    code: "view_denied",
    message: `The login ${reader} may not read ${known.length === 0 ? "the views" : name}.`,
    next: `Ask the administrator of the database to run: GRANT usage_reader TO ${reader};`,
  });
}

function checkAsOf({ name, isAsOf }: View, { asOf }: SelectionOptions): void {
  if (isAsOf === (asOf !== undefined)) return;
  throw new UsageError({
    code: "as_of_misplaced",
    message: isAsOf ? `${name} needs an instant.` : `${name} shows what is stored now, not as of an instant.`,
    next: isAsOf
      ? "Add the instant, such as --as-of 2026-04-03T09:00."
      : "Leave out --as-of, or export usage_daily_as_of.",
  });
}

function checkRange(view: View, { from, to }: RangeOptions): void {
  if (from === undefined && to === undefined) return;
  if (timeColumnOf(view) === undefined) {
    throw new UsageError({
      code: "view_without_time",
      message: `${view.name} has no time column, so --from and --to cannot be used.`,
      next: "Leave --from and --to out.",
    });
  }
  if (from !== undefined && to !== undefined) rangeOf({ from, to });
}

function columnsOf(view: View, requested: string | undefined): readonly ViewColumn[] {
  if (requested === undefined) return view.columns;
  const names = requested.split(",").map((text) => text.trim());
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw new UsageError({
      code: "column_twice",
      message: `${JSON.stringify(twice)} is named twice.`,
      next: "Name each column once in --columns.",
    });
  }
  return names.map((name) => columnOf(view, name));
}

function columnOf(view: View, name: string): ViewColumn {
  const found = view.columns.find((column) => column.name === name);
  if (found !== undefined) return found;
  const known = view.columns.map((column) => column.name);
  throw unknownName({ code: "column_unknown", what: `column of ${view.name}`, name, known });
}

async function conditionsOf(db: Database, view: View, where: readonly WhereOption[]): Promise<Condition[]> {
  const conditions: Condition[] = [];
  for (const [name, pairs] of Map.groupBy(where, ([column]) => column)) {
    const column = columnOf(view, name);
    const values = pairs.map(([, value]) => value);
    for (const value of values) {
      if (await isValueOf(db, column, value)) continue;
      throw new UsageError({
        code: "where_value",
        message: `${JSON.stringify(value)} is not a value of ${name}, whose type is ${column.type}.`,
        next: `Give a value of that type, such as one that \`usage-etl export --view ${view.name} --columns ${name}\` shows.`,
      });
    }
    conditions.push({ column, values });
  }
  return conditions;
}

async function workspacesOf(
  db: Database,
  view: View,
  requested: readonly string[] | undefined,
): Promise<Condition[]> {
  if (requested === undefined) return [];
  const column = workspaceColumnOf(view);
  if (column === undefined) {
    throw new UsageError({
      code: "view_without_workspace",
      message: `${view.name} has no workspace column, so --workspace cannot be used.`,
      next: "Leave --workspace out.",
    });
  }
  const known = await namedWorkspaces(db);
  return [{ column, values: requested.map((one) => workspaceNamed(known, one).id) }];
}
