export interface Question {
  readonly name: string;
  readonly view: string;
  readonly limitMs?: number;
  /** Why a view cannot answer it within the limit, and what does. Comments of views and docs/bi.md say the same. */
  readonly instead?: string;
}

const LIMIT_MS = 200;

/** First day of this month, UTC; without a zone, so that a date stays one. */
const MONTH = "date_trunc('month', (now() AT TIME ZONE 'UTC'))::date";
const WEEK = "usage_date >= current_date - 7 AND usage_date < current_date";

const QUICK: Readonly<Record<string, string>> = {
  "daily of one project, a year": `
      SELECT usage_date, sum(traces) FROM reporting.fct_usage_project_daily
      WHERE project_id = (SELECT min(project_id) FROM reporting.dim_project) AND usage_date >= current_date - 365
      GROUP BY usage_date`,
  "owners of a month, by 2,000 rules": `SELECT owner, cost_center, sum(traces) FROM reporting.fct_usage_owner_daily
           WHERE usage_date >= (${MONTH} - interval '1 month')::date AND usage_date < ${MONTH} GROUP BY 1, 2`,
  "the bill of a month": `SELECT * FROM reporting.usage_bill_monthly WHERE month_start = (${MONTH} - interval '1 month')::date`,
  "long-lived traces by user, a week": `SELECT usage_date, user_id, longlived_traces FROM reporting.fct_usage_user_daily WHERE ${WEEK}`,
  "upgrades by project, this month and the one before": `SELECT * FROM reporting_detail.usage_upgrade_project_monthly WHERE month_start >= ${MONTH} - interval '1 month'`,
  "newest 1,000 days":
    "SELECT * FROM reporting.fct_usage_workspace_daily ORDER BY usage_date DESC LIMIT 1000",
  "newest 24 hours":
    "SELECT * FROM reporting_detail.fct_usage_workspace_hourly ORDER BY usage_hour DESC LIMIT 24",
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
  "tiers by workspace, a week": `SELECT usage_date, longlived_traces, shortlived_traces, tiers_status FROM reporting.fct_usage_workspace_daily WHERE ${WEEK}`,
};

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
    name: "coverage of a year, days and hours",
    view: "SELECT * FROM reporting_detail.usage_coverage_daily WHERE source_id = 'default' AND usage_date >= current_date - 365",
    instead: "a filter on stride",
  },
];

export const QUESTIONS: readonly Question[] = [
  ...Object.entries(QUICK).map(([name, view]) => ({ name, view, limitMs: LIMIT_MS })),
  ...SLOW,
];
