/** What the revision 8e23d806 has and this tree lacks on purpose. Write it anew when another revision is the one to compare with. */
export const MOVED: {
  /** Views that are gone. */
  readonly views: readonly RegExp[];
  /** Columns that are gone, as `view.column`, or `*.column` in all views. */
  readonly columns: readonly string[];
  /** Lines of what commands print that are gone, new or different. */
  readonly lines: readonly RegExp[];
  /** Commands and pages that are gone, or that may change. */
  readonly files: readonly RegExp[];
  /** Commands and pages that show less. What they still show must be the same, so a changed figure is still found. */
  readonly shorter: readonly RegExp[];
} = {
  // Masked twins, and views that one long view each replaces.
  views: [
    /_masked$/,
    /^fct_(deployment_usage|sandbox_usage|evaluator_spend)_/,
    /^dim_(deployment|sandbox|run_rule)$/,
    /^fct_usage_(workspace|project|user|api_key)_monthly$/,
    /^fct_cost_(project|user|api_key|deployment|sandbox)_daily$/,
    /^dim_\w+_tag$/,
    /^bridge_\w+_workspace$/,
    // Measures of the daily and monthly views.
    /^fct_usage_\w+_by_tier_/,
    /^fct_usage_(project|user|api_key)_hourly$/,
    /^usage_\w+_daily_as_of$/,
    // Views of closes of a month and of a billing period.
    /^fct_month_close/,
    /^usage_period_close$/,
  ],
  // Addresses of users are in dim_user alone.
  columns: ["fct_usage_user_daily.user_email", "usage_record.dimension_name"],
  // A close says its period.
  lines: [/^\.\d+\.period(Start|End) = \d{4}-\d{2}-01$/],
  // The page of a month has no form to accept what is open.
  files: [/accept=yes/],
  // Names of users are no part of it any more.
  shorter: [/^dim_name\.view$/],
};
