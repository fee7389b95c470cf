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

/** Medians are held to it. */
const LIMIT_MS = 200;

/** First day of this month, UTC; without a zone, so that a date stays one. */
const MONTH = "date_trunc('month', (now() AT TIME ZONE 'UTC'))::date";
/** The same week that the questions about traces ask for. */
const WEEK = "usage_date >= current_date - 7 AND usage_date < current_date";

/** What tools ask by themselves, and dashboards and people, within the limit. */
const QUICK: Readonly<Record<string, string>> = {
  "daily by project, 90 days of a year's": `
      SELECT usage_date, workspace_id, workspace_name, project_id, project_name, traces, is_final
      FROM reporting.fct_usage_project_daily
      WHERE usage_date >= current_date - 180 AND usage_date < current_date - 90`,
  "daily of one project, a year": `
      SELECT usage_date, sum(traces) FROM reporting.fct_usage_project_daily
      WHERE project_id = (SELECT min(project_id) FROM reporting.dim_project) AND usage_date >= current_date - 365
      GROUP BY usage_date`,
  "month totals by user, a year": `
      SELECT month_start, user_id, max(user_email), sum(traces) FROM reporting_detail.fct_usage_monthly m
      LEFT JOIN reporting_detail.dim_user u ON u.source_id = m.source_id AND u.user_id = m.dimension_id
      WHERE group_by = 'user' AND month_start >= ${MONTH} - interval '11 months' GROUP BY month_start, user_id`,
  "hourly by key, last 31 days": `
      SELECT usage_hour, api_key_short_key, traces FROM reporting_detail.fct_usage_api_key_hourly
      WHERE usage_hour >= now() - interval '31 days'`,
  "workspace totals, three years, of days": `
      SELECT workspace_id, workspace_name, sum(traces), bool_and(is_final) FROM reporting.fct_usage_workspace_daily
      WHERE usage_date >= current_date - 1095 GROUP BY workspace_id, workspace_name`,
  "workspace totals, three years, of months": `
      SELECT workspace_id, workspace_name, sum(traces), bool_and(is_final) FROM reporting_detail.fct_usage_monthly
      WHERE group_by = 'workspace' AND month_start >= ${MONTH} - interval '35 months' GROUP BY workspace_id, workspace_name`,
  "owners of a month, by 2,000 rules": `SELECT owner, cost_center, sum(traces) FROM reporting.fct_usage_owner_daily
           WHERE usage_date >= (${MONTH} - interval '1 month')::date AND usage_date < ${MONTH} GROUP BY 1, 2`,
  "the bill of a month": `SELECT * FROM reporting.usage_bill_monthly WHERE month_start = (${MONTH} - interval '1 month')::date`,
  "long-lived traces by user, a week": `SELECT * FROM reporting_detail.fct_usage_user_by_tier_daily WHERE trace_tier = 'longlived' AND ${WEEK}`,
  "coverage by kind, a week": `SELECT * FROM reporting_detail.usage_coverage_by_kind_daily WHERE ${WEEK}`,
  "by tier and month of projects, a year": `SELECT * FROM reporting_detail.fct_usage_project_by_tier_monthly WHERE month_start >= ${MONTH} - interval '11 months'`,
  "upgrades by project, this month and the one before": `SELECT * FROM reporting_detail.usage_upgrade_project_monthly WHERE month_start >= ${MONTH} - interval '1 month'`,
  "names of workspaces, from days": "SELECT DISTINCT workspace_name FROM reporting.fct_usage_workspace_daily",
  "names of workspaces, from hours":
    "SELECT DISTINCT workspace_name FROM reporting_detail.fct_usage_workspace_hourly",
  "first and last hour":
    "SELECT min(usage_hour), max(usage_hour) FROM reporting_detail.fct_usage_workspace_hourly",
  "last day": "SELECT max(usage_date) FROM reporting.fct_usage_workspace_daily",
  "newest 1,000 days":
    "SELECT * FROM reporting.fct_usage_workspace_daily ORDER BY usage_date DESC LIMIT 1000",
  "newest 24 hours":
    "SELECT * FROM reporting_detail.fct_usage_workspace_hourly ORDER BY usage_hour DESC LIMIT 24",
  "preview of unattributed traces": "SELECT * FROM reporting_detail.usage_unattributed_daily LIMIT 1000",
  "preview of days by user": "SELECT * FROM reporting.fct_usage_user_daily LIMIT 1000",
  "preview of hours by user": "SELECT * FROM reporting_detail.fct_usage_user_hourly LIMIT 1000",
  "hours of 31 days by workspace":
    "SELECT * FROM reporting_detail.fct_usage_workspace_hourly WHERE usage_hour >= now() - interval '31 days'",
  "heat map of 90 days": `
      SELECT extract(isodow FROM usage_hour AT TIME ZONE 'UTC'), extract(hour FROM usage_hour AT TIME ZONE 'UTC'), sum(traces)
      FROM reporting_detail.fct_usage_workspace_hourly WHERE usage_hour >= now() - interval '90 days' GROUP BY 1, 2`,
  "month of users, from days": `
      SELECT user_id, max(user_email), sum(traces) FROM reporting.fct_usage_user_daily
      LEFT JOIN reporting_detail.dim_user USING (source_id, user_id)
      WHERE usage_date >= current_date - 31 GROUP BY user_id`,
  "week by workspace":
    "SELECT * FROM reporting.fct_usage_workspace_daily WHERE usage_date >= current_date - 7",
  "week by user": "SELECT * FROM reporting.fct_usage_user_daily WHERE usage_date >= current_date - 7",
  "coverage of a year by day": `
      SELECT * FROM reporting_detail.usage_coverage_daily
      WHERE source_id = 'default' AND stride = 'day' AND usage_date >= current_date - 365`,
  "coverage of a month":
    "SELECT * FROM reporting_detail.usage_coverage_daily WHERE source_id = 'default' AND usage_date >= current_date - 31",
  "unattributed traces of a month":
    "SELECT * FROM reporting_detail.usage_unattributed_daily WHERE usage_date >= current_date - 31",
  "names of workspaces, from dim_workspace": "SELECT DISTINCT workspace_name FROM reporting.dim_workspace",
  "newest of each dimension, from data_freshness": "SELECT * FROM reporting.data_freshness",
  "newest 1,000 days by project, of a month": `
      SELECT * FROM reporting.fct_usage_project_daily WHERE usage_date >= current_date - 31
      ORDER BY usage_date DESC LIMIT 1000`,
  "newest 1,000 days by user, of a week": `
      SELECT * FROM reporting.fct_usage_user_daily WHERE usage_date >= current_date - 7
      ORDER BY usage_date DESC LIMIT 1000`,
  ...Object.fromEntries([
    ...["workspace", "project", "api_key"].map((dimension) => [
      `by tier and ${dimension}, a week`,
      `SELECT * FROM reporting_detail.fct_usage_${dimension}_by_tier_daily WHERE ${WEEK}`,
    ]),
    ...["workspace", "deployment", "user", "api_key"].map((dimension) => [
      `deployment usage by ${dimension}, a week`,
      `SELECT * FROM reporting_detail.fct_other_usage_daily WHERE meter = 'deployments' AND group_by = '${dimension}' AND ${WEEK}`,
    ]),
  ]),
};

/**
 * Without a limit. Many of these read every record of a dimension: Postgres passes neither DISTINCT nor an order down to the parts of
 * such a view.
 */
const SLOW: readonly Question[] = [
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
  {
    // 22,000 rows, each with a look-up of its long-lived traces.
    name: "by tier and user, a week",
    view: `SELECT * FROM reporting_detail.fct_usage_user_by_tier_daily WHERE ${WEEK}`,
    instead: "a filter on trace_tier, or the month",
  },
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
    name: "coverage of a year, days and hours",
    view: "SELECT * FROM reporting_detail.usage_coverage_daily WHERE source_id = 'default' AND usage_date >= current_date - 365",
    instead: "a filter on stride",
  },
];

export const QUESTIONS: readonly Question[] = [
  ...Object.entries(QUICK).map(([name, view]) => ({ name, view, limitMs: LIMIT_MS })),
  ...SLOW,
];
