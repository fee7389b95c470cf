import { UsageError } from "../../errors.ts";
import type { Dataset } from "../../store/export/day-rows.ts";
import type { View } from "../../store/export/views.ts";

/**
 * When something was fetched or proved: it changes every night for weeks, while the figures stay. Whether it is proved stays in the
 * files (`is_reconciled`).
 */
const TIMES_OF_WORK = ["fetched_at", "proved_at", "reconciled_at", "totals_matched_at"];
const DIMENSIONS = ["dim_workspace", "dim_project", "dim_user", "dim_api_key", "dim_deployment"];

/** The views that files are written of: those that are named, else all daily facts with their dimensions. */
export function datasetsOf(views: readonly View[], named: readonly string[]): Dataset[] {
  const isDefault = ({ name }: View) => /^fct_.*_daily$/.test(name) || DIMENSIONS.includes(name);
  if (named.length === 0) return views.filter(isDefault).flatMap((view) => datasetOf(view) ?? []);
  return named.map((name) => {
    const view = views.find((one) => one.name === name);
    const dataset = view && datasetOf(view);
    if (dataset !== undefined) return dataset;
    throw new UsageError({
      code: "files_view_unusable",
      message:
        view === undefined
          ? `USAGE_EXPORT_VIEWS names ${JSON.stringify(name)}, which is no view of this database.`
          : `USAGE_EXPORT_VIEWS names ${name}, which has no source or is not by day.`,
      next: `Name daily views and dimensions, such as ${views
        .filter(isDefault)
        .slice(0, 3)
        .map((one) => one.name)
        .join(", ")}. The command export writes the others.`,
    });
  });
}

/** Undefined: its rows have no source, or a time that is no day. */
function datasetOf(view: View): Dataset | undefined {
  const column = (name: string) => view.columns.find((one) => one.name === name);
  const day = column("usage_date");
  const isByTime = ["usage_hour", "month_start", "period_start"].some((name) => column(name) !== undefined);
  if (column("source_id") === undefined || (day === undefined && isByTime)) return undefined;
  const columns = view.columns.filter(
    ({ name }) => !["source_id", "usage_date", ...TIMES_OF_WORK].includes(name),
  );
  return { view, columns, day };
}
