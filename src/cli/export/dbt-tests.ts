import { STRIDES } from "../../domain/time/stride.ts";
import { METER } from "../../domain/usage/meter.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";
import { DEPLOYMENT, DIMENSIONS } from "../../store/db/dimensions.ts";
import { keyOf, timeColumnOf, type View, type ViewColumn } from "../../store/export/views.ts";

/** These ids are null if a day or hour of the workspace is not loaded. */
const NULL_WHERE_MISSING = [...Object.values(DIMENSIONS), DEPLOYMENT]
  .map(({ id }) => id)
  .filter((id) => id !== DIMENSIONS.workspace.id);

const STATUSES = ["not_available", "failed", "missing", "unverified", "provisional", "empty", "ok"];
const TIERS = ["longlived", "shortlived"];
const FINDINGS = ["missing_in_store", "missing_in_export", "traces_differ", "bucket_end_differs"];
const TOTALS = ["stride_total", "grouping_total", "provider_total"];
/** Values of a column; a column of one view stands behind the view's name, that of all views by tier behind `by_tier`. */
const ACCEPTED: Readonly<Record<string, readonly string[]>> = {
  coverage_status: STATUSES,
  "by_tier.coverage_status": ["inconsistent", ...STATUSES],
  trace_tier: TIERS,
  "usage_coverage_by_kind_daily.trace_tier": ["all", ...TIERS],
  "usage_reconciliation.trace_tier": ["all", ...TIERS],
  "usage_reconciliation_by_kind.trace_tier": ["all", ...TIERS],
  "usage_coverage_by_kind_daily.kind": [...new Set(Object.values(METER).map(({ kind }) => kind))],
  status: STATUSES,
  group_by: GROUPINGS,
  stride: STRIDES,
  kind: [...FINDINGS, "name_differs", ...TOTALS],
  "usage_reconciliation_by_kind.kind": [
    ...[...FINDINGS, "name_differs", ...TOTALS],
    ...["tier_total", "tier_exceeds"],
  ],
  "backfill_status.state": ["running", "paused", "cancelled", "done"],
  "metering_probe.state": ["sending", "waiting", "matched", "late", "differs", "inconclusive"],
};

/** The part of a large view that is tested: its newest time. Others are tested whole. */
const NEWEST: Readonly<Record<string, string>> = {
  usage_date: "usage_date >= current_date - 45",
  x_UsageDate: '"x_UsageDate" >= current_date - 45',
  usage_hour: "usage_hour >= now() - interval '3 days'",
  period_start: "period_start >= now() - interval '3 days'",
};

/**
 * Tests of a column as lines of dbt's `data_tests`. The masked views hold the same rows as their originals and are not tested
 * again.
 */
export function dbtTestsOf(view: View, { name }: ViewColumn): string[] {
  if (view.name.endsWith("_masked")) return [];
  const key = keyOf(view);
  const isFact = view.name.startsWith("fct_");
  const tests: [name: string, given?: readonly string[]][] = [];
  if (key.includes(name) && !(isFact && NULL_WHERE_MISSING.includes(name))) tests.push(["not_null"]);
  if (key.length === 1 && key[0] === name) tests.push(["unique"]);
  const accepted =
    ACCEPTED[`${view.name}.${name}`] ??
    (view.name.includes("_by_tier_") ? ACCEPTED[`by_tier.${name}`] : undefined) ??
    ACCEPTED[name];
  if (accepted !== undefined)
    tests.push(["accepted_values", ["values:", ...accepted.map((value) => `  - ${value}`)]]);
  const dimension = isFact ? parentOf(view, name) : undefined;
  if (dimension !== undefined)
    tests.push(["relationships", [`to: source('usage', '${dimension}')`, `field: ${name}`]]);
  return tests.flatMap(([test, given]) => testItem(test, given, newestOf(view)));
}

/** The view with one row for each value of a column of facts. */
function parentOf(view: View, column: string): string | undefined {
  // Deployment usage may begin before the first day of dim_date.
  const isOfDeployments = view.name.startsWith("fct_deployment_usage_");
  if (column === "usage_date") return isOfDeployments ? undefined : "dim_date";
  if (column === DEPLOYMENT.id) return "dim_deployment";
  const groupBy = GROUPINGS.find((one) => DIMENSIONS[one].id === column);
  return groupBy && `dim_${groupBy}`;
}

export function newestOf(view: View): string | undefined {
  const time = timeColumnOf(view)?.name ?? "";
  // Changes and differences are few, and of any age.
  if (time === "period_start" && view.name !== "usage_record") return undefined;
  return keyOf(view).includes(time) ? NEWEST[time] : undefined;
}

function testItem(name: string, given: readonly string[] = [], where: string | undefined): string[] {
  const parts = [
    ...(given.length === 0 ? [] : ["arguments:", ...given.map((line) => `  ${line}`)]),
    ...(where === undefined ? [] : ["config:", `  where: ${where.startsWith('"') ? `'${where}'` : where}`]),
  ];
  return parts.length === 0 ? [`- ${name}`] : [`- ${name}:`, ...parts.map((line) => `    ${line}`)];
}
