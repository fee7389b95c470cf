import { readdirSync, readFileSync } from "node:fs";
import type { GroupBy } from "../../src/core/domain/usage/record.ts";
import { DIMENSIONS } from "../../src/core/store/db/dimensions.ts";

const SQL = new URL("../../sql/reporting/", import.meta.url);

const CORE_VIEWS: ReadonlySet<string> = new Set(
  readdirSync(SQL).flatMap((file) =>
    [...readFileSync(new URL(file, SQL), "utf8").matchAll(/VIEW reporting\.(\w+)/g)].map(
      ([, name]) => name ?? "",
    ),
  ),
);

export function inSchema(view: string): string {
  return `${CORE_VIEWS.has(view) ? "reporting" : "reporting_detail"}.${view}`;
}

export function costsBy(by: GroupBy): string {
  return by === "workspace" ? "reporting.fct_cost_workspace_daily" : one("fct_cost_by_id_daily", by);
}

export function monthsBy(by: GroupBy): string {
  return one("fct_usage_monthly", by);
}

export function hoursBy(by: GroupBy): string {
  return by === "workspace"
    ? "reporting_detail.fct_usage_workspace_hourly"
    : one("fct_usage_by_id_hourly", by);
}

function one(view: string, by: GroupBy): string {
  const { id, name } = DIMENSIONS[by];
  const columns = [`dimension_id AS ${id}`, ...(name === undefined ? [] : [`dimension_name AS ${name}`])];
  const more = by === "workspace" ? "" : `, ${columns.join(", ")}`;
  return `(SELECT *${more} FROM reporting_detail.${view} WHERE group_by = '${by}') by_${by}`;
}
