/** What people ask the public views about years of usage. */
export interface Question {
  readonly name: string;
  /** Through `reporting`, as a BI tool writes it. */
  readonly view: string;
  /** Held to the limit; the others are there to see. */
  readonly limitMs?: number;
  /** Why a view cannot answer it within the limit, and what does. Comments of views and docs/views.md say the same. */
  readonly instead?: string;
}

const LIMIT_MS = 200;

/** First day of this month, UTC; without a zone, so that a date stays one. */
const MONTH = "date_trunc('month', (now() AT TIME ZONE 'UTC'))::date";
/** The same week that the questions about traces ask for. */
const WEEK = "usage_date >= current_date - 7 AND usage_date < current_date";
const OTHER_METERS: readonly Question[] = [
  {
    name: "owners of a month, by 2,000 rules",
    limitMs: LIMIT_MS,
    view: `SELECT owner, cost_center, sum(traces) FROM reporting.fct_usage_owner_daily
           WHERE usage_date >= (${MONTH} - interval '1 month')::date AND usage_date < ${MONTH} GROUP BY 1, 2`,
  },
  {
    name: "the bill of a month",
    limitMs: LIMIT_MS,
    view: `SELECT * FROM reporting.usage_bill_monthly WHERE month_start = (${MONTH} - interval '1 month')::date`,
  },
  ...["workspace", "project", "api_key"].map((dimension) => ({
    name: `by tier and ${dimension}, a week`,
    limitMs: LIMIT_MS,
    view: `SELECT * FROM reporting_detail.fct_usage_${dimension}_by_tier_daily WHERE ${WEEK}`,
  })),
  {
    // 22,000 rows, each with a look-up of its long-lived traces.
    name: "by tier and user, a week",
    view: `SELECT * FROM reporting_detail.fct_usage_user_by_tier_daily WHERE ${WEEK}`,
    instead: "a filter on trace_tier, or the month",
  },
  {
    name: "long-lived traces by user, a week",
    limitMs: LIMIT_MS,
    view: `SELECT * FROM reporting_detail.fct_usage_user_by_tier_daily WHERE trace_tier = 'longlived' AND ${WEEK}`,
  },
  ...["workspace", "deployment", "user", "api_key"].map((dimension) => ({
    name: `deployment usage by ${dimension}, a week`,
    limitMs: LIMIT_MS,
    view: `SELECT * FROM reporting_detail.fct_deployment_usage_${dimension}_daily WHERE ${WEEK}`,
  })),
  {
    name: "coverage by kind, a week",
    limitMs: LIMIT_MS,
    view: `SELECT * FROM reporting_detail.usage_coverage_by_kind_daily WHERE ${WEEK}`,
  },
  {
    name: "by tier and month of projects, a year",
    limitMs: LIMIT_MS,
    view: `SELECT * FROM reporting_detail.fct_usage_project_by_tier_monthly WHERE month_start >= ${MONTH} - interval '11 months'`,
  },
  {
    name: "upgrades by project, this month and the one before",
    limitMs: LIMIT_MS,
    view: `SELECT * FROM reporting_detail.usage_upgrade_project_monthly WHERE month_start >= ${MONTH} - interval '1 month'`,
  },
];

const REPORTS: readonly Question[] = [
  {
    name: "daily by project, 90 days of a year's",
    limitMs: LIMIT_MS,
    view: `
      SELECT usage_date, workspace_id, workspace_name, project_id, project_name, traces, is_final
      FROM reporting.fct_usage_project_daily
      WHERE usage_date >= current_date - 180 AND usage_date < current_date - 90`,
  },
  {
    name: "daily of one project, a year",
    limitMs: LIMIT_MS,
    view: `
      SELECT usage_date, sum(traces) FROM reporting.fct_usage_project_daily
      WHERE project_id = (SELECT min(project_id) FROM reporting.dim_project) AND usage_date >= current_date - 365
      GROUP BY usage_date`,
  },
  {
    name: "month totals by user, a year",
    limitMs: LIMIT_MS,
    view: `
      SELECT month_start, user_id, user_email, sum(traces) FROM reporting_detail.fct_usage_user_monthly
      WHERE month_start >= ${MONTH} - interval '11 months' GROUP BY month_start, user_id, user_email`,
  },
  {
    name: "hourly by key, last 31 days",
    limitMs: LIMIT_MS,
    view: `
      SELECT usage_hour, api_key_short_key, traces FROM reporting_detail.fct_usage_api_key_hourly
      WHERE usage_hour >= now() - interval '31 days'`,
  },
  {
    name: "workspace totals, three years, of days",
    limitMs: LIMIT_MS,
    view: `
      SELECT workspace_id, workspace_name, sum(traces), bool_and(is_final) FROM reporting.fct_usage_workspace_daily
      WHERE usage_date >= current_date - 1095 GROUP BY workspace_id, workspace_name`,
  },
  {
    name: "workspace totals, three years, of months",
    limitMs: LIMIT_MS,
    view: `
      SELECT workspace_id, workspace_name, sum(traces), bool_and(is_final) FROM reporting_detail.fct_usage_workspace_monthly
      WHERE month_start >= ${MONTH} - interval '35 months' GROUP BY workspace_id, workspace_name`,
  },
  {
    name: "hourly by key, last 31 days, summed up by hour",
    view: `
      SELECT usage_hour, sum(traces) FROM reporting_detail.fct_usage_api_key_hourly
      WHERE usage_hour >= now() - interval '31 days' GROUP BY usage_hour`,
  },
  {
    name: "daily by user, last 31 days, with status",
    view: `
      SELECT usage_date, sum(traces), bool_and(is_final), max(coverage_status) FROM reporting.fct_usage_user_daily
      WHERE usage_date >= current_date - 31 GROUP BY usage_date`,
  },
];

/** What tools ask by themselves: lists for filters, first and last dates, previews; and what dashboards show. */
const TOOLS: readonly Question[] = [
  {
    name: "names of workspaces, from days",
    view: "SELECT DISTINCT workspace_name FROM reporting.fct_usage_workspace_daily",
  },
  {
    name: "names of workspaces, from hours",
    view: "SELECT DISTINCT workspace_name FROM reporting_detail.fct_usage_workspace_hourly",
  },
  {
    name: "first and last hour",
    view: "SELECT min(usage_hour), max(usage_hour) FROM reporting_detail.fct_usage_workspace_hourly",
  },
  { name: "last day", view: "SELECT max(usage_date) FROM reporting.fct_usage_workspace_daily" },
  {
    name: "newest 1,000 days",
    view: "SELECT * FROM reporting.fct_usage_workspace_daily ORDER BY usage_date DESC LIMIT 1000",
  },
  {
    name: "newest 24 hours",
    view: "SELECT * FROM reporting_detail.fct_usage_workspace_hourly ORDER BY usage_hour DESC LIMIT 24",
  },
  {
    name: "preview of unattributed traces",
    view: "SELECT * FROM reporting_detail.usage_unattributed_daily LIMIT 1000",
  },
  { name: "preview of days by user", view: "SELECT * FROM reporting.fct_usage_user_daily LIMIT 1000" },
  {
    name: "preview of hours by user",
    view: "SELECT * FROM reporting_detail.fct_usage_user_hourly LIMIT 1000",
  },
  {
    name: "hours of 31 days by workspace",
    view: "SELECT * FROM reporting_detail.fct_usage_workspace_hourly WHERE usage_hour >= now() - interval '31 days'",
  },
  {
    name: "heat map of 90 days",
    view: `
      SELECT extract(isodow FROM usage_hour AT TIME ZONE 'UTC'), extract(hour FROM usage_hour AT TIME ZONE 'UTC'), sum(traces)
      FROM reporting_detail.fct_usage_workspace_hourly WHERE usage_hour >= now() - interval '90 days' GROUP BY 1, 2`,
  },
  {
    name: "month of users, from days",
    view: `
      SELECT user_id, user_email, sum(traces) FROM reporting.fct_usage_user_daily
      WHERE usage_date >= current_date - 31 GROUP BY user_id, user_email`,
  },
  {
    name: "week by workspace",
    view: "SELECT * FROM reporting.fct_usage_workspace_daily WHERE usage_date >= current_date - 7",
  },
  {
    name: "week by user",
    view: "SELECT * FROM reporting.fct_usage_user_daily WHERE usage_date >= current_date - 7",
  },
  {
    name: "coverage of a year by day",
    view: `
      SELECT * FROM reporting_detail.usage_coverage_daily
      WHERE source_id = 'default' AND stride = 'day' AND usage_date >= current_date - 365`,
  },
  {
    name: "coverage of a month",
    view: "SELECT * FROM reporting_detail.usage_coverage_daily WHERE source_id = 'default' AND usage_date >= current_date - 31",
  },
  {
    name: "unattributed traces of a month",
    view: "SELECT * FROM reporting_detail.usage_unattributed_daily WHERE usage_date >= current_date - 31",
  },
  {
    name: "names of workspaces, from dim_workspace",
    view: "SELECT DISTINCT workspace_name FROM reporting.dim_workspace",
  },
  { name: "newest of each dimension, from data_freshness", view: "SELECT * FROM reporting.data_freshness" },
].map((question) => ({ ...question, limitMs: LIMIT_MS }));

/** These read every record of a dimension: Postgres passes neither DISTINCT nor an order down to the parts of such a view. */
const SLOW: readonly Question[] = [
  {
    name: "names of workspaces, from days by user",
    view: "SELECT DISTINCT workspace_name FROM reporting.fct_usage_user_daily",
    instead: "dim_workspace",
  },
  {
    name: "last day, from days by user",
    view: "SELECT max(usage_date) FROM reporting.fct_usage_user_daily",
    instead: "data_freshness",
  },
  {
    name: "newest 1,000 days by project",
    view: "SELECT * FROM reporting.fct_usage_project_daily ORDER BY usage_date DESC LIMIT 1000",
    instead: "a filter on usage_date",
  },
  {
    name: "newest 1,000 days by project, of a month",
    limitMs: LIMIT_MS,
    view: `
      SELECT * FROM reporting.fct_usage_project_daily WHERE usage_date >= current_date - 31
      ORDER BY usage_date DESC LIMIT 1000`,
  },
  {
    name: "newest 1,000 days by user, of a week",
    limitMs: LIMIT_MS,
    view: `
      SELECT * FROM reporting.fct_usage_user_daily WHERE usage_date >= current_date - 7
      ORDER BY usage_date DESC LIMIT 1000`,
  },
  {
    name: "coverage of a year, days and hours",
    view: "SELECT * FROM reporting_detail.usage_coverage_daily WHERE source_id = 'default' AND usage_date >= current_date - 365",
    instead: "a filter on stride",
  },
];

export const QUESTIONS: readonly Question[] = [...REPORTS, ...OTHER_METERS, ...TOOLS, ...SLOW];
